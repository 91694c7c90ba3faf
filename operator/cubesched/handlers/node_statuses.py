"""Keeps what the operator says of each node in its status; decisions never wait for it.

What stands there is seen through the nodes' events; what should stand is worked out from the fleet
once something of the node has changed. The rendezvous owner of a node writes, at most once in five
seconds, within budgets that all replicas share, and after every other write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from cubesched.adapters.cluster.writes import PRIORITY_SUMMARY
from cubesched.api import NODES
from cubesched.api.timestamps import timestamp, unix_seconds
from cubesched.api.v1alpha1 import SandboxNodeSpec
from cubesched.core.writing import Outcome, WriteResult
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.nodeview import view_of
from cubesched.fleet.shown import LOOK_AGAIN
from cubesched.fleet.survey import Due, survey
from cubesched.handlers.budget import Budget
from cubesched.handlers.node_conditions import Subject
from cubesched.handlers.node_status import DATE, Status, node_status, own_part, says_the_same
from cubesched.handlers.ports import Membership, StatusApplier
from cubesched.policy.objects import PolicyObject, ProblemList
from cubesched.policy.reading import read
from cubesched.scheduling.ports import Clock

logger = logging.getLogger(__name__)

FIELD_MANAGER: Final = "cubesched"
TURN_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 30.0
VERDICTS_PER_SECOND: Final = 50.0
"""Writes because limits or verdicts changed, or a node is new; of all replicas together."""
ALLOCATED_PER_SECOND: Final = 20.0
"""Writes because only what is allocated changed."""
DATES_PER_SECOND: Final = 5.0
"""Writes because only the time of the last report is old: all that an idle fleet costs."""
LOOKS_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class _Known:
    """One node as its last event showed it."""

    generation: int
    problems: Sequence[str]
    stored: Status
    """The operator's part of its status."""
    sent: Status
    """What was last written, so that its own event is no news."""


class NodeStatuses:
    """Meets the nodes' events and writes, in the background, what this replica owns."""

    def __init__(
        self, fleet: Fleet, statuses: StatusApplier, membership: Membership, clock: Clock
    ) -> None:
        """Write nothing before `run`."""
        self._fleet, self._statuses = fleet, statuses
        self._membership, self._clock = membership, clock
        self._known: dict[str, _Known] = {}
        now = clock.monotonic
        self._budgets = [
            Budget(rate, monotonic=now)
            for rate in (VERDICTS_PER_SECOND, ALLOCATED_PER_SECOND, DATES_PER_SECOND)
        ]
        self._complaint = ""

    def observe(self, body: Mapping[str, Any]) -> None:
        """Take one node as it now is; returns at once."""
        subject = PolicyObject.from_body(NODES.kind, body)
        known, stored = self._known.get(subject.uid), own_part(subject.status)
        if known is not None and known.generation == subject.generation:
            self._known[subject.uid] = replace(known, stored=stored)
            if stored in (known.stored, known.sent):
                return
        else:
            lines = _problems_of(subject)
            self._known[subject.uid] = _Known(subject.generation, lines, stored, {})
        self._look_again(subject.name)

    def forget(self, uid: str) -> None:
        """Drop a node that is gone."""
        self._known.pop(uid, None)

    async def run(self) -> None:
        """Write what is due, twice a second; for ever."""
        while True:
            await asyncio.sleep(TURN_SECONDS)
            await self.write_due()

    async def write_due(self) -> None:
        """Write what is due, owned and within the budgets now; the rest stays due."""
        fleet = self._fleet
        if not (fleet.nodes_listed and fleet.ledger.exact):
            return
        found = survey(fleet, monotonic=self._clock.monotonic())
        replicas = max(1, len(self._membership.members()))
        lists = (found.verdicts, found.allocated, found.redated)
        for budget, dues in zip(self._budgets, lists, strict=True):
            budget.fill(share=1 / replicas)
            if not await self._write_all(dues, budget, is_redating=dues is found.redated):
                return

    async def _write_all(self, dues: Sequence[Due], budget: Budget, *, is_redating: bool) -> bool:
        """Look at these nodes while the budget lasts; False when the server takes nothing."""
        for number, due in enumerate(dues):
            if budget.is_spent:
                break
            if number % LOOKS_AT_ONCE == LOOKS_AT_ONCE - 1:
                await asyncio.sleep(0)  # let decisions through
            if not await self._write_one(due, budget, is_redating=is_redating):
                return False
        return True

    async def _write_one(self, due: Due, budget: Budget, *, is_redating: bool) -> bool:
        """Look at one node and write what differs; False when the server takes nothing."""
        record = self._fleet.records.get(due.name)
        known = self._known.get(record.uid) if record else None
        self._mark(due, known.stored if known else {})
        if record is None or known is None:
            return True  # its event comes yet, or it has gone
        status = self._status_of(due, known)
        if says_the_same(status, known.stored) and not is_redating:
            return True
        budget.spend()
        self._known[record.uid] = replace(known, sent=status)
        result = await self._statuses.apply_status(
            NODES, due.name, FIELD_MANAGER, status, uid=record.uid, priority=PRIORITY_SUMMARY
        )
        return self._note(due.name, record.uid, result)

    def _status_of(self, due: Due, known: _Known) -> Status:
        """Return what should stand on a node that is there."""
        monotonic, wall = self._clock.monotonic(), self._clock.wall()
        view = view_of(self._fleet, due.name, silence=due.silence, monotonic=monotonic, wall=wall)
        subject = Subject(view, known.generation, known.problems)
        return node_status(subject, known.stored, now=timestamp(wall))

    def _mark(self, due: Due, stored: Status) -> None:
        """Note before the write what it will show: what changes meanwhile must not be missed."""
        shown, row = self._fleet.columns.shown, self._fleet.columns.row_of.get(due.name)
        if row is None:
            return
        shown.verdicts[row], shown.allocated[row] = due.verdicts, due.allocated
        if np.isneginf(shown.dated_monotonic[row]) and DATE in stored:
            age = self._clock.wall() - unix_seconds(str(stored[DATE]))
            shown.dated_monotonic[row] = self._clock.monotonic() - age

    def _note(self, name: str, uid: str, result: WriteResult) -> bool:
        """Take the answer to a write; False when the server takes none."""
        columns, now = self._fleet.columns, self._clock.monotonic()
        row, record = columns.row_of.get(name), self._fleet.records.get(name)
        if row is None or record is None or record.uid != uid:
            return True
        columns.shown.written_monotonic[row] = now
        if result.outcome is Outcome.LANDED:
            columns.shown.dated_monotonic[row] = now
            self._complaint = ""
            return True
        columns.shown.verdicts[row] = LOOK_AGAIN
        if result.outcome in (Outcome.MISSING, Outcome.REFUSED):
            return True  # gone or replaced: its event tells
        columns.shown.written_monotonic[row] = now + RETRY_SECONDS
        self._complain(result.message)
        return result.outcome is not Outcome.UNKNOWN

    def _complain(self, message: str) -> None:
        if message != self._complaint:
            logger.warning("status of a SandboxNode is not written: %s", message)
        self._complaint = message

    def _look_again(self, name: str) -> None:
        columns = self._fleet.columns
        row = columns.row_of.get(name)
        if row is not None:
            columns.shown.verdicts[row] = LOOK_AGAIN


def _problems_of(subject: PolicyObject) -> list[str]:
    problems = ProblemList(subject)
    read(SandboxNodeSpec, problems)
    return [problem.detail for problem in problems.found]
