"""Which routing records should stand, and which of them may not stand yet.

The record follows from the ledger alone, so nothing is kept here but the names of those that have
changed since they were last written. Who writes them asks for each when it does: what it writes is
then never older than what this replica knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.fleet.routes import packed_route, sandbox_of
from cubesched.fleet.sandboxes import uid_in

MOST_CHANGED: Final = 20_000
"""Beyond this they are not remembered one by one: all are compared instead."""


@dataclass(slots=True)
class Routing:
    """This replica's share of the records."""

    fleet: Fleet
    owns: Callable[[str], bool]
    members: Callable[[], Sequence[str]]
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to write or to compare."""
    changed: set[str] = field(default_factory=set)
    """Sandboxes whose record may have to be written or removed."""
    must_compare: bool = True
    """Whether what stands may differ beyond `changed`."""
    _seen: tuple[int, tuple[str, ...]] = (0, ())

    def meet(self, change: Change) -> None:
        """Note the records that an event may have changed."""
        before, after = _routed(change.before), _routed(change.after)
        if not (before or after) or not self.owns(change.uid):
            return
        if before == after and not _differ(change.before, change.after):
            return
        if len(self.changed) < MOST_CHANGED:
            self.changed |= {before, after} - {""}
        else:
            self.must_compare = True
        self.woken.set()

    def sweep(self) -> None:
        """Have all compared when the shares, or the address of a node, have changed."""
        seen = (self.fleet.readdressed, tuple(self.members()))
        if seen != self._seen:
            self._seen = seen
            self.must_compare = True
            self.woken.set()

    # What the writer of records asks

    @property
    def is_known(self) -> bool:
        """Whether all requests and nodes are known: else nothing may be called stale."""
        return self.fleet.ledger.exact and self.fleet.nodes_listed

    def take_changed(self, most: int) -> list[str]:
        """Return up to `most` sandboxes to look at, which then count as looked at."""
        return [self.changed.pop() for _ in range(min(most, len(self.changed)))]

    def decides(self, sandbox: str) -> bool:
        """Tell whether this replica says what stands for `sandbox`; not while it cannot read it."""
        uid = uid_in(sandbox) or sandbox
        entry = self.fleet.ledger.entries.get(uid)
        return self.owns(uid) and not (entry is not None and entry.unreadable)

    def record(self, sandbox: str) -> bytes | None:
        """Return what should stand for `sandbox` now; None for nothing."""
        entry = self.fleet.ledger.entries.get(uid_in(sandbox))
        if entry is None or entry.unreadable or sandbox_of(entry) != sandbox:
            return None
        return packed_route(entry, self.fleet.records.get(entry.node))

    def sandboxes(self, at_once: int) -> Iterator[list[str]]:
        """Yield all sandboxes that should have a record, after every `at_once` requests."""
        uids = list(self.fleet.ledger.entries)
        for first in range(0, len(uids), at_once):
            found = map(self.fleet.ledger.entries.get, uids[first : first + at_once])
            routed = [(e.uid, sandbox) for e in found if e and (sandbox := _routed(e))]
            yield [sandbox for uid, sandbox in routed if self.owns(uid)]


def _routed(entry: Entry | None) -> str:
    return "" if entry is None or entry.unreadable else sandbox_of(entry)


def _differ(before: Entry | None, after: Entry | None) -> bool:
    """Tell whether anything that a record is made of may have changed."""
    return before is None or after is None or before.status_raw != after.status_raw
