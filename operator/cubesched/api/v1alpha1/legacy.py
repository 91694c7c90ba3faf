"""SchedulerConfig.spec.legacy: CubeMaster's scheduler settings, key by key in camelCase.

A value left out means what it means there, which is not always what it means in a Profile: a
factor or score without a weight weighs 0. Names of factors and scores keep their spelling.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from cubesched.api.v1alpha1.common import Model
from cubesched.api.v1alpha1.schema import SHORT_KEYS, extra, rule
from cubesched.api.v1alpha1.values import EACH_ONCE, FactorWeight, ObjectName, PluginName

PluginNames = Annotated[
    list[PluginName], Field(max_length=32, json_schema_extra=extra(list_type="set")), EACH_ONCE
]
FactorWeights = Annotated[
    dict[PluginName, FactorWeight], Field(max_length=32, json_schema_extra=SHORT_KEYS)
]
NodeNames = Annotated[
    list[ObjectName], Field(max_length=1000, json_schema_extra=extra(list_type="set")), EACH_ONCE
]


class LegacyFilter(Model):
    """Which filters are on; the guards among them are always on."""

    enable_filters: PluginNames = []
    """Names of guards, and scarce_resource. Default: none but the guards."""


class LegacyScorer(Model):
    """The settings of one score."""

    weight: FactorWeight = 0.0
    """Its share in the weighted mean; 0 leaves it out. Default: 0, as in CubeMaster."""
    enable_weight_factors: PluginNames = []
    """The factors it rates by; their weights are in resourceWeights. Default: none."""
    disable: bool = False
    """True leaves it out. Default: false."""


class LegacyScore(Model):
    """How nodes are rated."""

    enable_scorers: PluginNames = []
    """real_time_weighted_average, multi_factor_weighted_average, image_score. Default: none."""
    resource_weights: FactorWeights = {}
    """Weight of each factor, in whatever score it stands. Default: 0, as in CubeMaster."""
    plugin_conf: Annotated[
        dict[PluginName, LegacyScorer], Field(max_length=32, json_schema_extra=SHORT_KEYS)
    ] = {}
    """The settings of each score that enableScorers lists. Default: none."""


class LegacyPostscore(Model):
    """Nodes that are favoured or avoided once all are rated."""

    disable: bool = False
    """True adjusts nothing. Default: false."""
    param_factor: Annotated[float, Field(gt=0, le=1)] = 0.015
    """Factor on both weights, above 0 and up to 1. Default: 0.015."""
    resource_weights: FactorWeights = {}
    """Weights of active_whitelist and negative_whitelist. Default: 0, as in CubeMaster."""
    active_white_list: NodeNames = []
    """Nodes that gain this share of the mean of all scores. Default: none."""
    negative_white_list: NodeNames = []
    """Nodes that lose this share of their score. Default: none."""


class Legacy(Model):
    """CubeMaster's filter, score and postscore blocks, and how it picks among the best."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            rule(
                "self.prioritySelectNum >= 1 || self.prioritySelectNum == -1",
                "must be at least 1, or -1 for all nodes",
                at=".prioritySelectNum",
            ),
        )
    )

    filter: LegacyFilter = LegacyFilter()
    """Which filters are on."""
    score: LegacyScore = LegacyScore()
    """How nodes are rated."""
    postscore: LegacyPostscore = LegacyPostscore()
    """Nodes that are favoured or avoided."""
    priority_select_num: Annotated[int, Field(ge=-1, le=1_000_000)] = -1
    """How many of the best take part: at least 1, or -1 for all. Default: -1."""
    least_select_name: Literal["random", "rw"] = "random"
    """random picks evenly among them, rw in proportion to score; sw and rrw, which took turns by
    weight, have no counterpart but rw. Default: random."""

    @model_validator(mode="after")
    def _takes_some(self) -> Legacy:
        """Refuse what the server's rule refuses."""
        if self.priority_select_num == 0:
            raise ValueError("prioritySelectNum must be at least 1, or -1 for all nodes")
        return self
