"""The facts of `node` and `request`: one table of names, types, meanings and where they are read.

The reference page is made from it. Units: percents are doubles; cpu in millicores but for the cores
of the machine; memory in MiB, where limits round down and what is used rounds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cubesched.core.request import Request
from cubesched.core.snapshot import UNKNOWN, Bools, Ints, Snapshot
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT, LABELS, STRING, Type
from cubesched.plugins.cel.texts import VOCABULARY
from cubesched.plugins.cel.values import Env, Text, Value

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_MIB: Final = 1 << 20

Read = Callable[[Env], tuple[Value, Bools | None]]
"""Returns the values of the rows asked about, and which are unknown, if any can be."""


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A field of `node`."""

    name: str
    type: Type
    what: str
    read: Read
    may_be_unknown: bool = False


@dataclass(frozen=True, slots=True)
class RequestFact:
    """A field of `request`."""

    name: str
    type: Type
    what: str
    read: Callable[[Request], Value]


def _ints(column: Callable[[Snapshot], Ints]) -> Read:
    return lambda env: (env.of(column(env.fleet)), None)


def _mebibytes(column: Callable[[Snapshot], Ints]) -> Read:
    return lambda env: (env.of(column(env.fleet)) >> 20, None)


def _mebibytes_up(column: Callable[[Snapshot], Ints]) -> Read:
    return lambda env: (-(-env.of(column(env.fleet)) >> 20), None)


def _measured(column: Callable[[Snapshot], NDArray[np.float64]]) -> Read:
    def read(env: Env) -> tuple[Value, Bools | None]:
        values = env.of(column(env.fleet))
        return values, np.isnan(values)

    return read


def _whole(values: NDArray[np.float64]) -> tuple[Value, Bools]:
    """Return doubles as ints; NaN is unknown, as is what no int can hold."""
    unknown = ~(np.abs(values) < 2.0**63)
    return np.where(unknown, 0.0, values).astype(np.int64), unknown


def _cores(env: Env) -> tuple[Value, Bools]:
    return _whole(np.floor(env.of(env.fleet.cpus)))


def _memory_really_used(env: Env) -> tuple[Value, Bools]:
    return _whole(np.ceil(env.of(env.fleet.memory_really_used_bytes) / _MIB))


def _name(env: Env) -> tuple[Value, None]:
    codes, names = VOCABULARY.names(env.fleet.names, env)
    return Text(env.of(codes), names), None


def _address(env: Env) -> tuple[Value, None]:
    texts = VOCABULARY.interned(env.fleet.label_values)
    return Text(env.of(env.fleet.address), texts), None


def _zone(env: Env) -> tuple[Value, None]:
    codes = env.fleet.labels.get(ZONE_LABEL)
    if codes is None:
        return "", None
    return Text(env.of(codes), VOCABULARY.interned(env.fleet.label_values)), None


def _instance_type(env: Env) -> tuple[Value, None]:
    texts = VOCABULARY.interned(env.fleet.instance_type_codes)
    return Text(env.of(env.fleet.instance_type), texts), None


def _healthy(env: Env) -> tuple[Value, None]:
    return env.of(env.fleet.safety) == 0, None


def _template_local(env: Env) -> tuple[Value, None]:
    holders = env.fleet.templates.get(env.request.template_id)
    return (False if holders is None else env.of(holders)), None


def _snapshot_storage_writable(env: Env) -> tuple[Value, Bools]:
    told: NDArray[Any] = env.of(env.fleet.snapshot_storage_writable)
    return told == 1, told == UNKNOWN


