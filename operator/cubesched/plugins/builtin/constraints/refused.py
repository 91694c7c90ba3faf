"""Constraint `refused`: not a node whose agent refused this request lately.

Source: cubesched's own; CubeMaster's circuit breaker excludes such nodes within one create call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Snapshot
from cubesched.plugins.builtin.rows import rows_named
from cubesched.plugins.builtin.yes_or_no import YesOrNo


@dataclass(frozen=True, slots=True)
class Refused(YesOrNo):
    """Keeps nodes that have not refused the request."""

    text: ClassVar[str] = "refused this request lately"
    name: str = "refused"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; None when none has refused."""
        if not request.refused_nodes:
            return None
        return ~rows_named(fleet, request.refused_nodes)
