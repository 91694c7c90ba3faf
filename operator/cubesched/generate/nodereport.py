"""The reference page of what a node reports each second, from the layout that is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from cubesched.adapters.nodemetrics.keys import key_of
from cubesched.core.derived import UNKNOWN
from cubesched.fleet.metrics import SKEW_SECONDS
from cubesched.fleet.metrics_layout import (
    COUNT_FIELDS,
    DTYPE,
    FLOAT_FIELDS,
    LARGEST,
    LAYOUT_VERSION,
    STORAGE_TOLD,
    STORAGE_WRITABLE,
)
from cubesched.generate.markdown import code, first_lines, table

_WHAT: Final = f"""\
What a node agent writes to Redis each second: one field in the hash `{key_of(0)}`,
named like the SandboxNode, whose value is this struct of {DTYPE.itemsize} bytes. All numbers are
little-endian, and there is no padding between fields. `cubesched.fleet.metrics_layout.encode`
packs it, and an agent built on `cubesched.agent` never sees it."""

MEANINGS: Final = {
    "version": f"Version of this layout: {LAYOUT_VERSION}.",
    "flags": f"{STORAGE_TOLD} when it is known whether snapshots of sandboxes can be written, plus"
    f" {STORAGE_WRITABLE} when they can; the other bits 0.",
    "reserved": "0.",
    "node_uid": "`metadata.uid` of the SandboxNode, as the 16 bytes of the UUID in network order.",
    "stamp_ms": "Wall clock of the node, milliseconds since 1970: the heartbeat.",
    "applied_version": "The resourceVersion of SandboxRequests up to which the agent has acted.",
    "foreign_cpu_millis": "Thousandths of a core that run here without a request accounting for"
    " them.",
    "foreign_memory_bytes": "Likewise, bytes of memory.",
    "foreign_disk_bytes": "Likewise, bytes of system disk.",
    "foreign_sandboxes": "Likewise, number of sandboxes. For people: `sandboxes` is what counts.",
    "cpu_util_percent": "How busy the machine's cpu is, 0 to 100.",
    "cpu_load": "Load average, to be compared with the number of cores.",
    "memory_used_bytes": "Memory that the machine really uses.",
    "data_disk_percent": "How full the data disk is, 0 to 100.",
    "storage_disk_percent": "How full the storage disk is, 0 to 100.",
    "system_disk_percent": "How full the system disk is, 0 to 100.",
    "sandboxes": "All sandboxes on the machine, those being created included.",
    "creating": "Creates in flight on the machine.",
}

_RULES: Final = f"""
A report is left out, and counted in `cubesched_node_reports_unusable{{problem}}`, when it has

* `length` or `version`: another length, or a version that this release does not know;
* `name`: a field name that is empty, longer than 253 bytes, or not ASCII;
* `uid`: a `node_uid` of zeros;
* `stamp`: a `stamp_ms` of 0 or less, or above 2^{LARGEST.bit_length() - 1};
* `range`: a number below its "unknown", or above 2^{LARGEST.bit_length() - 1}.

Its node then counts as one that does not report. So does a node whose report carries another
`node_uid` than its SandboxNode: a node that was created again is another node. A stamp more than
{SKEW_SECONDS:g} seconds ahead of the replica's clock is not believed (`clock skew`)."""


def nodereport_page() -> str:
    """Return the Markdown page of the packed report."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Node report", _WHAT)
    yield from table(("offset", "bytes", "field", "type", "unknown", "what"), _rows())
    yield from _RULES.splitlines()


def _rows() -> Iterator[tuple[str, str, str, str, str, str]]:
    for name in DTYPE.names or ():
        dtype, offset = DTYPE.fields[name][:2]  # type: ignore[index]
        size = str(dtype.itemsize)
        yield str(offset), size, code(name), _type(dtype), _unknown(name), MEANINGS[name]


def _type(dtype: np.dtype[np.void]) -> str:
    """Return the type as C names it."""
    bits = 8 * dtype.itemsize
    match dtype.kind:
        case "u":
            return f"uint{bits}"
        case "i":
            return f"int{bits}"
        case "f":
            return f"float{bits}"
        case _:
            return "bytes"


def _unknown(name: str) -> str:
    """Return what stands for "not reported"; only such fields may be left out."""
    if name in COUNT_FIELDS:
        return str(UNKNOWN)
    return "NaN" if name in FLOAT_FIELDS else ""
