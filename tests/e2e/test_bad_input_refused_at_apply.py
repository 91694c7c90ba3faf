"""What one object alone shows to be wrong is refused at apply; the message names the field."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Kubectl = Callable[..., CompletedProcess[str]]

HEAD = "apiVersion: cubesched.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: "
PROFILE = HEAD % ("SchedulerProfile", "bad") + "%s"
CONFIG = HEAD % ("SchedulerConfig", "%s") + "%s"
NODE = HEAD % ("SandboxNode", "bad") + "%s"
REQUEST = HEAD % ("SandboxRequest", "bad") + "{resources: {cpu: %s, memory: %s}}"
QUANTITY = "must be a quantity"


def applied(kubectl: Kubectl, text: str) -> CompletedProcess[str]:
    return kubectl("apply", "--dry-run=server", "-f", "-", input=text, check=False)


def refusal(kubectl: Kubectl, text: str) -> str:
    answer = applied(kubectl, text)
    assert answer.returncode == 1, answer.stdout
    return answer.stderr


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        ("scores: [{name: x, weight: 0}]", "spec.scores[0].weight", "greater than 0"),
        ("scores: [{name: x, weight: -1}]", "spec.scores[0].weight", "greater than 0"),
        ("scores: [{name: x, weight: NaN}]", "spec.scores[0].weight", "must be of type number"),
        ("scores: [{name: x, weight: 1e400}]", "spec.scores[0].weight", "must be of type number"),
        ("scores: [{name: x, weight: 1e300}]", "spec.scores[0].weight", "less than or equal"),
        ("scores: [{name: x, defaultScore: 101}]", "spec.scores[0].defaultScore", "less than"),
        ("selection: {method: best}", "spec.selection.method", '"highest", "spread", "random"'),
        ("selection: {topN: 0}", "spec.selection.topN", "at least 1, or -1 for all nodes"),
        ("selection: {topN: -2}", "spec.selection.topN", "at least 1, or -1 for all nodes"),
        ("filters: [{name: cpu}]", "spec.filters[0].name", "cpu is a guard: it is always on"),
        ("filters: [{name: a, type: go}]", "spec.filters[0].type", '"builtin"'),
        ("filters: [{name: a, type: expr}]", "spec.filters[0]", "type expr needs expr"),
        ("filters: [{name: a}, {name: a}]", "spec.filters[1]", "Duplicate value"),
        ("failure: {score: ignore}", "spec.failure.score", '"default-score", "fail-closed"'),
        ("mode: Shadow", "spec.mode", '"Active", "Disabled"'),
        ("order: 1.5", "spec.order", "must be of type integer"),
        ("colour: red", "spec.colour", "unknown field"),
        ("route: {labels: {a: b}}", "spec.route", "a default Profile takes what no other takes"),
    ],
)
def test_a_profile_is_refused_with_the_path(
    kubectl: Kubectl, spec: str, field: str, what: str
) -> None:
    message = refusal(kubectl, PROFILE % f"{{default: true, {spec}}}")

    assert field in message
    assert what in message


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        ("{}", "spec.route", "needs instanceTypes or labels"),
        ("{route: {}}", "spec.route", "needs instanceTypes or labels"),
        ('{route: {labels: {"a b": c}}}', "spec.route.labels", "must be a label key"),
        ('{route: {labels: {a: "b c"}}}', "spec.route.labels.a", "should match"),
        ('{route: {instanceTypes: ["(a"]}}', "spec.route.instanceTypes[0]", "missing closing )"),
        ('{route: {instanceTypes: ["(?=a)"]}}', "spec.route.instanceTypes[0]", "Perl syntax"),
    ],
)
def test_a_route_is_refused_with_the_path(
    kubectl: Kubectl, spec: str, field: str, what: str
) -> None:
    message = refusal(kubectl, PROFILE % spec)

    assert field in message
    assert what in message


def test_a_weight_that_is_no_number_in_yaml_stops_in_kubectl(kubectl: Kubectl) -> None:
    message = refusal(kubectl, PROFILE % "{default: true, scores: [{name: x, weight: .nan}]}")

    assert "unsupported value: NaN" in message


@pytest.mark.parametrize(
    "memory", ["1.5Gi", "100m", "1e3", '"1e3"', '"0.5"', "1.", "+1", "129e6", "1Ki", "1k", "4096"]
)
def test_a_quantity_of_memory_is_taken(kubectl: Kubectl, memory: str) -> None:
    assert applied(kubectl, REQUEST % ("1", memory)).returncode == 0


@pytest.mark.parametrize("cpu", ["1", '"1"', "100m", '"0.5"', '".5"', "1e3", "1.5k"])
def test_a_quantity_of_cpu_is_taken(kubectl: Kubectl, cpu: str) -> None:
    assert applied(kubectl, REQUEST % (cpu, "1Gi")).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        *("0", '"0"', "-1", '"-1"', '"-0.1"', "NaN", "inf", '"1 Gi"', '" 1Gi"', '"1Gi "'),
        *('"1Gi\\n"', '""', "1gi", "1KI", "1K", "1e3Mi", '"1_000"', '"0x10"', '"--1"', '"true"'),
        *('"\uff11"', "1e400", '"1e-300"', "2E602486527", "2P", "1E"),
    ],
)
def test_a_memory_that_is_no_quantity_in_range_is_refused(kubectl: Kubectl, text: str) -> None:
    message = refusal(kubectl, REQUEST % ("1", text))

    assert "spec.resources.memory" in message
    assert QUANTITY in message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0.5", "must be of type integer,string"),
        ("true", "must be of type integer,string"),
        ("null", "Required value"),
        ("123456789012345678901234567890", "must be of type integer,string"),
        ('"123456789012345678901234567890"', "may not be more than 20 bytes"),
    ],
)
@pytest.mark.parametrize("field", ["cpu", "memory"])
def test_a_quantity_of_the_wrong_shape_is_refused(
    kubectl: Kubectl, field: str, text: str, what: str
) -> None:
    values = (text, "1Gi") if field == "cpu" else ("1", text)

    message = refusal(kubectl, REQUEST % values)

    assert f"spec.resources.{field}" in message
    assert what in message


def test_the_text_of_a_field_says_to_quote_a_fraction(kubectl: Kubectl) -> None:
    text = kubectl("explain", "sandboxrequest.spec.resources.cpu").stdout

    assert "quote a fraction" in text


@pytest.mark.parametrize(
    ("name", "spec", "field", "what"),
    [
        ("other", "{}", "SchedulerConfig", "the only SchedulerConfig is named default"),
        ("default", "{guards: {metricsMaxAge: 1d}}", "spec.guards.metricsMaxAge", "5s to 1h"),
        ("default", "{guards: {metricsMaxAge: 4s}}", "spec.guards.metricsMaxAge", "5s to 1h"),
        ("default", "{guards: {memoryReserved: -1}}", "spec.guards.memoryReserved", QUANTITY),
        ("default", "{guards: {maxCpuUtilPercent: 0}}", "spec.guards.maxCpuUtilPercent", "to 1"),
        ("default", "{queue: {initialBackoff: 20s}}", "spec.queue", "not be longer"),
        ("default", "{overcommit: {cpu: 0.5}}", "spec.overcommit.cpu", "to 1"),
        ("default", "{profileRouteLabelKeys: [a, a]}", "spec.profileRouteLabelKeys[1]", "Dupl"),
        ("default", "{confirmation: nobody}", "spec.confirmation", '"operator"'),
        ("default", "{score: {resourceWeights: {a: -1}}}", "spec.score.resourceWeights.a", "to 0"),
        ("default", "{score: {resourceWeights: {a: 2e6}}}", "spec.score.resourceWeights.a", "less"),
        ("default", "{score: {resourceWeights: {a: NaN}}}", "resourceWeights.a", "type number"),
        ("default", f"{{score: {{plugins: {{{'p' * 64}: {{}}}}}}}}", "spec.score.plugins", "63"),
        ("default", "{score: {plugins: {a: {factors: [b, b]}}}}", "plugins[a].factors[1]", "Dupl"),
        ("default", "{score: {plugins: {a: {factor: [b]}}}}", "plugins.a.factor", "unknown field"),
        ("default", "{legacy: {leastSelectName: sw}}", "legacy.leastSelectName", '"random", "rw"'),
        ("default", "{legacy: {prioritySelectNum: 0}}", "legacy.prioritySelectNum", "or -1 for"),
        ("default", "{legacy: {postscore: {paramFactor: 0}}}", "postscore.paramFactor", "than 0"),
        ("default", "{legacy: {postscore: {activeWhiteList: [A]}}}", "WhiteList[0]", "match"),
    ],
)
def test_a_config_is_refused_with_the_path(
    kubectl: Kubectl, name: str, spec: str, field: str, what: str
) -> None:
    message = refusal(kubectl, CONFIG % (name, spec))

    assert field in message
    assert what in message


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        ("{capacity: {cpu: 0, memory: 1}}", "spec.capacity.cpu", QUANTITY),
        ("{capacity: {cpu: 0.1m, memory: 1}}", "spec.capacity.cpu", QUANTITY),
        ("{capacity: {memory: 1}}", "spec.capacity.cpu", "Required value"),
        ("{capacity: {cpu: 1, memory: 1}, quota: {sandboxes: 0}}", "spec.quota.sandboxes", "to 1"),
        (
            '{capacity: {cpu: 1, memory: 1}, taints: [{key: a, effect: "Never"}]}',
            "spec.taints[0].effect",
            '"NoSchedule"',
        ),
    ],
)
def test_a_node_is_refused_with_the_path(
    kubectl: Kubectl, spec: str, field: str, what: str
) -> None:
    message = refusal(kubectl, NODE % spec)

    assert field in message
    assert what in message


def nested(depth: int) -> str:
    """Return args with so many maps inside each other."""
    return "{a: " * depth + "1" + "}" * depth


@pytest.mark.parametrize("field", ["filters", "scores"])
def test_arguments_that_are_nested_too_deeply_for_any_reader_are_refused(
    kubectl: Kubectl, field: str
) -> None:
    entry = f"{field}: [{{name: mine, type: python, args: %s}}]"

    for deep in (nested(4), nested(2_000), "{a: [[[1]]]}", "{a: {b: [{c: 1}]}}"):
        message = refusal(kubectl, PROFILE % f"{{default: true, {entry % deep}}}")
        assert f"spec.{field}[].args: lists and maps are nested more than 3 deep" in message
    for shallow in (nested(3), "{a: [[1, x]], b: {c: [1.5, true]}}"):
        answer = applied(kubectl, PROFILE % f"{{default: true, {entry % shallow}}}")
        assert answer.returncode == 0, answer.stderr
