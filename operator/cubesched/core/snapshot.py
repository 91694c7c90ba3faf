"""The fleet as columns: one row a node, one array a fact, rows in name order.

`fleet` fills the arrays and owns them; guards, filters and scores read them. Unknown is never
zero: a float that was never reported is NaN, a number `UNKNOWN`; a limit that is not set is
`NO_LIMIT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from cubesched.core.derived import NO_LIMIT, UNKNOWN, Bools, Derived, Floats, Ints, derive

Codes = NDArray[np.int32]

__all__ = ["NO_LIMIT", "UNKNOWN", "Bools", "Codes", "Floats", "Ints", "Safety", "Snapshot", "Taint"]


class Safety(IntEnum):
    """Why the node_safety guard keeps or drops a node; the first that applies, in this order."""

    OK = 0
    INVALID_SPEC = 1
    NOT_READY = 2
    UNSCHEDULABLE = 3
    QUARANTINED = 4
    """It refused several requests in a row and is left out for a while."""
    NEVER_REPORTED = 5
    STALE = 6
    CLOCK_SKEW = 7
    UNREADABLE_REQUEST = 8
    """A stored request that names this node cannot be read, so the node counts as full."""
    AWAITING_REPORT = 9
    """This replica has not yet seen a report made after its list of requests."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A Kubernetes taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str

    @override
    def __str__(self) -> str:
        """Write it as kubectl does: `key=value:effect`."""
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


@dataclass(slots=True)
class Snapshot:
    """N nodes in name order; every array has N entries.

    A decision reads it without yielding to the event loop, so one version is seen throughout.
    """

    version: int
    names: Sequence[str]
    row_of: Mapping[str, int]

    cpu_limit_millis: Ints
    """quota (else capacity) times over-commit, rounded down."""
    memory_limit_bytes: Ints
    disk_limit_bytes: Ints
    """NO_LIMIT where neither quota nor capacity of the system disk is set."""
    sandbox_limit: Ints
    create_limit: Ints

    cpu_used_millis: Ints
    """ledger + own assumptions + foreign."""
    memory_used_bytes: Ints
    disk_used_bytes: Ints
    sandboxes: Ints
    """max(ledger + own assumptions, reported number)."""
    creating: Ints
    """max(ledger + own assumptions, reported number) of creates in flight."""
    creating_ledger: Ints
    """Creates in flight by the ledger and own assumptions only: Reserved + Bound + Starting."""
    creating_reported: Ints
    """Creates in flight by the node's own report only; UNKNOWN where it does not tell them."""

    cpus: Floats
    """Cores of the machine (capacity), for comparing with the load."""
    memory_capacity_bytes: Ints
    memory_reserved_bytes: Ints
    """What the mem guard keeps free of the machine's real memory."""

    cpu_util_percent: Floats
    cpu_load: Floats
    memory_really_used_bytes: Floats
    data_disk_percent: Floats
    storage_disk_percent: Floats
    system_disk_percent: Floats

    safety: NDArray[np.uint8]
    """A `Safety` code; 0 keeps the node."""
    creating_own: Ints
    """Creates in flight that this replica has reserved: those of `local_creating`."""
    address: Codes
    """The node's first address, interned as label values are; 0 = none."""
    snapshot_storage_writable: NDArray[np.int8]
    """1 = yes, 0 = no, -1 = never told."""
    instance_type: Codes
    """Code from `instance_type_codes`; 0 = the node accepts every type."""
    instance_type_codes: Mapping[str, int]
    """Interned as `label_values` are, with the empty text as 0."""
    taint_set: Codes
    """Index into `taint_sets`; 0 = no taints."""
    taint_sets: Sequence[tuple[Taint, ...]]
    labels: Mapping[str, Codes]
    """For each label key in use: the interned value of each node, 0 = absent."""
    label_values: Mapping[str, int]
    """Interned label values, from 1 on. Codes are added, never changed, also while a decision
    waits: another thread copies it with `dict` before it goes through it."""
    templates: Mapping[str, Bools]
    """For each template id some node holds: which nodes hold it."""
    images: Mapping[str, Ints]
    """For each image some node holds: bytes of it on each node, 0 where it is not."""
    template_creating: Mapping[str, Ints]
    """For each template id in flight: creates of it in flight on each node."""
    own: Bools
    """Nodes whose rendezvous hash falls to this replica."""

    max_cpu_util_percent: float
    disk_usage_max_percent: float
    """The configured bounds of the cpu and disk guards, 1-100."""

    facts_version: int = 0
    """Changes with what nodes are: names, limits, labels, taints, templates, images. What is
    counted and measured changes only `version`."""

    derived: Derived = field(init=False)
    """What follows from the columns above; brought up to date by whoever changes them."""

    def __post_init__(self) -> None:
        """Derive what follows from the facts given."""
        self.derived = Derived.empty(len(self))
        derive(self)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.names)
