"""Everything that keeps a policy set from running: one row each, with its path and its words.

What a row leaves out: two names that differ in case only, since no Kubernetes name has capitals;
and a label key that stands twice in one route, since no map of the API has a key twice.
`cubesched lint` refuses both in a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.policy.builders import a_config, a_profile, raw_profile

from cubesched.plugins.kinds import FILTER_KINDS
from cubesched.plugins.listing import Surroundings
from cubesched.policy.compiler import compile_set
from cubesched.policy.objects import PolicyObject

KEYS = "not in profileRouteLabelKeys of SchedulerConfig/default; allowed: workload"
GUARD = "'cpu' is a guard: always on, it cannot be listed"
NO_ROUTE = "needs instanceTypes or labels, unless default is true"
Row = tuple[Mapping[str, Any], str, str]


def route(**spec: Any) -> Mapping[str, Any]:
    return {"route": spec}


def filters(*entries: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"filters": list(entries)}


def scores(*entries: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"scores": list(entries)}


def image_score(**fields: Any) -> Mapping[str, Any]:
    return scores({"name": "image_score", **fields})


def expr_filter(text: object, **fields: Any) -> Mapping[str, Any]:
    return filters({"name": "mine", "type": "expr", "expr": text, **fields})


def grpc_filter(path: object, **fields: Any) -> Mapping[str, Any]:
    return filters({"name": "far", "type": "grpc", "socketPath": path, **fields})


def expr_score(text: object) -> Mapping[str, Any]:
    return scores({"name": "mine", "type": "expr", "expr": text})


ROUTES: Mapping[str, Row] = {
    "label key is empty": (
        route(labels={"": "x"}),
        "spec.route.labels.",
        "a label key must not be empty",
    ),
    "label key is not listed": (
        route(labels={"team": "x"}),
        "spec.route.labels.team",
        KEYS,
    ),
    "label value is no text": (
        route(labels={"workload": 5}),
        "spec.route.labels.workload",
        "input should be a valid string, not 5",
    ),
    "nothing is routed": ({"route": {}}, "spec.route", NO_ROUTE),
    "no route": ({"route": None}, "spec.route", NO_ROUTE),
    "default with a route": (
        {"default": True, "route": {"labels": {"workload": "x"}}},
        "spec.route",
        "a default Profile takes what no other does: no route",
    ),
    "instance type is no expression": (
        route(instanceTypes=["a", "("]),
        "spec.route.instanceTypes[1]",
        "not a regular expression: missing ), unterminated subpattern at position 0",
    ),
    "instance type is not RE2": (
        route(instanceTypes=["(?=a)"]),
        "spec.route.instanceTypes[0]",
        "lookarounds are not part of RE2",
    ),
    "instance type is empty": (
        route(instanceTypes=[""]),
        "spec.route.instanceTypes[0]",
        "string should have at least 1 character, not ''",
    ),
    "too many instance types": (
        route(instanceTypes=["a"] * 17),
        "spec.route.instanceTypes",
        "list should have at most 16 items, not 17",
    ),
}

CHOICES: Mapping[str, Row] = {
    "topN below -1": (
        {"selection": {"topN": -2}},
        "spec.selection.topN",
        "input should be greater than or equal to -1, not -2",
    ),
    "topN 0": (
        {"selection": {"topN": 0}},
        "spec.selection.topN",
        "must be at least 1, or -1 for all nodes, not 0",
    ),
    "method": (
        {"selection": {"method": "best"}},
        "spec.selection.method",
        "input should be 'highest', 'spread' or 'random', not 'best'",
    ),
    "filter policy": (
        {"failure": {"filter": "open"}},
        "spec.failure.filter",
        "input should be 'fail-closed' or 'fail-open', not 'open'",
    ),
    "score policy": (
        {"failure": {"score": "skip"}},
        "spec.failure.score",
        "input should be 'default-score' or 'fail-closed', not 'skip'",
    ),
    "no-candidate policy": (
        {"failure": {"noCandidate": "wait"}},
        "spec.failure.noCandidate",
        "input should be 'backoff' or 'fail', not 'wait'",
    ),
    "no policy for guards": (
        {"failure": {"guard": "fail-open"}},
        "spec.failure.guard",
        "unknown field; known are filter, noCandidate, score",
    ),
    "mode": (
        {"mode": "On"},
        "spec.mode",
        "input should be 'Active' or 'Disabled', not 'On'",
    ),
    "order": (
        {"order": 1.5},
        "spec.order",
        "input should be a valid integer, not 1.5",
    ),
    "unknown field": ({"ordr": 5}, "spec.ordr", 'unknown field; did you mean "order"?'),
}

PLUGINS: Mapping[str, Row] = {
    "guard as filter": (filters({"name": "cpu"}), "spec.filters[0].name", GUARD),
    "guard as score": (scores({"name": "cpu"}), "spec.scores[0].name", GUARD),
    "guard's name on an expression": (
        expr_filter("true", name="cpu"),
        "spec.filters[0].name",
        GUARD,
    ),
    "filter twice": (
        filters({"name": "scarce_resource"}, {"name": "scarce_resource"}),
        "spec.filters[1].name",
        "'scarce_resource' is listed twice",
    ),
    "score twice, once disabled": (
        scores({"name": "image_score"}, {"name": "image_score", "enabled": False}),
        "spec.scores[1].name",
        "'image_score' is listed twice",
    ),
    "name of another type": (
        filters(
            {"name": "scarce_resource"},
            {"name": "scarce_resource", "type": "expr", "expr": "true"},
        ),
        "spec.filters[1].name",
        "'scarce_resource' is listed twice",
    ),
    "no name": (filters({"type": "builtin"}), "spec.filters[0].name", "Field required"),
    "name is empty": (
        expr_filter("true", name=""),
        "spec.filters[0].name",
        "string should have at least 1 character, not ''",
    ),
    "unknown filter": (
        filters({"name": "node_label"}),
        "spec.filters[0].name",
        'unknown built-in filter "node_label"; did you mean "node_labels"?',
    ),
    "unknown score": (
        scores({"name": "image_scor"}),
        "spec.scores[0].name",
        'unknown built-in score "image_scor"; did you mean "image_score"?',
    ),
    "score as filter": (
        filters({"name": "image_score"}),
        "spec.filters[0].name",
        'unknown built-in filter "image_score"; known are node_labels, scarce_resource',
    ),
    "python plugin that is not installed": (
        filters({"name": "nowhere", "type": "python"}),
        "spec.filters[0].name",
        'no installed package offers the python filter "nowhere"; there are none',
    ),
    "unknown type": (
        filters({"name": "mine", "type": "go"}),
        "spec.filters[0].type",
        f"unknown type 'go'; allowed: {', '.join(FILTER_KINDS)}",
    ),
    "type is no text": (
        filters({"name": "mine", "type": ["expr"]}),
        "spec.filters[0].type",
        f"unknown type ['expr']; allowed: {', '.join(FILTER_KINDS)}",
    ),
    "type is empty": (
        filters({"name": "mine", "type": ""}),
        "spec.filters[0].type",
        f"unknown type ''; allowed: {', '.join(FILTER_KINDS)}",
    ),
    "too many": (
        scores(
            *({"name": f"s{number}", "type": "expr", "expr": f"{number}.0"} for number in range(33))
        ),
        "spec.scores",
        "list should have at most 32 items, not 33",
    ),
}

ARGUMENTS: Mapping[str, Row] = {
    "unknown argument": (
        image_score(args={"factrs": []}),
        "spec.scores[0].args.factrs",
        'unknown argument; did you mean "factors"?',
    ),
    "unknown factor": (
        image_score(args={"factors": ["templateid"]}),
        "spec.scores[0].args.factors",
        'unknown factor "templateid"; did you mean "template_id"?',
    ),
    "missing argument": (
        filters({"name": "node_labels"}),
        "spec.filters[0].args.matchLabels",
        "Field required",
    ),
    "disabled plugin's argument": (
        image_score(enabled=False, args={"factrs": []}),
        "spec.scores[0].args.factrs",
        'unknown argument; did you mean "factors"?',
    ),
    "field of another type": (
        image_score(expr="1.0"),
        "spec.scores[0]",
        "expr is for type expr only",
    ),
    "weight of a filter": (
        filters({"name": "scarce_resource", "weight": 1}),
        "spec.filters[0].weight",
        (
            "unknown field; known are args, circuitBreakerCooldown, circuitBreakerFailures,"
            " enabled, expr, name, socketPath, timeout, type"
        ),
    ),
    "weight 0": (
        image_score(weight=0),
        "spec.scores[0].weight",
        "input should be greater than 0, not 0",
    ),
    "weight below 0": (
        image_score(weight=-1),
        "spec.scores[0].weight",
        "input should be greater than 0, not -1",
    ),
    "weight NaN": (
        image_score(weight=math.nan),
        "spec.scores[0].weight",
        "input should be a finite number, not nan",
    ),
    "weight infinite": (
        image_score(weight=math.inf),
        "spec.scores[0].weight",
        "input should be a finite number, not inf",
    ),
    "weight is no number": (
        image_score(weight="2"),
        "spec.scores[0].weight",
        "input should be a valid number, not '2'",
    ),
    "defaultScore below 0": (
        image_score(defaultScore=-0.1),
        "spec.scores[0].defaultScore",
        "input should be greater than or equal to 0, not -0.1",
    ),
    "defaultScore above 100": (
        image_score(defaultScore=100.1),
        "spec.scores[0].defaultScore",
        "input should be less than or equal to 100, not 100.1",
    ),
    "defaultScore NaN": (
        image_score(defaultScore=math.nan),
        "spec.scores[0].defaultScore",
        "input should be a finite number, not nan",
    ),
}

SOCKETS: Mapping[str, Row] = {
    "is missing": (
        filters({"name": "far", "type": "grpc"}),
        "spec.filters[0].socketPath",
        "missing: give the whole path of the server's socket, within /run/cube",
    ),
    "is relative": (
        grpc_filter("far.sock"),
        "spec.filters[0].socketPath",
        "'far.sock' is relative; give the whole path, within /run/cube",
    ),
    "is outside": (
        grpc_filter("/run/cube/../far.sock"),
        "spec.filters[0].socketPath",
        "'/run/cube/../far.sock' is not within /run/cube, the operator's plugin directory",
    ),
    "is too long": (
        grpc_filter(f"/run/cube/{'x' * 98}"),
        "spec.filters[0].socketPath",
        "is 108 bytes long; a Unix socket's path has at most 107",
    ),
    "is no text": (
        grpc_filter(5),
        "spec.filters[0].socketPath",
        "input should be a valid string, not 5",
    ),
    "has args": (
        grpc_filter("/run/cube/far.sock", args={"a": 1}),
        "spec.filters[0]",
        "args is for type builtin or python only",
    ),
}

WAITED_FOR: Mapping[str, Row] = {
    "timeout": (
        filters({"name": "p", "type": "python", "timeout": "11s"}),
        "spec.filters[0].timeout",
        "'11s' is out of range: must be a duration from 1ms to 10s, as in 90s or 1h30m",
    ),
    "failures": (
        filters({"name": "p", "type": "python", "circuitBreakerFailures": 0}),
        "spec.filters[0].circuitBreakerFailures",
        "input should be greater than or equal to 1, not 0",
    ),
    "cooldown": (
        filters({"name": "p", "type": "python", "circuitBreakerCooldown": "1d"}),
        "spec.filters[0].circuitBreakerCooldown",
        "'1d' is not a duration: write numbers with ms, s, m or h, as in 90s or 1h30m",
    ),
}

EXPRESSIONS: Mapping[str, Row] = {
    "is missing": (
        filters({"name": "mine", "type": "expr"}),
        "spec.filters[0].expr 1:1",
        "the expression is empty",
    ),
    "is empty": (expr_filter(""), "spec.filters[0].expr 1:1", "the expression is empty"),
    "is no text": (
        expr_filter(5),
        "spec.filters[0].expr",
        "input should be a valid string, not 5",
    ),
    "is too long": (
        expr_filter("true||" * 682 + "true "),
        "spec.filters[0].expr 1:1",
        "the expression has 4097 characters; allowed are 4096",
    ),
    "ends too early": (
        expr_filter("node.creating <"),
        "spec.filters[0].expr 1:16",
        "the expression ends too early",
    ),
    "has an unknown field": (
        expr_filter("node.creating < 8\n  && node.nope"),
        "spec.filters[0].expr 2:11",
        "undefined field 'nope' of node",
    ),
    "mixes types": (
        expr_filter("node.cpu_util < 60"),
        "spec.filters[0].expr 1:17",
        "cannot compare double with int; write 60.0",
    ),
    "returns no bool as a filter": (
        expr_filter("node.creating"),
        "spec.filters[0].expr 1:6",
        "the expression returns int; wanted is bool",
    ),
    "returns a bool as a score": (
        expr_score("node.creating < 8"),
        "spec.scores[0].expr 1:6",
        "the expression returns bool; wanted is double or int: write ... ? 100.0 : 0.0",
    ),
    "returns a string as a score": (
        expr_score("'a'"),
        "spec.scores[0].expr 1:1",
        "the expression returns string; wanted is double or int",
    ),
    "has args": (
        expr_filter("true", args={"a": 1}),
        "spec.filters[0]",
        "args is for type builtin or python only",
    ),
}


def rows(*tables: Mapping[str, Row]) -> list[Any]:
    return [pytest.param(*row, id=name) for table in tables for name, row in table.items()]


def problems_of(*profiles: PolicyObject, config: PolicyObject | None = None) -> list[str]:
    result = compile_set(profiles, config)
    assert (result.policy is None) == bool(result.problems)
    return [problem.text for problem in result.problems]


@pytest.mark.parametrize(
    ("spec", "path", "words"), rows(ROUTES, CHOICES, PLUGINS, ARGUMENTS, EXPRESSIONS, SOCKETS)
)
def test_an_error_of_a_profile_keeps_the_set_from_running_and_is_told_once(
    spec: dict[str, Any], path: str, words: str
) -> None:
    assert problems_of(a_profile("burst", **spec), a_profile("other")) == [
        f"SchedulerProfile/burst: {path}: {words}"
    ]


@pytest.mark.parametrize(("spec", "path", "words"), rows(WAITED_FOR))
def test_an_error_of_an_entry_that_is_waited_for_is_told_once(
    spec: dict[str, Any], path: str, words: str
) -> None:
    around = Surroundings(is_elsewhere=True)  # what is installed here does not matter

    (problem,) = compile_set([a_profile("burst", **spec)], None, around).problems
    assert problem.detail == f"{path}: {words}"


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        pytest.param(
            {"profileRouteLabelKeys": ["a", "b", "a"]},
            "spec.profileRouteLabelKeys",
            "lists a more than once",
            id="route label twice",
        ),
        pytest.param(
            {"profileRouteLabelKeys": [""]},
            "spec.profileRouteLabelKeys[0]",
            "string should have at least 1 character, not ''",
            id="route label is empty",
        ),
        pytest.param(
            {"overcommit": {"cpu": 0.5}},
            "spec.overcommit.cpu",
            "input should be greater than or equal to 1, not 0.5",
            id="over-commit below 1",
        ),
        pytest.param(
            {"guards": {"memoryReserved": 0.5}},
            "spec.guards.memoryReserved",
            "0.5 is a YAML float: quote it, as in '0.5'",
            id="quantity without quotes",
        ),
        pytest.param(
            {"score": {"plugins": {"image_scor": {}}}},
            "spec.score.plugins.image_scor",
            'unknown built-in score "image_scor"; did you mean "image_score"?',
            id="unknown score in the tree",
        ),
        pytest.param(
            {"score": {"resourceWeights": {"cpu_utils": 1}}},
            "spec.score.resourceWeights.cpu_utils",
            'unknown factor "cpu_utils"; did you mean "cpu_util"?',
            id="unknown factor in the tree",
        ),
    ],
)
def test_an_error_of_the_config_keeps_the_set_from_running_and_is_told_once(
    spec: dict[str, Any], path: str, words: str
) -> None:
    assert problems_of(config=a_config(**spec)) == [f"SchedulerConfig/default: {path}: {words}"]


def test_errors_that_only_the_whole_set_shows() -> None:
    twice = problems_of(a_profile("a"), raw_profile("a", {"default": True}, uid="other"))
    defaults = problems_of(
        a_profile("a", default=True), a_profile("b", default=True), a_profile("c", default=True)
    )
    legacy = problems_of(a_profile("a", default=True), config=a_config(legacy={}))

    assert twice == ["SchedulerProfile/a: metadata.name: 2 Profiles have this name"]
    assert defaults == [
        "SchedulerProfile/a: spec.default: b, c is the default as well",
        "SchedulerProfile/b: spec.default: a, c is the default as well",
        "SchedulerProfile/c: spec.default: a, b is the default as well",
    ]
    assert legacy == [
        (
            "SchedulerProfile/a: spec.default: spec.legacy of SchedulerConfig/default is the"
            ' default Profile "default"'
        ),
        "SchedulerConfig/default: spec.legacy: a is the default Profile as well",
    ]


def test_names_are_needed_and_the_config_has_one_name() -> None:
    assert problems_of(raw_profile("", {"default": True})) == [
        "SchedulerProfile/: metadata.name: must not be empty"
    ]
    assert problems_of(config=a_config(name="mine")) == [
        'SchedulerConfig/mine: metadata.name: must be "default": there is one SchedulerConfig'
    ]


def test_a_score_without_factors_of_its_own_is_no_error() -> None:
    """CubeMaster crashed on a score that its configuration said nothing about."""
    for name in ("real_time_weighted_average", "multi_factor_weighted_average", "image_score"):
        assert problems_of(a_profile("a", scores=[{"name": name}])) == []


GOOD: Mapping[str, Any] = {
    "order": 5,
    "mode": "Active",
    "route": {"labels": {"workload": "burst"}, "instanceTypes": ["a.*"]},
    "filters": [
        {"name": "node_labels", "args": {"matchLabels": {"zone": "z1"}}},
        {"name": "quiet", "type": "expr", "expr": "node.creating < 8"},
        {"name": "far", "type": "grpc", "socketPath": "/run/cube/a.sock", "timeout": "1s"},
    ],
    "scores": [{"name": "image_score", "weight": 2, "args": {"factors": {"template_id": 1}}}],
    "selection": {"topN": 3, "method": "spread"},
    "failure": {"filter": "fail-open"},
}
GOOD_CONFIG: Mapping[str, Any] = {
    "profileRouteLabelKeys": ["workload"],
    "overcommit": {"cpu": 1.5},
    "guards": {"memoryReserved": "1Gi", "metricsMaxAge": "60s"},
    "score": {"resourceWeights": {"cpu_util": 1}, "plugins": {"image_score": {"factors": []}}},
    "queue": {"initialBackoff": "1s"},
    "confirmation": "operator",
    "legacy": {
        "filter": {"enableFilters": ["cpu"]},
        "score": {"enableScorers": ["image_score"], "resourceWeights": {"template_id": 1}},
        "leastSelectName": "random",
    },
}
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1 << 70, 0.5, math.nan, math.inf, "", "x", "\ud800", "\n", "x" * 5000),
    *([], [None], [[]], [{}], ["x", "x"], {}, {"": ""}, {"x": None}, {"name": ["x"]}),
)


def with_one_odd_value(spec: Any) -> Iterator[Any]:
    """Yield the value with each part of it, and itself, in turn replaced by each odd one."""
    yield from ODD
    places = spec.items() if isinstance(spec, Mapping) else enumerate(_entries(spec))
    for place, inner in places:
        for odd in with_one_odd_value(inner):
            changed = copy(spec)
            changed[place] = odd
            yield changed


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def test_no_odd_value_anywhere_in_a_set_raises_anything() -> None:
    assert not problems_of(a_profile("burst", **GOOD))
    profiles = [raw_profile("burst", spec) for spec in with_one_odd_value(GOOD)]
    configs = [replace(a_config(), spec=spec) for spec in with_one_odd_value(GOOD_CONFIG)]

    refused = [profile for profile in profiles if problems_of(profile)]
    assert len(profiles) > 700
    assert len(refused) > len(profiles) / 2
    assert len([config for config in configs if problems_of(config=config)]) > len(configs) / 2
