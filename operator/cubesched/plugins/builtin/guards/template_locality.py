"""Guard `template_locality`: the node holds the request's template, and is in its scope.

A node stays when the request asks for no template, or the node holds it, or the request allows a
non-local one; and, where `templateNodeScope` is set, when the scope names it. Free for a request
that asks for neither.
Source: CubeMaster's guard of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.builtin.rows import rows_named
from cubesched.plugins.builtin.tally import tally


@dataclass(frozen=True, slots=True)
class TemplateLocality:
    """Keeps nodes that can start the request's template."""

    name: str = "template_locality"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; see the module."""
        holders = _holders(fleet, request)
        if not request.template_node_scope:
            return holders
        scope = rows_named(fleet, request.template_node_scope)
        return scope if holders is None else scope & holders

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count nodes outside the scope first, then those without the template."""
        scope = rows_named(fleet, request.template_node_scope)[rows]
        outside = ~scope if request.template_node_scope else np.zeros_like(scope)
        return tally(
            ("outside the template node scope", outside),
            ("no local template", np.ones(rows.shape, dtype=np.bool_)),
        )

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return None: a template is there or not."""
        return None


def _holders(fleet: Snapshot, request: Request) -> Bools | None:
    if not request.template_id or request.allow_non_local_template:
        return None
    holders = fleet.templates.get(request.template_id)
    return np.zeros(len(fleet), dtype=np.bool_) if holders is None else holders
