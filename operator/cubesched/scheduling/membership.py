"""Which replicas live, and which part of the work is this one's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable

from cubesched.core.errors import ApiError
from cubesched.fleet.rendezvous import Member, owner
from cubesched.scheduling.ports import Leases

_LOG = logging.getLogger(__name__)
LEASE_SECONDS = 15
RENEW_SECONDS = 5.0
LOOK_SECONDS = 0.2
"""How soon a new policy revision of our own is shown, and one of another replica is seen."""
ADMISSION_VERSION = 1
"""Which rules this build evaluates reservations by; raised when a counted phase is added."""


class Membership:
    """Renews this replica's Lease and follows the others'; `changed` is called when they change."""

    def __init__(
        self,
        *,
        identity: str,
        leases: Leases,
        revision: Callable[[], str],
        monotonic: Callable[[], float],
    ) -> None:
        self.identity = identity
        self.members: tuple[Member, ...] = (Member(identity, admission_version=ADMISSION_VERSION),)
        self.changed: list[Callable[[], None]] = []
        self._leases, self._revision, self._monotonic = leases, revision, monotonic
        self._published, self._shows_news = "", False
        self._looked_at: float | None = None

    @property
    def identities(self) -> tuple[str, ...]:
        """The live replicas by name, this one always among them."""
        return tuple(member.identity for member in self.members)

    def owns(self, key: str) -> bool:
        """Tell whether `key` (a uid) is this replica's share."""
        return owner(key, self.identities) == self.identity

    def everyone_runs(self, revision: str) -> bool:
        """Tell whether every live Lease, this replica's own too, shows this policy revision.

        No while the Leases were not seen for so long that this replica's own may have expired.
        """
        seen_for = math.inf if self._looked_at is None else self._monotonic() - self._looked_at
        return (
            seen_for < LEASE_SECONDS
            and self._published == revision
            and all(member.policy_revision == revision for member in self.members)
        )

    async def run(self) -> None:
        """Renew and look around until cancelled; an unreachable server changes nothing."""
        while True:
            try:
                await self.refresh()
            except ApiError as error:
                _LOG.warning("the Lease was not renewed: %s", error)
            await self._pause()

    async def _pause(self) -> None:
        """Wait for the next renewal, or less when a new policy revision should be shown.

        Replicas take up a revision within moments of each other: once this one shows a new one,
        the Leases are read again and again, up to the next renewal, until all show the same.
        """
        for _ in range(int(RENEW_SECONDS / LOOK_SECONDS)):
            await asyncio.sleep(LOOK_SECONDS)
            if self._revision() != self._published:
                return
            if self._shows_news and len({each.policy_revision for each in self.members}) > 1:
                with contextlib.suppress(ApiError):
                    await self._look()

    async def refresh(self) -> None:
        """Renew this replica's Lease and read the others'."""
        revision, began = self._revision(), self._monotonic()
        self._shows_news = False
        await self._leases.renew(
            self.identity,
            duration_seconds=LEASE_SECONDS,
            revision=revision,
            admission_version=ADMISSION_VERSION,
            ready=True,
        )
        self._shows_news, self._published = revision != self._published, revision
        await self._look()
        self._looked_at = began

    async def _look(self) -> None:
        """Read the others' Leases and tell whoever asked when there is news."""
        live = [replica.member for replica in await self._leases.members()]
        me = Member(self.identity, self._published, ADMISSION_VERSION)
        others = [member for member in live if member.identity != self.identity]
        members = tuple(sorted([me, *others], key=lambda member: member.identity))
        if members != self.members:
            self.members = members
            for tell in self.changed:
                tell()

    async def leave(self) -> None:
        """Give the Lease up, so that others take over at once."""
        try:
            await self._leases.release(self.identity)
        except ApiError as error:
            _LOG.warning("the Lease was not given up and will expire: %s", error)
