"""What only live nodes show to be odd about the running policy, looked at now and then.

Off the path of decisions and of activation: the Profiles that this replica owns, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from cubesched.core.snapshot import Snapshot
from cubesched.handlers.ports import Membership
from cubesched.policy.active import ActivePolicy
from cubesched.policy.livelints import is_known, look, look_at_limits
from cubesched.policy.objects import PolicyObject, Problem
from cubesched.policy.policyset import PolicySet

LOOK_SECONDS: Final = 10.0
Generation = tuple[str, int]
"""Uid and generation of an object: what was seen of one says nothing about the next."""


class FleetLooks:
    """One background loop that keeps what it saw, until a change was seen twice in a row."""

    def __init__(
        self,
        policy: ActivePolicy,
        fleet: Callable[[], Snapshot],
        membership: Membership,
    ) -> None:
        self._policy, self._fleet, self._membership = policy, fleet, membership
        self.on_change: list[Callable[[], None]] = []
        """Called after what is to be shown has changed."""
        self._shown: dict[Generation, tuple[Problem, ...]] = {}
        self._last: dict[Generation, tuple[Problem, ...]] = {}
        self._due = asyncio.Event()

    def look_soon(self, policy: PolicySet) -> None:  # noqa: ARG002 - read where it is looked at
        """Look at a set that has just been swapped in."""
        self._due.set()

    def seen(self, subject: PolicyObject) -> Sequence[Problem] | None:
        """Return the warnings about this generation; None while it was not looked at."""
        return self._shown.get((subject.uid, subject.generation))

    async def run(self) -> None:
        """Look at every new set and every few seconds, for ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._due.wait()
            self._due.clear()
            await self.look()

    async def look(self) -> None:
        """Look once at what runs, and tell whoever asked when there is news."""
        policy = self._policy.current
        if policy is None or not is_known(self._fleet()):
            return
        found = {}
        for generation, problems in self._owned(policy):
            found[generation] = tuple(problems)
            await asyncio.sleep(0)
        before, self._shown = self._shown, {key: self._settled(key, found) for key in found}
        self._last = found
        if before != self._shown:
            for tell in self.on_change:
                tell()

    def _owned(self, policy: PolicySet) -> Iterator[tuple[Generation, Iterable[Problem]]]:
        """Yield each object to look at, and what is to be seen of it when that is iterated."""
        if self._owns(policy.config_uid):
            limits = look_at_limits(policy, self._fleet())
            yield (policy.config_uid, policy.config_generation), limits
        for profile in policy.profiles:
            if self._owns(profile.uid):
                yield (profile.uid, profile.generation), look(profile, self._fleet())

    def _owns(self, uid: str) -> bool:
        return bool(uid) and self._membership.owns(uid)

    def _settled(
        self, key: Generation, found: dict[Generation, tuple[Problem, ...]]
    ) -> tuple[Problem, ...]:
        """Return what to show: a state of the fleet that passes soon is not worth two writes."""
        is_settled = key not in self._shown or found[key] == self._last.get(key)
        return found[key] if is_settled else self._shown[key]
