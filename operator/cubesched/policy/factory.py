"""The factory Profiles: what runs when nobody has configured anything.

Their names keep the `_` that no Kubernetes object name can have, so they never collide.
"""

from __future__ import annotations

from typing import Any, Final

FACTORY_LABEL: Final = "workload"

_FAILURE: Final = {"filter": "fail-closed", "score": "default-score", "noCandidate": "backoff"}


FACTORY_FACTORS: Final = {
    "real_time_weighted_average": ("quota_cpu_usage", "quota_mem_usage"),
    "image_score": ("template_id",),
}
"""What their scores rate by where the SchedulerConfig's `score` does not say."""


def _real_time_average(weight: float) -> dict[str, Any]:
    return {"name": "real_time_weighted_average", "weight": weight}


def _route(value: str) -> dict[str, Any]:
    return {"labels": {FACTORY_LABEL: value}}


FACTORY_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "burst_balance": {
        "route": _route("burst_balance"),
        "scores": [_real_time_average(1.0), {"name": "create_concurrency_score", "weight": 1.0}],
        "selection": {"topN": 3, "method": "spread"},
        "failure": _FAILURE,
    },
    "template_reuse": {
        "route": _route("template_reuse"),
        "scores": [
            {"name": "image_score", "weight": 0.7},
            {"name": "template_local_pressure", "weight": 0.2},
            _real_time_average(0.3),
        ],
        "selection": {"topN": 3, "method": "spread"},
        "failure": _FAILURE,
    },
    "mixed_binpack": {
        "default": True,
        "scores": [
            {"name": "resource_fit_score", "weight": 0.7, "args": {"imbalance_penalty": 0.5}},
            _real_time_average(0.3),
        ],
        "selection": {"topN": 2, "method": "spread"},
        "failure": _FAILURE,
    },
}
"""Spec of each factory Profile by name."""
