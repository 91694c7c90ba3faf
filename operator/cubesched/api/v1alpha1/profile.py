"""SchedulerProfile: which requests it serves and how their node is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_snake

from cubesched.api.v1alpha1.common import ConditionMap, Model, Problems
from cubesched.api.v1alpha1.schema import Rule, extra, rule
from cubesched.api.v1alpha1.values import DurationBetween, Labels

GUARDS: Final = ("node_safety", "cpu", "mem", "disk", "template_locality", "realtime_create_num")
"""Always on, in this order; none can be listed in a Profile."""

MAX_PLUGINS: Final = 32

Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        json_schema_extra=extra(
            # Whatever it matches, a pattern that RE2 cannot read is an error of the rule.
            rule("''.matches(self) ? true : true", "must be a regular expression")
        ),
    ),
]
"""A regular expression in RE2's syntax; the policy compiler parses it."""


class Route(Model):
    """Which requests the Profile serves; every part given must match."""

    instance_types: Annotated[
        list[Pattern], Field(max_length=16, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Regular expressions, one of which must match the whole instance type. Default: all."""
    labels: Labels = {}
    """Labels the request must have, all of them. Default: none asked."""


PluginType = Literal["builtin", "python", "expr", "grpc"]

MAX_EXPR_CHARACTERS: Final = 4096
MAX_SOCKET_PATH_BYTES: Final = 107
"""What a Unix socket's address can hold."""

FIELDS_BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "builtin": ("args",),
    "python": ("args", "timeout", "circuitBreakerFailures", "circuitBreakerCooldown"),
    "expr": ("expr",),
    "grpc": ("socketPath", "timeout", "circuitBreakerFailures", "circuitBreakerCooldown"),
}
"""Which fields an entry of each type may have beside name, type, enabled, weight and
defaultScore."""
_NEEDED: Final = {"expr": "expr", "grpc": "socketPath"}
_UNSEEN_BY_RULES: Final = "args"
"""Its values have no type, so the server's rules cannot name it: only the compiler refuses it."""


def _type_rules() -> list[Rule]:
    """Return the server's rules: what a type needs, and what only other types have."""
    typed = {field for fields in FIELDS_BY_TYPE.values() for field in fields} - {_UNSEEN_BY_RULES}
    rules = []
    for field in sorted(typed):
        types = [kind for kind, fields in FIELDS_BY_TYPE.items() if field in fields]
        listed = " or ".join(types)
        rules.append(
            rule(
                f"!has(self.{field}) || has(self.type) && self.type in {types}",
                f"{field} is for type {listed} only",
            )
        )
    for kind, field in _NEEDED.items():
        rules.append(
            rule(
                f"!has(self.type) || self.type != '{kind}' || has(self.{field})",
                f"type {kind} needs {field}",
            )
        )
    return rules


class Plugin(Model):
    """What filters and scores have in common."""

    model_config = ConfigDict(json_schema_extra=extra(*_type_rules()))

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """The plugin's name, unique in its list; for expr any you like, for grpc one its server has."""
    type: PluginType = "builtin"
    """What kind of plugin it is: builtin; python, a package beside the operator; expr, a CEL
    expression; grpc, a server on a Unix socket. Default: builtin."""
    enabled: bool = True
    """False leaves it out without deleting it. Default: true."""
    args: Annotated[dict[str, Any], Field(max_length=32)] | None = None
    """The settings of a builtin or python plugin; unknown names are errors. Default: none."""
    expr: Annotated[str, Field(min_length=1, max_length=MAX_EXPR_CHARACTERS)] | None = None
    """The CEL expression of an expr plugin, over `node` and `request`."""
    socket_path: Annotated[str, Field(min_length=1, max_length=MAX_SOCKET_PATH_BYTES)] | None = None
    """The Unix socket of a grpc plugin, in the operator's plugin directory."""
    timeout: Annotated[str, DurationBetween("1ms", "10s")] | None = None
    """How long a python or grpc plugin may take for one request, 1ms to 10s. Default: 100ms."""
    circuit_breaker_failures: Annotated[int, Field(ge=1, le=1000)] | None = None
    """So many failed calls in a row, and a python or grpc plugin is not asked for a while.
    Default: 3."""
    circuit_breaker_cooldown: Annotated[str, DurationBetween("100ms", "1h")] | None = None
    """How long it is not asked, 100ms to 1h; then one call tries. Default: 30s."""

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Self:
        """Refuse what the server's rules refuse."""
        for field in sorted({field for fields in FIELDS_BY_TYPE.values() for field in fields}):
            allowed = [kind for kind, fields in FIELDS_BY_TYPE.items() if field in fields]
            if self.type not in allowed and getattr(self, to_snake(field)) is not None:
                raise ValueError(f"{field} is for type {' or '.join(allowed)} only")
        needed = _NEEDED.get(self.type)
        if needed and getattr(self, to_snake(needed)) is None:
            raise ValueError(f"type {self.type} needs {needed}")
        return self


class FilterPlugin(Plugin):
    """One filter: drops nodes, never adds one."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            *_type_rules(),
            {
                "rule": f"!(self.name in {list(GUARDS)})",
                "messageExpression": "self.name + ' is a guard: it is always on and cannot be"
                " listed, take it out'",
                "message": "a guard is always on and cannot be listed, take it out",
                "fieldPath": ".name",
            },
        )
    )

    @model_validator(mode="after")
    def _is_no_guard(self) -> FilterPlugin:
        """Refuse what the server's rule refuses."""
        if self.name in GUARDS:
            raise ValueError(
                f"{self.name} is a guard: it is always on and cannot be listed, take it out"
            )
        return self


class ScorePlugin(Plugin):
    """One score: rates the nodes that are left, 0 to 100."""

    weight: Annotated[float, Field(gt=0, le=1_000_000)] = 1.0
    """Its share in the weighted mean, above 0 and up to 1000000. Default: 1."""
    default_score: Annotated[float, Field(ge=0, le=100)] = 0.0
    """What every node gets when the plugin fails, 0 to 100. Default: 0."""


class Selection(Model):
    """How one node is picked among those that are left."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            rule(
                "self.topN >= 1 || self.topN == -1",
                "must be at least 1, or -1 for all nodes",
                at=".topN",
            )
        )
    )

    top_n: Annotated[int, Field(ge=-1, le=1_000_000)] = 1
    """How many of the best take part: at least 1, or -1 for all. Default: 1."""
    method: Literal["highest", "spread", "random"] = "random"
    """highest score; spread, the fewest sandboxes; random, in proportion to score.
    Default: random."""

    @model_validator(mode="after")
    def _takes_some(self) -> Selection:
        """Refuse what the server's rule refuses."""
        if self.top_n == 0:
            raise ValueError("topN must be at least 1, or -1 for all nodes")
        return self


class Failure(Model):
    """What happens when something fails; guards always fail closed."""

    filter: Literal["fail-closed", "fail-open"] = "fail-closed"
    """A filter that fails: the node is out and a failed call ends the attempt, or the node stays
    and the filter is skipped. Default: fail-closed."""
    score: Literal["default-score", "fail-closed"] = "default-score"
    """A score that fails: its defaultScore for all nodes, or the attempt ends.
    Default: default-score."""
    no_candidate: Literal["backoff", "fail"] = "backoff"
    """No node is left: the request waits, or it fails for good. Default: backoff."""


class SchedulerProfileSpec(Model):
    """Which requests it serves and how their node is chosen."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            rule(
                "!self.default || !has(self.route)",
                "a default Profile takes what no other takes, so it has no route",
                at=".route",
            ),
            rule(
                "self.default || (has(self.route) && (has(self.route.instanceTypes)"
                " && size(self.route.instanceTypes) > 0 || has(self.route.labels)"
                " && size(self.route.labels) > 0))",
                "needs instanceTypes or labels, unless default is true",
                at=".route",
            ),
        )
    )

    order: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1000
    """Routes are tried from the lowest order up, then by name. Default: 1000."""
    default: bool = False
    """True serves what no other Profile does; at most one may. Default: false."""
    mode: Literal["Active", "Disabled"] = "Active"
    """Disabled takes it out of the set, as if deleted. Default: Active."""
    route: Route | None = None
    """Which requests it serves; needed unless it is the default Profile."""
    filters: Annotated[
        list[FilterPlugin],
        Field(
            max_length=MAX_PLUGINS,
            json_schema_extra=extra(list_type="map", list_map_keys=["name"]),
        ),
    ] = []
    """Drop nodes, after the guards. Default: none."""
    scores: (
        Annotated[
            list[ScorePlugin],
            Field(
                max_length=MAX_PLUGINS,
                json_schema_extra=extra(list_type="map", list_map_keys=["name"]),
            ),
        ]
        | None
    ) = None
    """Rate the nodes that are left. Default: real_time_weighted_average; [] rates nothing."""
    selection: Selection = Selection()
    """How one node is picked among those that are left."""
    failure: Failure = Failure()
    """What happens when something fails."""

    @model_validator(mode="after")
    def _serves_something(self) -> SchedulerProfileSpec:
        """Refuse what the server's rules refuse."""
        if self.default and self.route is not None:
            raise ValueError("a default Profile takes what no other takes, so it has no route")
        routed = self.route is not None and (self.route.instance_types or self.route.labels)
        if not self.default and not routed:
            raise ValueError("route needs instanceTypes or labels, unless default is true")
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> SchedulerProfileSpec:
        """Refuse what the server's list type refuses."""
        for field, plugins in (("filters", self.filters), ("scores", self.scores or [])):
            names = [plugin.name for plugin in plugins]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{field} lists {', '.join(twice)} more than once")
        return self


class SchedulerProfileStatus(Model):
    """What the replicas made of it, written by the operator."""

    active_revision: Annotated[str, Field(max_length=64)] | None = None
    """The revision of the policy set that runs."""
    replicas_on_revision: Annotated[str, Field(max_length=16)] | None = None
    """Replicas that run it, of those alive, as in 3/3."""
    problems: Problems = []
    """Everything wrong with this object, each line starting with its field."""
    conditions: ConditionMap = []
    """Accepted says whether it compiles, Active whether this generation runs."""