_SINCE = "an error while it was never reported"
NODE_FACTS: Final = (
    NodeFact("id", STRING, "The SandboxNode's name.", _name),
    NodeFact("ip", STRING, 'Its first address; "" where none is known.', _address),
    NodeFact("zone", STRING, f'Its label `{ZONE_LABEL}`; "" without it.', _zone),
    NodeFact("instance_type", STRING, 'The only instance type it accepts; "" for any.',
             _instance_type),
    NodeFact("healthy", BOOL, "Ready, schedulable, not quarantined, with fresh metrics: what the"
             " `node_safety` guard wants of it, but for room and load.", _healthy),
    NodeFact("template_local", BOOL, "It holds the request's template; false when none is asked.",
             _template_local),
    NodeFact("snapshot_storage_writable", BOOL, f"Its snapshot storage takes writes; {_SINCE}.",
             _snapshot_storage_writable, may_be_unknown=True),
    NodeFact("labels", LABELS, "The SandboxNode's labels.", lambda _: (None, None)),
    NodeFact("cpu_util", DOUBLE, f"Percent of its cpu in use; {_SINCE}.",
             _measured(lambda fleet: fleet.cpu_util_percent), may_be_unknown=True),
    NodeFact("cpu_load", DOUBLE, f"Load average; {_SINCE}.",
             _measured(lambda fleet: fleet.cpu_load), may_be_unknown=True),
    NodeFact("cpu_total", INT, "Cores of the machine, rounded down.", _cores, may_be_unknown=True),
    NodeFact("quota_cpu", INT, "Millicores it may give away: quota times over-commit.",
             _ints(lambda fleet: fleet.cpu_limit_millis)),
    NodeFact("allocated_cpu", INT, "Millicores given away.",
             _ints(lambda fleet: fleet.cpu_used_millis)),
    NodeFact("mem_total_mb", INT, "MiB of the machine's memory.",
             _mebibytes(lambda fleet: fleet.memory_capacity_bytes)),
    NodeFact("mem_usage_mb", INT, f"MiB of memory really in use; {_SINCE}.", _memory_really_used,
             may_be_unknown=True),
    NodeFact("quota_mem_mb", INT, "MiB it may give away: quota times over-commit.",
             _mebibytes(lambda fleet: fleet.memory_limit_bytes)),
    NodeFact("allocated_mem_mb", INT, "MiB given away, rounded up.",
             _mebibytes_up(lambda fleet: fleet.memory_used_bytes)),
    NodeFact("creating", INT, "Sandboxes being created there.",
             _ints(lambda fleet: fleet.creating)),
    NodeFact("local_creating", INT, "Those of them that this replica has reserved.",
             _ints(lambda fleet: fleet.creating_own)),
    NodeFact("mvm_num", INT, "Sandboxes there.", _ints(lambda fleet: fleet.sandboxes)),
    NodeFact("data_disk_usage", DOUBLE, f"Percent of the data disk in use; {_SINCE}.",
             _measured(lambda fleet: fleet.data_disk_percent), may_be_unknown=True),
    NodeFact("storage_disk_usage", DOUBLE, f"Percent of the storage disk in use; {_SINCE}.",
             _measured(lambda fleet: fleet.storage_disk_percent), may_be_unknown=True),
    NodeFact("system_disk_usage", DOUBLE, f"Percent of the system disk in use; {_SINCE}.",
             _measured(lambda fleet: fleet.system_disk_percent), may_be_unknown=True),
)  # fmt: skip
REQUEST_FACTS: Final = (
    RequestFact("instance_type", STRING, "The instance type it asks for.",
                lambda request: request.instance_type),
    RequestFact("template_id", STRING, 'The template it starts from; "" for none.',
                lambda request: request.template_id),
    RequestFact("cpu_millis", INT, "Millicores it asks for.", lambda request: request.cpu_millis),
    RequestFact("memory_bytes", INT, "Bytes of memory it asks for.",
                lambda request: request.memory_bytes),
    RequestFact("system_disk_size", INT, "Bytes of system disk it asks for; 0 for none.",
                lambda request: request.disk_bytes),
    RequestFact("priority", INT, "Its priority.", lambda request: request.priority),
    RequestFact("labels", LABELS, "Its labels with a key in `profileRouteLabelKeys`; no others.",
                lambda request: request.labels),
)  # fmt: skip
NODE: Final = {fact.name: fact for fact in NODE_FACTS}
REQUEST: Final = {fact.name: fact for fact in REQUEST_FACTS}
