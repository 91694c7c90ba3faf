"""Says on each SandboxNode whether its spec is valid; decisions never wait for it.

What should be written is kept until it stands, whoever owns the node: when an owner vanishes,
the next one finds it here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cubesched.api import NODES
from cubesched.api.timestamps import timestamp
from cubesched.api.v1alpha1 import SandboxNodeSpec
from cubesched.core.writing import Outcome
from cubesched.handlers.pacing import Pace
from cubesched.handlers.ports import Membership, StatusApplier
from cubesched.policy.objects import PolicyObject, ProblemList
from cubesched.policy.reading import read
from cubesched.policy.verdicts import Status, node_status, status_change

logger = logging.getLogger(__name__)

FIELD_MANAGER: Final = "cubesched-accepted"
"""A manager of its own: an apply drops whatever else the same manager said before."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A status that should stand on a node and does not yet."""

    name: str
    status: Status


class NodeVerdicts:
    """Judges nodes as events show them and writes, in the background, what it owns."""

    def __init__(
        self,
        statuses: StatusApplier,
        membership: Membership,
        *,
        wall: Callable[[], float],
        rng: Callable[[], float],
    ) -> None:
        """`wall` is Unix time for conditions; `rng` gives numbers in [0, 1) for jitter."""
        self._statuses = statuses
        self._membership = membership
        self._wall = wall
        self._pace = Pace(rng)
        self._due: dict[str, _Due] = {}

    def poke(self) -> None:
        """Note that the members changed."""
        self._pace.poke()

    def observe(self, body: Mapping[str, Any]) -> None:
        """Take one node as it now is; returns at once."""
        subject = PolicyObject.from_body(NODES.kind, body)
        problems = ProblemList(subject)
        read(SandboxNodeSpec, problems)
        lines = [problem.detail for problem in problems.found]
        desired = node_status(subject, lines, now=timestamp(self._wall()))
        if status_change(subject, desired, owned=()) is None:
            self._due.pop(subject.uid, None)
        else:
            self._due[subject.uid] = _Due(subject.name, desired)
            self._pace.poke()

    def forget(self, uid: str) -> None:
        """Drop a node that is gone."""
        self._due.pop(uid, None)

    async def run(self) -> None:
        """Write what is due and owned, after every burst of events; for ever."""
        while True:
            settled = await self.write_due()
            await (self._pace.until_due() if settled else self._pace.after_failure())

    async def write_due(self) -> bool:
        """Write every status that is due and owned; False when some must be tried again."""
        mine = [uid for uid in self._due if self._membership.owns(uid)]
        return all(await asyncio.gather(*(self._write(uid, self._due[uid]) for uid in mine)))

    async def _write(self, uid: str, due: _Due) -> bool:
        result = await self._statuses.apply_status(
            NODES, due.name, FIELD_MANAGER, due.status, uid=uid
        )
        if result.outcome not in (Outcome.LANDED, Outcome.MISSING, Outcome.REFUSED):
            logger.warning("status of a SandboxNode is not written: %s", result.message)
            return False
        if self._due.get(uid) is due:
            del self._due[uid]
        return True
