"""What a client may ask of a request at any time, also while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from cubesched.api.timestamps import parsed
from cubesched.fleet.objects import RequestSpec


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client may ask of a request at any time, beside a node."""

    is_paused: bool = False
    gates: tuple[str, ...] = ()
    shutdown_seconds: float | None = None
    """Unix time at which it is to end."""
    ttl_seconds: int | None = None
    """After its end, until it is deleted."""

    def is_over(self, wall: float) -> bool:
        """Tell whether the time at which it is to end has come."""
        return self.shutdown_seconds is not None and self.shutdown_seconds <= wall


NO_WISHES = Wishes()


def wishes_of(spec: RequestSpec) -> Wishes:
    """Return what a spec wishes; most wish nothing and share one value."""
    found = Wishes(
        is_paused=spec.paused,
        gates=tuple(gate.name for gate in spec.scheduling_gates),
        shutdown_seconds=parsed(spec.shutdown_time),
        ttl_seconds=spec.ttl_seconds_after_finished,
    )
    return NO_WISHES if found == NO_WISHES else found
