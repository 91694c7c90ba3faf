"""The example package, built and installed as its README says, runs what its Profile lists."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot
from tests.unit.policy.builders import raw_profile

from cubesched.core.cycle import decide_waiting
from cubesched.core.decision import Decision, Placed
from cubesched.core.pipeline import Pipeline
from cubesched.plugins.listing import Surroundings
from cubesched.plugins.python.installed import Installed
from cubesched.policy.compiler import CompileResult, compile_set

EXAMPLE = Path(__file__).parents[4] / "deploy" / "examples" / "python-plugin"
RACK = "topology.example.com/rack"
GIB = 1 << 30


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    """What is installed once the example is: the package stands on the path of this process."""
    target = tmp_path_factory.mktemp("site-packages")
    command = (
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
        *("--no-build-isolation", "--disable-pip-version-check", "--target", str(target)),
    )
    subprocess.run([*command, str(EXAMPLE)], check=True, timeout=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(target)
        yield Surroundings(installed=Installed())
    sys.modules.pop("rack_plugins", None)


def the_profile(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((EXAMPLE / "profile.yaml").read_text())["spec"]
    for plugin in (*spec["filters"], *spec["scores"]):
        if plugin.get("type") == "python":
            plugin["timeout"] = "10s"  # however busy the machine of the test is
    return {**spec, **changes}


def compiled(around: Surroundings, spec: dict[str, Any]) -> CompileResult:
    return compile_set([raw_profile("racks", spec)], None, around)


async def decided(around: Surroundings, *nodes: NodeFacts, priority: int = 0) -> Decision:
    result = compiled(around, the_profile())
    assert result.policy is not None, result.problems
    pipeline: Pipeline = result.policy.profiles[0].pipeline
    request = a_request(priority=priority, labels={"workload": "racks"})
    return (await decide_waiting(a_snapshot(nodes), request, pipeline))[0]


def in_rack(name: str, rack: str, **facts: Any) -> NodeFacts:
    return a_node(name, labels={RACK: rack}, **facts)


def test_the_package_offers_both_plugins(around: Surroundings) -> None:
    assert {"rack_pace", "memory_headroom"} <= set(around.installed.names())


async def test_the_filter_counts_over_all_nodes_of_a_rack(around: Surroundings) -> None:
    decision = await decided(
        around,
        in_rack("n1", "r1", creating=6),
        in_rack("n2", "r1", creating=4),
        in_rack("n3", "r2", creating=9, sandboxes=99),
        a_node("n4", creating=50, sandboxes=100),
    )

    assert isinstance(decision, Placed)
    assert [(count.plugin, count.rejected) for count in decision.counts] == [("rack_pace", 2)]
    assert decision.node == "n3"
    assert decision.faults == ()


async def test_the_score_rates_by_memory_that_is_really_free(around: Surroundings) -> None:
    decision = await decided(around, in_rack("n1", "r1", memory_really_used_bytes=55.0 * GIB))

    assert isinstance(decision, Placed)
    [headroom, _] = decision.parts
    assert (headroom.plugin, headroom.weight) == ("memory_headroom", 2)
    assert headroom.score == 50.0  # 55 used, 1 wanted, 8 in reserve, of 128


async def test_a_node_that_never_reported_its_memory_is_the_failure_policy_s(
    around: Surroundings,
) -> None:
    decision = await decided(
        around,
        in_rack("n1", "r1"),
        in_rack("n2", "r1", memory_really_used_bytes=float("nan")),
    )

    assert isinstance(decision, Placed)
    [fault] = decision.faults
    assert (fault.plugin, fault.policy) == ("memory_headroom", "default-score")
    assert fault.message == "on n2: UnknownFact: mem_usage_mb of this node is unknown"
    assert decision.parts[0].score == 50.0


async def test_urgent_requests_leave_the_score_out(around: Surroundings) -> None:
    decision = await decided(around, in_rack("n1", "r1"), priority=1000)

    assert isinstance(decision, Placed)
    assert [part.plugin for part in decision.parts] == ["least_allocated"]


def test_a_wrong_argument_is_named(around: Surroundings) -> None:
    filters = [{"name": "rack_pace", "type": "python", "args": {"mots": 3, "most": 0}}]
    result = compiled(around, the_profile(filters=filters))

    assert [problem.detail for problem in result.problems] == [
        "spec.filters[0].args.most: Input should be greater than or equal to 1",
        'spec.filters[0].args.mots: unknown argument; did you mean "most"?',
    ]
