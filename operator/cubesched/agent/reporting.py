"""One report of a node, put together from what its agent and its machine know. Pure."""

from __future__ import annotations

from cubesched.agent.runtime import MachineUsage
from cubesched.fleet.entries import Weight
from cubesched.fleet.metrics_layout import NodeReport


def report_of(
    node_uid: str,
    usage: MachineUsage,
    *,
    stamp_ms: int,
    applied_version: int,
    foreign: tuple[Weight, int],
    sandboxes: int,
    creating: int,
) -> NodeReport:
    """Return what to publish; `foreign`: weight and number of what no request accounts for."""
    weight, number = foreign
    return NodeReport(
        node_uid=node_uid,
        stamp_ms=stamp_ms,
        applied_version=applied_version,
        foreign_cpu_millis=weight.cpu_millis,
        foreign_memory_bytes=weight.memory_bytes,
        foreign_disk_bytes=weight.disk_bytes,
        foreign_sandboxes=number,
        cpu_util_percent=usage.cpu_util_percent,
        cpu_load=usage.cpu_load,
        memory_used_bytes=usage.memory_used_bytes,
        data_disk_percent=usage.data_disk_percent,
        storage_disk_percent=usage.storage_disk_percent,
        system_disk_percent=usage.system_disk_percent,
        snapshot_storage_writable=usage.snapshot_storage_writable,
        sandboxes=sandboxes,
        creating=creating,
    )
