"""One node as plugins in Python see it: plain values, read from the columns one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from cubesched.plugins.python.fleetview import Fleet

T = TypeVar("T")


class UnknownFact(LookupError):
    """A node never reported this fact."""


class _Fact(Generic[T]):
    """One fact of one node, from the column of that name."""

    def __init__(self, of: Callable[[Any], T]) -> None:
        self._of, self._name = of, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, node: None, owner: type) -> _Fact[T]: ...
    @overload
    def __get__(self, node: Node, owner: type) -> T: ...

    def __get__(self, node: Node | None, owner: type) -> T | _Fact[T]:
        if node is None:
            return self
        if not node.fleet.knows(self._name, node.row):
            raise UnknownFact(f"{self._name} of this node is unknown")
        return self._of(node.fleet.values(self._name)[node.row])


@dataclass(frozen=True, slots=True)
class Node:
    """One node; each fact as its column in `Fleet` says.

    Asked for a fact that the node never reported it raises `UnknownFact`; `knows` tells before.
    """

    fleet: Fleet
    row: int

    def knows(self, fact: str) -> bool:
        """Tell whether the node has reported this fact."""
        return self.fleet.knows(fact, self.row)

    @property
    def labels(self) -> Mapping[str, str]:
        """All its labels."""
        return self.fleet.labels_of(self.row)

    id = _Fact(str)
    ip = _Fact(str)
    zone = _Fact(str)
    instance_type = _Fact(str)
    healthy = _Fact(bool)
    template_local = _Fact(bool)
    snapshot_storage_writable = _Fact(bool)
    cpu_util = _Fact(float)
    cpu_load = _Fact(float)
    data_disk_usage = _Fact(float)
    storage_disk_usage = _Fact(float)
    system_disk_usage = _Fact(float)
    mem_usage_mb = _Fact(int)
    cpu_total = _Fact(int)
    quota_cpu = _Fact(int)
    allocated_cpu = _Fact(int)
    mem_total_mb = _Fact(int)
    quota_mem_mb = _Fact(int)
    allocated_mem_mb = _Fact(int)
    creating = _Fact(int)
    local_creating = _Fact(int)
    mvm_num = _Fact(int)
