"""What a request's owner writes about it once it is placed or over: rarely, and few at once.

Every write is conditional on the version that was read, so whoever was faster is not overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cubesched.core.scheduler_settings import Settings
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.scheduling.inflight import InFlight, Intent
from cubesched.scheduling.ports import Clock
from cubesched.scheduling.statuses import Status

AGAIN_SECONDS = 5.0
"""The least time between two tries to write the same thing."""
MOST_AT_ONCE = 32
"""Such writes under way at the same time, and begun in one sweep: thousands may fall due together,
and must never crowd out reservations."""
_INTENTS = frozenset({Intent.END, Intent.MARK})


@dataclass(slots=True)
class Upkeep:
    """The owner's hand: what parts write with, and when they may act at all."""

    fleet: Fleet
    inflight: InFlight
    clock: Clock
    settings: Callable[[], Settings]
    owns: Callable[[str], bool]
    _not_before: dict[str, float] = field(default_factory=dict)
    _free: int = 0

    @property
    def knows_enough(self) -> bool:
        """Whether both lists are complete: before that, nothing is missing for certain."""
        return self.fleet.ledger.exact and self.fleet.nodes_listed

    def meet(self, change: Change) -> None:
        """Let a request that has changed be written to at once."""
        self._not_before.pop(change.uid, None)

    def sweep(self) -> None:
        """Look how many writes may begin before the next sweep; every part's comes after this."""
        under_way = sum(write.intent in _INTENTS for write in self.inflight.writes.values())
        self._free = MOST_AT_ONCE - under_way

    def may_write(self, entry: Entry) -> bool:
        """Tell whether this replica may write to the request now."""
        return (
            self._free > 0
            and entry.uid not in self.inflight
            and self.clock.monotonic() >= self._not_before.get(entry.uid, 0.0)
            and self.owns(entry.uid)
        )

    def end(self, entry: Entry, status: Status) -> None:
        """Write a change of phase; check `may_write` first."""
        self._start(entry, Intent.END, status)

    def mark(self, entry: Entry, status: Status) -> None:
        """Write what people should see, the phase being as it was; check `may_write` first."""
        self._start(entry, Intent.MARK, status)

    def _start(self, entry: Entry, intent: Intent, status: Status) -> None:
        self._free -= 1
        self._not_before[entry.uid] = self.clock.monotonic() + AGAIN_SECONDS
        self.inflight.start(entry, intent, status)
