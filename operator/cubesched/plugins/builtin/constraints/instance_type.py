"""Constraint `instance_type`: the node accepts the request's instance type.

A node that names a type accepts only that one; a node that names none accepts all.
Source: CubeMaster's product buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.builtin.yes_or_no import YesOrNo

_ACCEPTS_ANY = 0
_NO_SUCH_TYPE = -1


@dataclass(frozen=True, slots=True)
class InstanceType(YesOrNo):
    """Keeps nodes of the request's type and nodes of no type."""

    text: ClassVar[str] = "other instance type"
    name: str = "instance_type"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; None when no node names a type."""
        if not any(fleet.instance_type_codes.values()):
            return None
        code = fleet.instance_type_codes.get(request.instance_type, _NO_SUCH_TYPE)
        mask: Bools = fleet.instance_type == _ACCEPTS_ANY
        mask |= fleet.instance_type == code
        return mask

    @override
    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the first node that names a type, and which."""
        named = rows[fleet.instance_type[rows] != _ACCEPTS_ANY]
        if not named.size:
            return None
        row = int(named[0])
        code = fleet.instance_type[row]
        own = next(name for name, known in fleet.instance_type_codes.items() if known == code)
        return Miss(row, f"takes only {own}, not {request.instance_type}")
