"""Filter `scarce_resource`: keeps ordinary requests off nodes with something scarce.

A node is scarce when it carries one of `labels` (default `gpu`) with a value other than "false"
and "0". It stays only for a request whose `nodeSelector` names each such label key.
Source: CubeMaster's filter of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Snapshot
from cubesched.plugins.args import FilterArgs
from cubesched.plugins.builtin.labels import carrying_truthy
from cubesched.plugins.builtin.yes_or_no import YesOrNo


class ScarceResourceArgs(FilterArgs):
    """Arguments of `scarce_resource`."""

    labels: Annotated[tuple[str, ...], Field(min_length=1, strict=False)] = ("gpu",)
    """Label keys that mark a scarce node."""

    @override
    def build(self) -> ScarceResource:
        """Return the filter."""
        return ScarceResource(self.labels)


@dataclass(frozen=True, slots=True)
class ScarceResource(YesOrNo):
    """Keeps nodes that have nothing scarce, or what the request selects by name."""

    labels: tuple[str, ...]
    text: ClassVar[str] = "kept for scarce resources"
    name: str = "scarce_resource"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; None when none is scarce for this request."""
        selected = {key for key, _ in request.node_selector}
        scarce: Bools | None = None
        for key in self.labels:
            carriers = None if key in selected else carrying_truthy(fleet, key)
            if carriers is not None:
                scarce = carriers if scarce is None else scarce | carriers
        return None if scarce is None else np.logical_not(scarce)
