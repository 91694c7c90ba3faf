"""Constraint `node_selector`: the node carries every label of the request's `nodeSelector`.

Source: Kubernetes' nodeSelector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.builtin.labels import carrying_all, nearest_by_labels
from cubesched.plugins.builtin.yes_or_no import YesOrNo


@dataclass(frozen=True, slots=True)
class NodeSelector(YesOrNo):
    """Keeps nodes that the request's selector matches."""

    text: ClassVar[str] = "node selector not matched"
    name: str = "node_selector"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; None when the request selects nothing."""
        if not request.node_selector:
            return None
        return carrying_all(fleet, request.node_selector)

    @override
    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node that lacks the fewest of the labels."""
        return nearest_by_labels(fleet, request.node_selector, rows)
