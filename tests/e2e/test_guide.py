"""The Profile of CubeSandbox's guide, key by key, with its plugin killed and brought back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml
from tests.e2e.operating import Operating, a_request, wait_until

ROOT = Path(__file__).parents[2]
PLUGIN = """
import sys
from cubesched.plugins.rpc.server import Fleet, Request, Server

server = Server("company-policy")

@server.filter()
def allowed(fleet: Fleet, request: Request):
    return fleet.id != "node-003"

server.run(sys.argv[1])
"""
PROFILE = """
apiVersion: cubesched.io/v1alpha1
kind: SchedulerConfig
metadata: {{name: default}}
spec:
  profileRouteLabelKeys: [workload]
---
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {{name: rest}}
spec: {{default: true}}
---
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {{name: burst}}
spec:
  route:
    labels: {{workload: burst}}
  filters:
  - name: skip-high-create
    type: expr
    expr: "node.creating < 8"
  - name: company-policy
    type: grpc
    socketPath: {socket}
    timeout: 500ms
    circuitBreakerFailures: 3
    circuitBreakerCooldown: 2s
  scores:
  - name: prefer-idle
    type: expr
    expr: "node.cpu_util < 60.0 ? 80.0 : 20.0"
    weight: 2
  selection: {{topN: 5, method: spread}}
  failure:
    filter: fail-closed
    score: default-score
    noCandidate: fail
"""


class Plugin:
    """The company's server, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "company-scheduler.sock"
        self._program = directory / "company.py"
        self._program.write_text(PLUGIN)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(self._program), str(self.socket)],
            env=os.environ | {"PYTHONPATH": str(ROOT / "operator")},
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
            self._process = None


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    found = Plugin(Path(mkdtemp(prefix="cube")))
    yield found
    found.kill()


def condition(operating: Operating, kind: str) -> str:
    """Return a condition of the Profile as `True/Running`."""
    for each in operating.get("sprof", "burst").get("status", {}).get("conditions", ()):
        if each["type"] == kind:
            return f"{each['status']}/{each['reason']}"
    return ""


def settled(operating: Operating, prefix: str) -> int:
    """Return how many requests of this prefix are placed."""
    return sum(
        item.get("status", {}).get("phase") in {"Bound", "Starting", "Running"}
        for item in operating.items()
        if item["metadata"]["name"].startswith(prefix)
    )


def test_the_guides_profile_places_waits_and_goes_on(operating: Operating, plugin: Plugin) -> None:
    operating.start_nodes(6, "--cpu", "16", "--memory", "64Gi")
    operating.start_auditor()
    operating.launch_replica("a", "--plugin-directory", str(plugin.socket.parent))
    operating.wait_ready("a")
    plugin.start()
    operating.apply(*yaml.safe_load_all(PROFILE.format(socket=plugin.socket)))
    wait_until(lambda: condition(operating, "Active") == "True/Running", what="Active")
    wait_until(lambda: condition(operating, "PluginsHealthy") == "True/Healthy", what="healthy")

    burst: dict[str, Any] = {"labels": {"workload": "burst"}, "cpu": "500m"}
    operating.create_all(a_request(f"one-{n}", **burst) for n in range(20))
    wait_until(lambda: settled(operating, "one-") == 20, what="20 placed by the guide's Profile")
    nodes = {item["status"]["nodeName"] for item in operating.items()}
    assert "node-003" not in nodes
    assert len(nodes) == 5  # spread over all that its plugin lets it

    plugin.kill()
    operating.create_all(a_request(f"two-{n}", **burst) for n in range(20))
    operating.create_all(a_request(f"rest-{n}", cpu="500m") for n in range(20))
    wait_until(lambda: settled(operating, "rest-") == 20, seconds=15, what="others go on")
    wait_until(
        lambda: all(operating.reason(f"two-{n}") == "PluginFailed" for n in (0, 19)),
        what="those that need the plugin wait, and say why",
    )
    assert settled(operating, "two-") == 0
    wait_until(lambda: condition(operating, "PluginsHealthy").startswith("False/"), what="ill")
    assert condition(operating, "Active") == "True/Running"
    assert operating.metric("a", "cubesched_plugin_failures_total", plugin="company-policy") > 0

    plugin.start()
    wait_until(lambda: settled(operating, "two-") == 20, seconds=60, what="the rest is placed")
    wait_until(lambda: condition(operating, "PluginsHealthy") == "True/Healthy", what="healthy")
    assert "node-003" not in {
        item["status"]["nodeName"]
        for item in operating.items()
        if item["metadata"]["name"].startswith(("one-", "two-"))
    }
    assert operating.audit()["violations"] == 0
