"""Keeps the running policy and the status of its objects equal to what the API server holds.

An event only says that something changed: both kinds are listed anew, so a Profile that vanished
while a watch was broken leaves the set as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cubesched.adapters.cluster.listing import list_objects
from cubesched.adapters.cluster.transport import Transport
from cubesched.api import CONFIGS, PROFILES, Resource
from cubesched.api.timestamps import timestamp
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome
from cubesched.handlers.pacing import Pace
from cubesched.handlers.policy_history import Compile, PolicyHistory
from cubesched.handlers.ports import Membership, PolicyRecords, StatusApplier
from cubesched.policy.active import ActivePolicy
from cubesched.policy.history import record_of
from cubesched.policy.objects import CONFIG_NAME, PROFILE_KIND, PolicyObject, Problem
from cubesched.policy.verdicts import config_status, profile_status, status_change

logger = logging.getLogger(__name__)

FIELD_MANAGER: Final = "cubesched"
OWNED_FIELDS: Final = ("activeRevision", "replicasOnRevision", "problems")
"""Fields of both kinds' status that nobody else writes; conditions are compared by type."""


class PolicyReconciler:
    """One background loop: list, compile, swap, write the statuses this replica owns."""

    def __init__(
        self,
        policy: ActivePolicy,
        transport: Transport,
        statuses: StatusApplier,
        membership: Membership,
        *,
        records: PolicyRecords,
        compile_: Compile,
        seen: Callable[[PolicyObject], Sequence[Problem] | None],
        note: Callable[[], str],
        wall: Callable[[], float],
        rng: Callable[[], float],
    ) -> None:
        """Take what else a status is made of, a clock (Unix time) and jitter.

        `seen` tells what the fleet shows to be odd, None while that is not known; `note` what to
        know of the running config.
        """
        self._compile, self._seen = compile_, seen
        self._history = PolicyHistory(records, membership, compile_)
        self._policy = policy
        self._transport = transport
        self._statuses = statuses
        self._membership = membership
        self._note = note
        self._wall = wall
        self._pace = Pace(rng)

    def poke(self) -> None:
        """Note that a policy object, the members or their revisions changed."""
        self._pace.poke()

    async def run(self) -> None:
        """Reconcile now, after every burst of pokes, and once a minute; for ever."""
        while True:
            try:
                settled = await self.reconcile()
            except ApiError as error:
                logger.warning("policy objects cannot be read, what runs stays: %s", error)
                settled = False
            await (self._pace.until_due() if settled else self._pace.after_failure())

    async def reconcile(self) -> bool:
        """Make policy and statuses follow the stored objects; False when a write must be retried.

        Raises ApiError when the objects cannot be listed.
        """
        profiles = await self._list(PROFILES)
        configs = await self._list(CONFIGS)
        config = next((c for c in configs if c.name == CONFIG_NAME), None)
        result = await asyncio.to_thread(self._compile, profiles, config)
        self._policy.mark_listed(PROFILES.kind)
        self._policy.mark_listed(CONFIGS.kind)
        self._policy.adopt(result)
        if result.policy is not None:
            self._history.note(record_of(result.policy.revision, profiles, config))
        is_restored = await self._restored()
        is_written = await self._write_statuses((*profiles, *configs))
        return is_written and is_restored and await self._kept()

    async def _restored(self) -> bool:
        """Run the last good set where none ever ran; False when that must be tried again."""
        if self._policy.current is not None:
            return True
        try:
            last = await self._history.last_good()
        except ApiError as error:
            logger.warning("the sets that ran before cannot be read: %s", error)
            return False
        if last is not None:
            self._policy.restore(last)
        return True

    async def _kept(self) -> bool:
        """Keep the set that runs for a restart; False when that must be tried again."""
        try:
            await self._history.keep()
        except ApiError as error:
            logger.warning("the policy that runs is not kept for a restart: %s", error)
            return False
        return True

    async def _list(self, resource: Resource) -> list[PolicyObject]:
        bodies = await list_objects(self._transport, resource)
        return [PolicyObject.from_body(resource.kind, body) for body in bodies]

    async def _write_statuses(self, subjects: Sequence[PolicyObject]) -> bool:
        due = [
            self._write(subject, change)
            for subject in subjects
            if self._membership.owns(subject.uid) and (change := self._change(subject)) is not None
        ]
        return all(await asyncio.gather(*due))

    def _change(self, subject: PolicyObject) -> Mapping[str, Any] | None:
        verdict, running = self._policy.verdict(subject), self._policy.current
        now, seen = timestamp(self._wall()), self._seen(subject)
        if subject.kind == PROFILE_KIND:
            revisions = [member.policy_revision for member in self._membership.members()]
            desired = profile_status(
                subject, verdict, running, revisions=revisions, seen=seen, now=now
            )
        else:
            desired = config_status(
                subject, verdict, running, note=self._note(), seen=seen, now=now
            )
        return status_change(subject, desired, owned=OWNED_FIELDS)

    async def _write(self, subject: PolicyObject, status: Mapping[str, Any]) -> bool:
        resource = PROFILES if subject.kind == PROFILE_KIND else CONFIGS
        result = await self._statuses.apply_status(
            resource, subject.name, FIELD_MANAGER, status, uid=subject.uid
        )
        if result.outcome in (Outcome.LANDED, Outcome.MISSING, Outcome.REFUSED):
            return True  # gone or replaced: the next list tells
        logger.warning("status of %s is not written: %s", subject.title, result.message)
        return False
