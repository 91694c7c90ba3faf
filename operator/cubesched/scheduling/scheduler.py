"""One replica's scheduler: takes what is next, decides, and follows each decision to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from cubesched.core.decision import Reason
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.fleet.rendezvous import owner
from cubesched.scheduling import statuses
from cubesched.scheduling.asking import Asking
from cubesched.scheduling.attempts import Attempts, No, Undecided, Yes, class_of
from cubesched.scheduling.counting import Counting
from cubesched.scheduling.inflight import InFlight, Intent, Write
from cubesched.scheduling.means import Means, running_settings
from cubesched.scheduling.modes import Modes
from cubesched.scheduling.pace import Pace
from cubesched.scheduling.parts import parts_of
from cubesched.scheduling.ports import Clock, Events, Meter, Policy, Remover, Writer
from cubesched.scheduling.queue import Item, Queue
from cubesched.scheduling.queueing import Queueing
from cubesched.scheduling.reporter import Reporter
from cubesched.scheduling.reservations import Plan, Reservations
from cubesched.scheduling.waking import Waking

SWEEP_SECONDS = 0.25
_NOT_ITS_OWN = frozenset({Reason.STALE_METRICS, Reason.NO_ACTIVE_POLICY, Reason.GATED})
"""Reasons that say nothing about a request: they count as no verdict and lengthen no backoff."""
PER_TURN = 8
"""Decisions in one go before other tasks get their turn."""


class Scheduler:
    """Everything one replica does for SandboxRequests, on one event loop."""

    def __init__(
        self,
        *,
        identity: str,
        fleet: Fleet,
        policy: Policy,
        writer: Writer,
        remover: Remover,
        clock: Clock,
        meter: Meter,
        events: Events,
        new_id: Callable[[], str],
        random: Callable[[], float],
        everyone_runs: Callable[[str], bool],
    ) -> None:
        self.identity = identity
        self.fleet, self.policy, self.clock = fleet, policy, clock
        self._random = random
        self.counting = Counting(identity, clock, meter, events)
        self.members: tuple[str, ...] = (identity,)
        self.queue = Queue(random)
        self.attempts = Attempts(fleet, policy, clock)
        self.inflight = InFlight(writer, clock, self._settled)
        self.modes = Modes(policy, everyone_runs)
        self.reservations = self._reservations(meter, new_id)
        self._pace = Pace(self.inflight, self.reservations, lambda: running_settings(policy))
        self.means = self._means_with(meter, remover)
        self.parts = (self.modes, *parts_of(self.means))
        self.reporter = Reporter(self.queue, self.attempts, self.inflight, events, clock)
        self.waking = Waking(self.queue, self.attempts, clock, self._not_before, self.reporter.note)
        self.queueing = self._queueing()
        self._turn = asyncio.Event()
        self.asking = self._asking()
        self._turned_at = clock.monotonic()
        self.stopping = False
        fleet.on_request = self.meet
        fleet.helped = self.waking.something_helped

    def _reservations(self, meter: Meter, new_id: Callable[[], str]) -> Reservations:
        return Reservations(
            identity=self.identity,
            fleet=self.fleet,
            inflight=self.inflight,
            clock=self.clock,
            meter=meter,
            modes=self.modes,
            new_id=new_id,
            redecide=self._redecide,
            members=lambda: self.members,
        )

    def _means_with(self, meter: Meter, remover: Remover) -> Means:
        return Means(
            fleet=self.fleet,
            policy=self.policy,
            inflight=self.inflight,
            reservations=self.reservations,
            clock=self.clock,
            meter=meter,
            owns=self.owns,
            may_reserve=self._may_reserve,
            remover=remover,
        )

    def _queueing(self) -> Queueing:
        return Queueing(
            queue=self.queue,
            ledger=self.fleet.ledger,
            inflight=self.inflight,
            waking=self.waking,
            reporter=self.reporter,
            counting=self.counting,
            clock=self.clock,
            owns=self.owns,
        )

    def _asking(self) -> Asking:
        return Asking(
            queue=self.queue,
            attempts=self.attempts,
            clock=self.clock,
            may_reserve=self._may_reserve,
            concluded=self._conclude,
            moved=self._turn.set,
        )

    def owns(self, uid: str) -> bool:
        """Tell whether a request is this replica's share."""
        return owner(uid, self.members) == self.identity

    # The stream

    def meet(self, change: Change) -> None:
        """Take one event, synchronously, right after the ledger has applied it."""
        self.reservations.meet(change)
        self.asking.meet(change)
        for part in self.parts:
            part.meet(change)
        self.queueing.meet(change)
        self.counting.meet(change)
        self._turn.set()

    # Membership and policy

    def share(self, members: Sequence[str]) -> None:
        """Take up what became this replica's share, leave what became another's."""
        self.members = tuple(members)
        self.attempts.alone = len(self.members) < 2
        self.fleet.share(replica=self.identity, members=self.members)
        self.queueing.share_changed()
        self._turn.set()

    def policy_changed(self) -> None:
        """Apply a new policy set: its limits to the fleet, and everything that waits is tried."""
        self.fleet.configure(self.means.settings)
        self.queueing.wake_all()
        self.asking.policy_changed()
        self._turn.set()

    # The loop

    def seconds_since_turn(self) -> float:
        """Return how long ago the loop last looked for something to try."""
        return self.clock.monotonic() - self._turned_at

    async def run(self) -> None:
        """Try what is ready, as long as budgets allow, until cancelled."""
        while True:
            tried, self._turned_at = 0, self.clock.monotonic()
            while tried < PER_TURN and self._try_next():
                tried += 1
            if tried == PER_TURN:
                await asyncio.sleep(0)
                continue
            self._turn.clear()
            await self._wait_for_turn()

    async def _wait_for_turn(self) -> None:
        due = self.queue.next_due()
        now = self.clock.monotonic()
        pause = SWEEP_SECONDS if due is None else min(SWEEP_SECONDS, max(0.0, due - now))
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._turn.wait()

    async def run_sweeps(self) -> None:
        """Do what only time triggers, several times a second, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.reservations.evaluate_overdue()
            self.inflight.give_up_old()
            self.asking.call_next()
            for part in self.parts:
                part.sweep()
            self.waking.look_at_passed()
            self.reporter.tell_due()

    async def run_waking(self) -> None:
        """Wake parked requests that a change has made feasible, until cancelled."""
        while True:
            await self.waking.step()
            self._turn.set()

    def _try_next(self) -> bool:
        self.queue.release_due(self.clock.monotonic())
        if not self._may_begin():
            return False
        if not self._pace.allows_another():
            self.counting.limit(self.queue.next_ready())
            return False
        item = self.queue.take()
        if item is None:
            return False
        entry = self.fleet.ledger.entries.get(item.uid)
        if entry is None or entry.phase != "Pending" or entry.wishes.is_over(self.clock.wall()):
            self.queue.set_busy(item)
        elif item.uid in self.inflight or item.uid in self.asking:
            self.queue.hold(item, self.clock.monotonic() + 0.02)
        else:
            self._try(item, entry)
        return True

    def _may_begin(self) -> bool:
        knows_enough = self.fleet.ledger.exact and self.fleet.nodes_listed
        return knows_enough and not self.stopping

    def _may_reserve(self) -> bool:
        return self._may_begin() and self._pace.allows_another()

    def _try(self, item: Item, entry: Entry) -> None:
        began = self.clock.monotonic()
        answer = self.attempts.attempt(entry, item.attempts)
        if isinstance(answer, Undecided):
            self.asking.begin(item, entry, answer)
        else:
            self._conclude(item, entry, answer, self.clock.monotonic() - began)
            self.asking.call_next()

    def _conclude(self, item: Item, entry: Entry, answer: Yes | No, seconds: float) -> None:
        """Follow an attempt to what comes of it: a reservation, or waiting."""
        self.counting.attempt(answer, seconds=seconds, fleet=self.fleet.snapshot)
        item.tried_at = self.clock.monotonic()
        if isinstance(answer, No):
            self._refuse(item, entry, answer)
            return
        if item.flushed and not self.waking.is_under_way:
            self.counting.rescue()
        item.attempts += 1
        if answer.pipeline.waits:
            self.waking.placed(class_of(answer))
        self.reservations.reserve(entry, Plan.of(answer, item.attempts))

    def _refuse(self, item: Item, entry: Entry, no: No) -> None:
        now = self.clock.monotonic()
        self.waking.keep(item.uid, entry, no)
        if no.reason not in _NOT_ITS_OWN:
            item.attempts += 1
            item.rejections += 1
        if no.is_final:
            self._fail(item, entry, no)
            return
        if no.reason is Reason.PLUGIN_FAILED:  # it may answer next time, whatever else happens
            self.queue.hold(item, self._not_before(item))
        else:
            flush = self.means.settings.flush_interval_seconds * (0.75 + 0.5 * self._random())
            self.queue.park(item, no.key, flush_at=now + flush)
        self.reporter.note(item, entry, no)

    def _fail(self, item: Item, entry: Entry, no: No) -> None:
        message, _ = self.attempts.explain(no)
        self.queue.set_busy(item)
        status = statuses.no_candidate(entry, message=message, wall=self.clock.wall())
        self.inflight.start(entry, Intent.END, status)

    def _not_before(self, item: Item) -> float:
        settings = self.means.settings
        return item.tried_at + self.queue.backoff_seconds(
            item, initial=settings.initial_backoff_seconds, longest=settings.max_backoff_seconds
        )

    def _redecide(self, entry: Entry, plan: Plan) -> Plan | None:
        if entry.wishes.is_over(self.clock.wall()):
            return None
        answer = self.attempts.attempt(entry, plan.attempts)
        return Plan.of(answer, plan.attempts + 1) if isinstance(answer, Yes) else None

    # Outcomes

    def _settled(self, write: Write, after: Entry | None, rejected: str) -> None:
        self.asking.room_freed()
        self.counting.settled(write, after, rejected)
        self.reservations.settled(write, after)
        item = self.queue.items.get(write.entry.uid)
        if item is not None and not rejected:
            item.failures = 0
        elif item is not None and item.where == "busy":
            self.queue.failure_hold(item, self.clock.monotonic())
        self._turn.set()
