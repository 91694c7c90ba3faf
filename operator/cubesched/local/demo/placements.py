"""What became of each request, followed in the watch like any client would."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

FINAL_PHASES = frozenset({"Running", "Succeeded", "Failed"})


class _Condition(msgspec.Struct, frozen=True):
    type: str
    reason: str = ""


class _Status(msgspec.Struct, rename="camel", frozen=True):
    phase: str = "Pending"
    node_name: str = ""
    profile: str = ""
    conditions: list[_Condition] = []


class _Meta(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Request(msgspec.Struct, frozen=True):
    metadata: _Meta
    status: _Status = _Status()


_DECODER = msgspec.json.Decoder(_Request)


@dataclass(slots=True)
class Placements:
    """A sink for the list-watch of requests; `now` is a monotonic clock in seconds."""

    statuses: dict[str, _Status] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def reset(self) -> None:
        """Begin anew."""
        self.statuses.clear()

    def seen(self, raw: bytes) -> None:
        """Take one listed request."""
        request = _DECODER.decode(raw)
        self.statuses[request.metadata.uid] = request.status
        self.names[request.metadata.uid] = request.metadata.name

    def complete(self, version: int) -> None:
        """End the list."""

    def event(self, kind: str, raw: bytes, version: int) -> None:  # noqa: ARG002
        """Take one event."""
        if kind == "DELETED":
            self.statuses.pop(_DECODER.decode(raw).metadata.uid, None)
        else:
            self.seen(raw)

    def progress(self, version: int) -> None:
        """Take a bookmark."""

    def phases(self) -> Counter[str]:
        """Return how many requests are in each phase."""
        return Counter(status.phase for status in self.statuses.values())

    def settled(self) -> int:
        """Return how many run, have ended, or were told why they wait."""
        return sum(
            status.phase in FINAL_PHASES or bool(_reason(status) and status.phase == "Pending")
            for status in self.statuses.values()
        )

    def by_profile(self) -> list[tuple[str, int, int, int]]:
        """Return (profile, requests placed, nodes used, requests that wait) a row."""
        profiles = sorted({status.profile for status in self.statuses.values() if status.profile})
        return [self._row(profile) for profile in profiles]

    def _row(self, profile: str) -> tuple[str, int, int, int]:
        mine = [status for status in self.statuses.values() if status.profile == profile]
        placed = [status for status in mine if status.phase in FINAL_PHASES]
        nodes = {status.node_name for status in placed}
        return profile, len(placed), len(nodes), len(mine) - len(placed)

    def waiting_by_reason(self) -> Counter[str]:
        """Return how many pending requests wait for each reason."""
        return Counter(
            _reason(status) or "-" for status in self.statuses.values() if status.phase == "Pending"
        )

    def one_waiting(self, *, prefix: str) -> str | None:
        """Return the first name with `prefix` among the requests that wait."""
        names = [
            self.names[uid]
            for uid, status in self.statuses.items()
            if status.phase == "Pending" and self.names[uid].startswith(prefix)
        ]
        return min(names, default=None)


def _reason(status: _Status) -> str:
    return next((c.reason for c in status.conditions if c.type == "Scheduled"), "")
