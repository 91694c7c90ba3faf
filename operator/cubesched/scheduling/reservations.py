"""Reserve, meet, confirm: how a decision becomes a binding without lock or leader.

The rules that carry the guarantee (no node's confirmed requests exceed the limits that the last
evaluator saw) are all here and in the ledger:
* a reservation is evaluated where it is met in the one ordered stream, before the next event;
* everything reserved counts, whoever reserved it, until seen gone;
* every write is conditional on the version at which the reservation's id was read.

Where the node's agent confirms, the writer still evaluates what it meets, to move on from what does
not fit; what does fit is left to the agent. Where nobody confirms, the first write binds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cubesched.core.decision import Placed, Reason
from cubesched.core.explaining import placed_line
from cubesched.core.request import Request
from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.entries import Entry, Weight
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.fleet.rendezvous import ranking
from cubesched.scheduling import statuses
from cubesched.scheduling.attempts import Yes
from cubesched.scheduling.inflight import InFlight, Intent, Write
from cubesched.scheduling.modes import Modes
from cubesched.scheduling.ports import Clock, Meter

MAX_MOVES = 3
OVERDUE_SECONDS, OVERDUE_PER_RANK_SECONDS = 3.0, 1.0
"""When a reservation that its writer has not resolved is evaluated by the next replica."""
MOST_PER_SWEEP = 200
"""Evaluations of overdue reservations in one go, so that many hold nothing else up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision of this replica, on its way to becoming a binding."""

    request: Request
    placed: Placed
    profile: str
    revision: str
    attempts: int

    @classmethod
    def of(cls, answer: Yes, attempts: int) -> Plan:
        """Return the plan that follows from an attempt; `attempts` counts it."""
        return cls(
            request=answer.request,
            placed=answer.placed,
            profile=answer.pipeline.profile,
            revision=answer.policy.revision,
            attempts=attempts,
        )


@dataclass(slots=True)
class Mine:
    """What this replica remembers of its own reservation until it is confirmed or gone."""

    plan: Plan | None
    """None when a paused sandbox is to be resumed: no other node can."""
    moves: int = 0


@dataclass(slots=True)
class Reservations:
    """This replica's reservations, and the overdue ones of others."""

    identity: str
    fleet: Fleet
    inflight: InFlight
    clock: Clock
    meter: Meter
    modes: Modes
    new_id: Callable[[], str]
    redecide: Callable[[Entry, Plan], Plan | None]
    """Decide again for a request that lost its place; None when no node takes it now."""
    members: Callable[[], Sequence[str]]
    mine: dict[str, Mine] = field(default_factory=dict)
    met: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Every reservation standing in the ledger: its id, and when this replica met it or last
    evaluated it; the oldest first."""

    @property
    def unresolved(self) -> int:
        """How many reservations of this replica are neither confirmed, gone, nor the agent's."""
        return len(self.mine)

    def reserve(self, entry: Entry, plan: Plan) -> None:
        """Plan room on the chosen node and write the reservation, or at once the binding."""
        self.mine[entry.uid] = Mine(plan)
        if self.modes.current is Confirmation.NONE:
            self._bind_directly(entry, plan)
        else:
            self._write_reservation(entry, plan, Intent.RESERVE)

    def resume(self, entry: Entry, added: Weight) -> None:
        """Plan the room that a paused sandbox needs again and write its reservation."""
        self.mine[entry.uid] = Mine(None)
        plan = Assumption(entry.node, added, entry.template_id, resumes=True)
        self.fleet.assume(entry.uid, plan)
        status = statuses.resuming(
            entry,
            reservation_id=self.new_id(),
            replica=self.identity,
            confirmation=self.modes.exact,
            wall=self.clock.wall(),
        )
        self.inflight.start(entry, Intent.RESERVE, status)

    def meet(self, change: Change) -> None:
        """Take one event of the stream, right after the ledger has applied it."""
        entry = change.after
        uid = change.uid
        self.inflight.meet(uid, entry)
        if entry is None or entry.phase != "Reserved":
            self.met.pop(uid, None)
            if entry is None or uid not in self.inflight:
                self.mine.pop(uid, None)
            return
        if uid not in self.met or self.met[uid][0] != entry.reservation_id:
            self._look_again_from(entry, self.clock.monotonic())
        if entry.replica == self.identity and uid not in self.inflight:
            self._evaluate(entry)

    def settled(self, write: Write, after: Entry | None) -> None:
        """Drop the plan of a write whose outcome the stream has shown."""
        self.fleet.release(write.entry.uid)
        if after is None or after.phase != "Reserved" or after.replica != self.identity:
            self.mine.pop(write.entry.uid, None)

    def evaluate_overdue(self) -> None:
        """Evaluate reservations that their writers left unresolved, one at a time per node."""
        now, members, evaluated = self.clock.monotonic(), list(self.members()), 0
        busy = {write.entry.node for write in self.inflight.writes.values()}
        for uid, (_, since) in list(self.met.items()):
            if now - since < OVERDUE_SECONDS or evaluated == MOST_PER_SWEEP:
                return  # those behind are younger
            entry = self.fleet.ledger.entries.get(uid)
            if entry is None or uid in self.inflight or entry.node in busy:
                continue
            if now - since >= self._patience(entry, members):
                self._look_again_from(entry, now)  # a verdict that fails is given again later
                self._evaluate(entry)
                evaluated += 1
                if uid in self.inflight:
                    busy.add(entry.node)

    def _look_again_from(self, entry: Entry, now: float) -> None:
        self.met.pop(entry.uid, None)
        self.met[entry.uid] = (entry.reservation_id, now)

    def _patience(self, entry: Entry, members: list[str]) -> float:
        """Return how long this replica leaves a reservation to others, by its rank for it."""
        if entry.replica == self.identity or self._is_agents_to_confirm(entry):
            return OVERDUE_SECONDS
        ranks = ranking(entry.uid, members)
        rank = ranks.index(self.identity) if self.identity in ranks else len(ranks)
        return OVERDUE_SECONDS + OVERDUE_PER_RANK_SECONDS * rank

    def _evaluate(self, entry: Entry) -> None:
        """Ask the ledger, at this point of the stream, and write the verdict."""
        ledger = self.fleet.ledger
        if not ledger.exact or ledger.blind:
            return  # nothing may be confirmed; asked again once the prefix is exact
        if entry.unreadable:
            return  # what it is cannot be told, so neither can what to make of it
        if not self.fleet.fits(entry):
            self._move_on(entry)
        elif entry.confirmation == Confirmation.AGENT:
            self.mine.pop(entry.uid, None)  # its node's agent has the next word
        else:
            self._confirm(entry)

    def _is_agents_to_confirm(self, entry: Entry) -> bool:
        """Tell whether a look at it now would write nothing, so that no rank need be waited for."""
        return entry.confirmation == Confirmation.AGENT and self.fleet.fits(entry)

    def _confirm(self, entry: Entry) -> None:
        own = self.mine.get(entry.uid)
        plan = own.plan if own else None
        placed = plan.placed if plan and plan.placed.node == entry.node else None
        status = statuses.bound(
            entry,
            line=placed_line(placed) if placed else "",
            score=placed.score if placed else None,
            wall=self.clock.wall(),
        )
        self.inflight.start(entry, Intent.CONFIRM, status)

    def _move_on(self, entry: Entry) -> None:
        """Take the next best node in one write; after three moves, or with none left, give up."""
        self.meter.inc("cubesched_bind_conflicts_total", profile=entry.status.profile, kind="room")
        own = self.mine.get(entry.uid)
        if own is not None and own.plan is not None and own.moves < MAX_MOVES:
            plan = self.redecide(entry, own.plan)
            if plan is not None:
                self.mine[entry.uid] = Mine(plan, own.moves + 1)
                self._write_reservation(entry, plan, Intent.MOVE)
                return
        message = f"lost the room on {entry.node} to others; trying again"
        status = statuses.given_back(
            entry, reason=Reason.CONFLICT, message=message, wall=self.clock.wall()
        )
        self.inflight.start(entry, Intent.UNDO, status)

    def _write_reservation(self, entry: Entry, plan: Plan, intent: Intent) -> None:
        status = self._reserved(entry, plan, self.modes.exact)
        self.inflight.start(entry, intent, status)

    def _bind_directly(self, entry: Entry, plan: Plan) -> None:
        status = statuses.bound_directly(
            self._reserved(entry, plan, Confirmation.NONE),
            line=placed_line(plan.placed),
            wall=self.clock.wall(),
            generation=entry.generation,
        )
        self.inflight.start(
            entry, Intent.BIND, status, may_repeat=lambda: self.modes.current is Confirmation.NONE
        )

    def _reserved(self, entry: Entry, plan: Plan, confirmation: Confirmation) -> statuses.Status:
        """Plan the room and return the status that asks the server for it, under a new id."""
        request, node = plan.request, plan.placed.node
        weight = Weight(request.cpu_millis, request.memory_bytes, request.disk_bytes)
        self.fleet.assume(entry.uid, Assumption(node, weight, request.template_id))
        return statuses.reserved(
            entry,
            node=node,
            node_uid=self.fleet.records[node].uid,
            reservation_id=self.new_id(),
            replica=self.identity,
            weight=weight,
            profile=plan.profile,
            revision=plan.revision,
            attempts=plan.attempts,
            confirmation=confirmation,
            score=plan.placed.score,
            wall=self.clock.wall(),
        )
