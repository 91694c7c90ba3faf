"""The example server, started as its README says, runs what its Profile lists."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot
from tests.unit.plugins.rpc.processes import ONE_LOOP
from tests.unit.policy.builders import raw_profile

from cubesched.core.cycle import decide_waiting
from cubesched.core.decision import Decision, Placed, Reason, Rejected
from cubesched.plugins.listing import Surroundings
from cubesched.policy.compiler import compile_set

EXAMPLE = Path(__file__).parents[4] / "deploy" / "examples" / "scheduler-plugin"
SOCKET = "/run/cube/example.sock"


@dataclass
class Example:
    """The server, and the operator's side of it."""

    folder: Path
    server: subprocess.Popen[str]

    @property
    def maintenance(self) -> Path:
        """The file that the filter reads."""
        return self.folder / "maintenance"

    async def decided(self, *nodes: NodeFacts, workload: str = "outside") -> Decision:
        """Decide as the Profile says."""
        around = Surroundings(plugin_directory=str(self.folder))
        result = compile_set([raw_profile("outside", self._spec())], None, around)
        assert result.policy is not None, result.problems
        pipeline = result.policy.profiles[0].pipeline
        around.hosts.run([pipeline])
        request = a_request(labels={"workload": workload})
        try:
            return (await decide_waiting(a_snapshot(nodes), request, pipeline))[0]
        finally:
            await around.hosts.close()

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = yaml.safe_load((EXAMPLE / "profile.yaml").read_text())["spec"]
        for plugin in (*spec["filters"], *spec["scores"]):
            if plugin.get("type") == "grpc":
                assert plugin["socketPath"] == SOCKET
                plugin["socketPath"] = f"{self.folder}/example.sock"
                plugin["timeout"] = "10s"  # however busy the machine of the test is
        return spec


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    command = (sys.executable, str(EXAMPLE / "server.py"), f"{tmp_path}/example.sock")
    with subprocess.Popen(
        [*command, f"{tmp_path}/maintenance"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        assert "example listens at" in server.stderr.readline()
        yield Example(tmp_path, server)
        server.kill()


@ONE_LOOP
async def test_nodes_in_maintenance_are_left_out_and_cool_ones_preferred(example: Example) -> None:
    nodes = [
        a_node("hot", cpu_util_percent=79.0),
        a_node("cool", cpu_util_percent=5.0),
        a_node("silent", cpu_util_percent=float("nan")),
    ]
    everywhere = await example.decided(*nodes)
    example.maintenance.write_text("cool\nelsewhere\n")
    without = await example.decided(*nodes)

    assert isinstance(everywhere, Placed)
    assert everywhere.feasible == 3
    assert {part.plugin: part.score for part in everywhere.parts}["cool"] in (21.0, 95.0, 50.0)
    assert isinstance(without, Placed)
    assert without.feasible == 2
    assert without.node != "cool"


@ONE_LOOP
async def test_the_score_does_not_apply_to_batch_work(example: Example) -> None:
    decision = await example.decided(a_node("n1"), workload="batch")

    assert isinstance(decision, Placed)
    assert [part.plugin for part in decision.parts] == ["least_allocated"]


@ONE_LOOP
async def test_a_server_that_is_gone_ends_attempts_as_its_profile_says(example: Example) -> None:
    example.server.send_signal(signal.SIGTERM)
    example.server.wait(30)

    decision = await example.decided(a_node("n1"))

    assert isinstance(decision, Rejected)
    assert (decision.reason, decision.failed_plugin) == (
        Reason.PLUGIN_FAILED,
        "not_in_maintenance",
    )
    assert not (example.folder / "example.sock").exists()


def test_the_server_in_the_readme_is_one() -> None:
    text = (EXAMPLE / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    runs: list[str] = []
    quiet = code.replace('server.run("', 'runs.append("')
    names: dict[str, Any] = {"runs": runs}

    exec(compile(quiet, "README.md", "exec"), names)

    assert runs == ["/run/cube/mine.sock"]
    assert list(names["server"]._filters) == ["few_creates"]
