"""Who may see what: an agent shows its node's certificate, and sees that node alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cubesched.api.rights import AGENT, GROUPS, NODE_USER_PREFIX
from cubesched.relay.refusals import Refusal, forbidden


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the API server would read the same certificate."""

    user: str
    groups: frozenset[str]


def caller_of(certificate: Mapping[str, Any] | None) -> Caller:
    """Read a verified client certificate; raises Refusal when there is none, or none to read."""
    facts = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    users = [value for name, value in facts if name == "commonName"]
    if len(users) != 1:
        raise Refusal(401, "Unauthorized", "a client certificate with one common name is needed")
    groups = frozenset(value for name, value in facts if name == "organizationName")
    return Caller(users[0], groups)


class Door:
    """Lets node agents in, and with `impersonators` whoever is of that group as the user it names.

    `is_open` asks nobody for a certificate: for addresses that only this machine reaches.
    """

    def __init__(self, *, impersonators: str = "", is_open: bool = False) -> None:
        self._impersonators = impersonators
        self._is_open = is_open

    def recognise(
        self,
        certificate: Mapping[str, Any] | None,
        *,
        as_user: Sequence[str] = (),
        as_groups: Iterable[str] = (),
    ) -> Caller | None:
        """Return who asks, None where that is not looked at; raises Refusal for a stranger."""
        if self._is_open:
            return None
        caller = caller_of(certificate)
        return self._impersonated(caller, as_user, as_groups) if as_user else caller

    def _impersonated(
        self, caller: Caller, as_user: Sequence[str], as_groups: Iterable[str]
    ) -> Caller:
        if not self._impersonators or self._impersonators not in caller.groups:
            raise forbidden(f"user {caller.user!r} may not impersonate anybody here")
        if len(as_user) != 1:
            raise forbidden("Impersonate-User: must be one user")
        return Caller(as_user[0], frozenset(as_groups))


def check(caller: Caller | None, *, node: str | None) -> None:
    """Raise Refusal unless the caller may see `node`; None is what every agent may see."""
    if caller is None:
        return
    is_agent = caller.user.startswith(NODE_USER_PREFIX) and GROUPS[AGENT] in caller.groups
    if not is_agent:
        raise forbidden(
            f"user {caller.user!r} is no node agent: that is {NODE_USER_PREFIX}NAME "
            f"in group {GROUPS[AGENT]}"
        )
    own = caller.user.removeprefix(NODE_USER_PREFIX)
    if node not in {None, own}:
        raise forbidden(
            f"user {caller.user!r} may see its own node only: fieldSelector=status.nodeName={own}"
        )
