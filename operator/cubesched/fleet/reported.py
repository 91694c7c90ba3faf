"""Columns behind the snapshot: what nodes told and the ledger counts, read only in sum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from cubesched.core.snapshot import UNKNOWN, Bools, Floats, Ints, Safety


class Shrink(IntEnum):
    """What last lowered a limit of a node."""

    UNSEEN = 0
    """Nothing that this replica has seen."""
    CAPACITY = 1
    """The node's own spec."""
    SETTINGS = 2
    """The SchedulerConfig."""


@dataclass(slots=True)
class Reported:
    """Columns behind the snapshot: what decisions read only in sum or as a safety code."""

    base_safety: np.ndarray[tuple[int], np.dtype[np.uint8]]
    stamp_ms: Ints
    """The last heartbeat; -1 = never."""
    advanced_monotonic: Floats
    """When this replica saw the stamp advance."""
    heard_seconds: Floats
    """The same on the clock of `fleet.listening`; a new row was heard when it came."""
    awaited: Bools
    """No report made after this replica's first list of requests was seen yet."""
    skewed: Bools
    uid_low: np.ndarray[tuple[int], np.dtype[np.uint64]]
    uid_high: np.ndarray[tuple[int], np.dtype[np.uint64]]
    """The node object's uid, as its reports must carry it."""
    counted: Ints
    """Sandboxes by the ledger and own assumptions."""
    ledger_cpu_millis: Ints
    """What the ledger alone counts; the next likewise."""
    ledger_memory_bytes: Ints
    foreign_cpu_millis: Ints
    """What the node says runs there beside the requests; the next two likewise."""
    foreign_memory_bytes: Ints
    foreign_disk_bytes: Ints
    allocated_cpu_millis: Ints
    """What the node says all its sandboxes take, where its layout has only that; -1 = unknown.
    Foreign is then what exceeds the ledger; the next likewise."""
    allocated_memory_bytes: Ints
    missing: np.ndarray[tuple[int], np.dtype[np.uint32]]
    """Which parts the last report left out; a bit each, see `fleet.unreported`."""
    sandboxes: Ints
    unreadable: Bools
    shrunk_by: np.ndarray[tuple[int], np.dtype[np.uint8]]
    """What last lowered a limit of the node: a `Shrink`."""
    quarantined: Bools

    @classmethod
    def empty(cls, rows: int) -> Reported:
        """Return the columns of nodes that have not reported."""
        return cls(
            base_safety=np.full(rows, Safety.NOT_READY, np.uint8),
            stamp_ms=np.full(rows, -1, np.int64),
            advanced_monotonic=np.full(rows, -np.inf),
            heard_seconds=np.zeros(rows),
            awaited=np.ones(rows, np.bool_),
            skewed=np.zeros(rows, np.bool_),
            uid_low=np.zeros(rows, np.uint64),
            uid_high=np.zeros(rows, np.uint64),
            counted=np.zeros(rows, np.int64),
            ledger_cpu_millis=np.zeros(rows, np.int64),
            ledger_memory_bytes=np.zeros(rows, np.int64),
            foreign_cpu_millis=np.zeros(rows, np.int64),
            foreign_memory_bytes=np.zeros(rows, np.int64),
            foreign_disk_bytes=np.zeros(rows, np.int64),
            allocated_cpu_millis=np.full(rows, -1, np.int64),
            allocated_memory_bytes=np.full(rows, -1, np.int64),
            missing=np.zeros(rows, np.uint32),
            sandboxes=np.full(rows, UNKNOWN, np.int64),
            unreadable=np.zeros(rows, np.bool_),
            shrunk_by=np.full(rows, Shrink.UNSEEN, np.uint8),
            quarantined=np.zeros(rows, np.bool_),
        )
