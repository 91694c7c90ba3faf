"""The request as plugins in Python see it; names and units are those in expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cubesched.core import request as core


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be placed."""

    instance_type: str
    template_id: str
    """Empty: none."""
    cpu_millis: int
    memory_bytes: int
    system_disk_size: int
    """Bytes; 0 when none is asked for."""
    priority: int
    labels: Mapping[str, str]
    """Its labels, of the keys in the SchedulerConfig's `profileRouteLabelKeys` alone."""

    @classmethod
    def of(cls, request: core.Request) -> Request:
        """Return what plugins are told of a request."""
        return cls(
            instance_type=request.instance_type,
            template_id=request.template_id,
            cpu_millis=request.cpu_millis,
            memory_bytes=request.memory_bytes,
            system_disk_size=request.disk_bytes,
            priority=request.priority,
            labels=MappingProxyType(dict(request.labels)),
        )
