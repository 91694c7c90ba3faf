"""The four kinds as pydantic models: the one source of CRDs, reference pages and kubectl explain.

Every field's docstring is what `kubectl explain` prints. Bounds, defaults and rules stand
here and nowhere else.
"""

from __future__ import annotations

from cubesched.api.v1alpha1.common import Condition, Model
from cubesched.api.v1alpha1.config import (
    ConcurrencySettings,
    GuardSettings,
    Overcommit,
    QueueSettings,
    SchedulerConfigSpec,
    SchedulerConfigStatus,
    ScoreSettings,
    ScoreSwitches,
)
from cubesched.api.v1alpha1.legacy import (
    Legacy,
    LegacyFilter,
    LegacyPostscore,
    LegacyScore,
    LegacyScorer,
)
from cubesched.api.v1alpha1.node import (
    MAX_IMAGES,
    Capacity,
    Image,
    Quota,
    SandboxNodeSpec,
    SandboxNodeStatus,
    Taint,
)
from cubesched.api.v1alpha1.profile import (
    GUARDS,
    Failure,
    FilterPlugin,
    Plugin,
    Route,
    SchedulerProfileSpec,
    SchedulerProfileStatus,
    ScorePlugin,
    Selection,
)
from cubesched.api.v1alpha1.request import (
    Refusal,
    RequestResources,
    Reservation,
    SandboxRequestSpec,
    SandboxRequestStatus,
    Toleration,
)

__all__ = [
    "GUARDS",
    "MAX_IMAGES",
    "Capacity",
    "ConcurrencySettings",
    "Condition",
    "Failure",
    "FilterPlugin",
    "GuardSettings",
    "Image",
    "Legacy",
    "LegacyFilter",
    "LegacyPostscore",
    "LegacyScore",
    "LegacyScorer",
    "Model",
    "Overcommit",
    "Plugin",
    "QueueSettings",
    "Quota",
    "Refusal",
    "RequestResources",
    "Reservation",
    "Route",
    "SandboxNodeSpec",
    "SandboxNodeStatus",
    "SandboxRequestSpec",
    "SandboxRequestStatus",
    "SchedulerConfigSpec",
    "SchedulerConfigStatus",
    "SchedulerProfileSpec",
    "SchedulerProfileStatus",
    "ScorePlugin",
    "ScoreSettings",
    "ScoreSwitches",
    "Selection",
    "Taint",
    "Toleration",
]
