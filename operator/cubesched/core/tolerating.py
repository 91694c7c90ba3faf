"""Taints and tolerations, matched as in Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence

from cubesched.core.request import Request, Toleration
from cubesched.core.snapshot import Taint

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def untolerated(request: Request, taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return the taints that repel the request; PreferNoSchedule repels nobody here."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in _REPELLING_EFFECTS
        and not any(_matches(toleration, taint) for toleration in request.tolerations)
    )


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
