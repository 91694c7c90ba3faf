"""Who owns what: rendezvous hashing of uids and node names over the live replicas.

Every replica computes the same owner from the same membership; disagreement while membership
changes costs a conflict, never correctness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Member:
    """One live replica, as its Lease shows it."""

    identity: str
    """Pod uid (or host and pid) plus a boot id: a restart is a new replica."""
    policy_revision: str = ""
    admission_version: int = 1


def _weight(key: str, member: str) -> bytes:
    return blake2b(f"{member}\0{key}".encode(), digest_size=8).digest()


def ranking(key: str, members: Sequence[str]) -> list[str]:
    """Return the members from the owner on down, the same on every replica."""
    return sorted(members, key=lambda member: (_weight(key, member), member), reverse=True)


def owner(key: str, members: Sequence[str]) -> str | None:
    """Return the member that owns `key`; None when there is none."""
    return max(members, key=lambda member: (_weight(key, member), member), default=None)
