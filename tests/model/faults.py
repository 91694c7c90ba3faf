"""What may go wrong between a client and the API server, and how often; every draw is seeded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """What happens to one request."""

    NONE = "none"
    UNREACHABLE = "unreachable"
    """The connection is refused: nothing was sent."""
    TOO_MANY = "429"
    ERROR = "500"
    """500 without effect."""
    ERROR_AFTER = "500_after_commit"
    """500, yet the write landed (etcd answered too late)."""
    LOST = "reset_before_commit"
    LOST_AFTER = "reset_after_commit"
    LATE = "reset_then_commit_later"
    SILENT = "timeout_before_commit"
    SILENT_AFTER = "timeout_after_commit"
    RESENT = "resent_after_commit"
    """The HTTP layer sends the request again after the answer was lost: 409 to an own success."""
    RESENT_NOTICED = "resent_after_commit_noticed"
    """The same through a transport that knows: it tells that the outcome is unknown."""


READS = (Fault.UNREACHABLE, Fault.TOO_MANY, Fault.ERROR, Fault.LOST, Fault.SILENT)


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities a request or a watch chunk, and latencies in seconds."""

    latency_seconds: float = 0.003
    """Mean of each way of a request."""
    slow: float = 0.0
    """Share of requests with a hundredfold latency."""
    unreachable: float = 0.0
    too_many: float = 0.0
    error: float = 0.0
    error_after: float = 0.0
    lost: float = 0.0
    lost_after: float = 0.0
    late: float = 0.0
    silent: float = 0.0
    silent_after: float = 0.0
    resent: float = 0.0
    resent_noticed: float = 0.0
    late_seconds: float = 2.0
    """Mean delay of a write that lands after its client gave it up."""

    watch_lag_seconds: float = 0.005
    """Mean lag of a watch chunk."""
    watch_lag_stall: float = 0.0
    """Share of chunks with a hundredfold lag."""
    watch_drop: float = 0.0
    """A chunk ends in a reset connection."""
    watch_close: float = 0.0
    """A chunk ends in a clean end of the stream, as for a slow watcher."""
    watch_stall: float = 0.0
    """The connection goes silent for ever after a chunk."""
    gone_as_http: float = 0.0
    """Share of expired positions answered with HTTP 410, not with an ERROR line in a 200."""
    chunk_size: int = 5
    """Events that arrive in one burst, at most."""

    def request(self, rng: Random, method: str) -> Fault:
        """Draw what happens to one request."""
        weights = {
            Fault.UNREACHABLE: self.unreachable,
            Fault.TOO_MANY: self.too_many,
            Fault.ERROR: self.error,
            Fault.ERROR_AFTER: self.error_after,
            Fault.LOST: self.lost,
            Fault.LOST_AFTER: self.lost_after,
            Fault.LATE: self.late,
            Fault.SILENT: self.silent,
            Fault.SILENT_AFTER: self.silent_after,
            Fault.RESENT: self.resent,
            Fault.RESENT_NOTICED: self.resent_noticed,
        }
        drawn = rng.random()
        for fault, weight in weights.items():
            drawn -= weight
            if drawn < 0:
                return fault if _possible(fault, method) else Fault.NONE
        return Fault.NONE

    def latency(self, rng: Random) -> float:
        """Draw one way's latency."""
        factor = 100 if rng.random() < self.slow else 1
        return rng.expovariate(1 / self.latency_seconds) * factor

    def lag(self, rng: Random) -> float:
        """Draw how long a chunk of events is under way."""
        factor = 100 if rng.random() < self.watch_lag_stall else 1
        return rng.expovariate(1 / self.watch_lag_seconds) * factor


def _possible(fault: Fault, method: str) -> bool:
    if fault in {Fault.RESENT, Fault.RESENT_NOTICED}:
        return method in {"PUT", "DELETE"}
    return method != "GET" or fault in READS


WORST = Faults(
    latency_seconds=0.02,
    slow=0.05,
    unreachable=0.04,
    too_many=0.05,
    error=0.03,
    error_after=0.03,
    lost=0.04,
    lost_after=0.05,
    late=0.04,
    silent=0.01,
    silent_after=0.01,
    resent=0.05,
    resent_noticed=0.05,
    late_seconds=4.0,
    watch_lag_seconds=0.05,
    watch_lag_stall=0.05,
    watch_drop=0.02,
    watch_close=0.02,
    watch_stall=0.002,
    gone_as_http=1.0,
    chunk_size=40,
)


def swarm(rng: Random) -> Faults:
    """Draw one schedule's own mixture: some faults off, some rare, some frequent.

    A fixed mixture hides the rare combinations; a mixture of its own for each schedule finds them.
    """
    drawn = {
        name.name: getattr(WORST, name.name) * rng.choice((0, 0, 0.1, 0.3, 1))
        for name in fields(Faults)
        if name.name not in {"latency_seconds", "watch_lag_seconds", "late_seconds", "chunk_size"}
    }
    return replace(
        Faults(),
        **drawn,
        latency_seconds=rng.choice((0.001, 0.003, 0.01, 0.03)),
        watch_lag_seconds=rng.choice((0.001, 0.005, 0.02, 0.1)),
        late_seconds=rng.choice((0.05, 1.0, 6.0)),
        chunk_size=rng.choice((1, 3, 40)),
    )


Fired = Counter[str]
"""How often each fault and branch fired in one run."""
