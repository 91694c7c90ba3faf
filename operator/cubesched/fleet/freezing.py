"""A version of the fleet that stays as it is, for decisions that wait for plugins.

What is counted and measured is copied once a version; what nodes are, which is much more and
changes rarely, once it has changed. Of images and of creates by template only what the request
asks about is kept: nothing else is ever looked at. Interned texts are shared: they are only ever
added to, and what is remembered of them is found by the mapping itself.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from cubesched.core.derived import Derived
from cubesched.core.request import Request
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.columns import ARRAYS, Columns

FACTS: Final = (
    "cpu_limit_millis",
    "memory_limit_bytes",
    "disk_limit_bytes",
    "sandbox_limit",
    "create_limit",
    "cpus",
    "memory_capacity_bytes",
    "memory_reserved_bytes",
    "address",
    "instance_type",
    "taint_set",
)
"""Columns that change only with `facts_version`."""


@dataclass(slots=True)
class Freezer:
    """Keeps the last frozen version, as long as it is the newest."""

    columns: Columns
    _last: Snapshot | None = None

    def frozen(self, request: Request) -> Snapshot:
        """Return the fleet as it is now, read-only."""
        view = self.columns.snapshot
        if self._last is None or self._last.version != view.version:
            self._last = self._copied(view, self._last)
        return _with_what_it_asks(self._last, view, request)

    def _copied(self, view: Snapshot, before: Snapshot | None) -> Snapshot:
        one = copy(view)
        known = before if before and before.facts_version == view.facts_version else None
        for name in ARRAYS:
            is_known = known is not None and name in FACTS
            setattr(one, name, getattr(known, name) if is_known else _kept(getattr(view, name)))
        one.derived = Derived(
            **{f.name: _kept(getattr(view.derived, f.name)) for f in fields(Derived)}
        )
        if known is None:
            one.names, one.row_of = tuple(view.names), dict(view.row_of)
            one.taint_sets = tuple(view.taint_sets)
            one.labels, one.templates = _kept_all(view.labels), _kept_all(view.templates)
        else:
            one.names, one.row_of = known.names, known.row_of
            one.taint_sets = known.taint_sets
            one.labels, one.templates = known.labels, known.templates
        return one


def _with_what_it_asks(frozen: Snapshot, view: Snapshot, request: Request) -> Snapshot:
    one = copy(frozen)
    one.images = {i: _kept(view.images[i]) for i in request.images if i in view.images}
    creating = view.template_creating.get(request.template_id)
    one.template_creating = {} if creating is None else {request.template_id: _kept(creating)}
    return one


def _kept(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kept = column.copy()
    kept.setflags(write=False)
    return kept


def _kept_all(columns: Any) -> dict[str, Any]:
    return {key: _kept(column) for key, column in columns.items()}
