"""Stages that reject for one reason only, of which a node cannot have more or less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot


class YesOrNo:
    """Explains a stage whose nodes either match or do not."""

    __slots__ = ()

    text: ClassVar[str]
    """Why a node is rejected, as the request's condition shows it."""

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count every row under the one text."""
        return [(self.text, int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return None: there is no share to rank by."""
        return None
