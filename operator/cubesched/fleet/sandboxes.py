"""Names of sandboxes on machines: each says which request it runs for and what admitted it."""

from __future__ import annotations

_OURS = "sbr-"
"""Every name that an agent makes begins so: what else runs on the machine is never touched."""


def sandbox_name(uid: str, reservation_id: str) -> str:
    """Return the name of the one sandbox that this reservation may create."""
    return f"{_OURS}{uid}.{reservation_id}"


def parts_of(sandbox: str) -> tuple[str, str]:
    """Return request uid and reservation id; both empty for a name that no agent made."""
    uid, _, reservation_id = sandbox.removeprefix(_OURS).partition(".")
    is_ours = sandbox.startswith(_OURS) and uid and reservation_id
    return (uid, reservation_id) if is_ours else ("", "")


def uid_in(sandbox: str) -> str:
    """Return the request uid in a sandbox's name; empty for a name that no agent made."""
    return parts_of(sandbox)[0]
