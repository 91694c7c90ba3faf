"""What a node may hold and what is on it, counted by stored statuses alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CREATING = frozenset({"Bound", "Starting"})
WEIGH_LESS = frozenset({"Paused", "Evicting", "Reserved"})
"""Phases in which no more than the stamp of a pause is there for certain, where there is one."""


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """What one simulated node may hold."""

    cpu_millis: int
    memory_bytes: int
    sandboxes: int
    creates: int


@dataclass
class Load:
    """What is on one node."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    sandboxes: int = 0
    creates: int = 0

    def add(self, status: Mapping[str, Any]) -> None:
        """Count one request by what its reservation admitted, or by what a paused one keeps."""
        self._add_room(status, WEIGH_LESS - {"Reserved"})
        self.sandboxes += 1
        self.creates += status["phase"] in CREATING or status["phase"] == "Reserved"

    def add_kept(self, status: Mapping[str, Any]) -> None:
        """Count what the machine holds of one that is reserved to be resumed."""
        self._add_room(status, WEIGH_LESS)
        self.sandboxes += 1

    def _add_room(self, status: Mapping[str, Any], less_in: frozenset[str]) -> None:
        reservation = status["reservation"]
        stamp = reservation.get("paused", {}) if status["phase"] in less_in else {}
        room = {**reservation, **stamp}
        self.cpu_millis += room["cpuMillis"]
        self.memory_bytes += room["memoryBytes"]

    def exceeds(self, limits: NodeLimits) -> bool:
        """Tell whether any limit is broken."""
        return (
            self.cpu_millis > limits.cpu_millis
            or self.memory_bytes > limits.memory_bytes
            or self.sandboxes > limits.sandboxes
            or self.creates > limits.creates
        )
