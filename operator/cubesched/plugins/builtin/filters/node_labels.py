"""Filter `node_labels`: the node carries every label of `matchLabels`.

Source: the Profile's own words for a part of the fleet, such as {"zone": "a"}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.args import FilterArgs
from cubesched.plugins.builtin.labels import carrying_all, nearest_by_labels
from cubesched.plugins.builtin.yes_or_no import YesOrNo


class NodeLabelsArgs(FilterArgs):
    """Arguments of `node_labels`."""

    match_labels: Annotated[dict[str, str], Field(alias="matchLabels", min_length=1)]
    """Label keys and the values a node must carry; all must match."""

    @override
    def build(self) -> NodeLabels:
        """Return the filter."""
        return NodeLabels(tuple(sorted(self.match_labels.items())))


@dataclass(frozen=True, slots=True)
class NodeLabels(YesOrNo):
    """Keeps nodes that carry all of `pairs`."""

    pairs: tuple[tuple[str, str], ...]
    text: ClassVar[str] = "node labels not matched"
    name: str = "node_labels"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return carrying_all(fleet, self.pairs)

    @override
    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node that lacks the fewest of the labels."""
        return nearest_by_labels(fleet, self.pairs, rows)
