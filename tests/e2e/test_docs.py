"""What the pages show works as it stands: every manifest, the client, and the example agent.

A block of `yaml` is a manifest that applies; what is none, or is wrong on purpose, is `yml`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from kubernetes import client
from tests.e2e.operating import Operating, a_request, wait_until
from typing_extensions import override

from cubesched.agent.simulation import node_user
from cubesched.api.rights import AGENT, GROUPS
from cubesched.local import LocalControlPlane
from cubesched.local.paths import cache_root

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
AGENT_EXAMPLE = ROOT / "deploy" / "examples" / "agent" / "agent.py"
NODE = "example-node"
START = "trap 'kill $(jobs -p) 2>/dev/null; cubesched local down' ERR\n"
"""Leaves nothing behind when a command of the tour fails."""


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the code blocks of a page that are in this language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    for found in re.finditer(pattern, page.read_text(), flags=re.DOTALL | re.MULTILINE):
        yield found[1]


MANIFESTS = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, text in enumerate(blocks(page, "yaml"), start=1)
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_of_a_page_applies(manifest: str, operating: Operating) -> None:
    try:
        answer = operating.kubectl("apply", "-f", "-", input=manifest)

        assert answer.stdout.count(" created") == manifest.count("\nkind: ") + manifest.startswith(
            "kind: "
        )
        assert answer.stderr == ""
    finally:
        operating.kubectl("delete", "--ignore-not-found", "-f", "-", input=manifest)


def test_the_tour_of_the_readme_runs_as_it_stands(
    control_plane: LocalControlPlane, tmp_path: Path
) -> None:
    """In a checkout and a cache of its own, so that no instance of the user's is in the way."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "deploy").symlink_to(ROOT / "deploy")
    (checkout / ".venv").symlink_to(sys.prefix)
    cache = tmp_path / "cache"
    (cache / "cubesched").mkdir(parents=True)
    (cache / "cubesched" / "bin").symlink_to(cache_root() / "bin")
    commands = [
        block for block in blocks(ROOT / "README.md", "bash") if not block.startswith("make ")
    ]
    tools = control_plane.binaries.kubectl.parent

    answer = subprocess.run(
        ["bash", "-c", "set -eumo pipefail\n" + "".join([START, *commands])],
        cwd=checkout,
        env=os.environ
        | {
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(ROOT / "operator"),
            "PATH": f"{os.environ['PATH']}:{tools}",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    said = answer.stdout
    assert answer.returncode == 0, said + answer.stderr
    assert "of 4 nodes feasible" in said
    assert "needs cpu 20000m, the largest has 8000m" in said
    assert 'did you mean \\"most_allocated\\"?' in said
    assert said.rstrip().endswith("control plane default stopped")


def test_the_client_of_the_page_on_requests_waits_until_its_sandbox_runs(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    (program,) = blocks(ROOT / "docs" / "requests.md", "python")
    operating.start_nodes(1)
    operating.start_replica()

    answer = subprocess.run(
        [sys.executable, "-c", program, "from-the-page"],
        env=os.environ | {"KUBECONFIG": str(control_plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split()[:2] == ["Running", "node-000"]


class Shaky(BaseHTTPRequestHandler):
    """An API server whose watches break in every way, and which has good news in the end."""

    watches: ClassVar[list[str]] = []
    ways: ClassVar = ("410 in the stream", "410", "503", "cut", "silence", "end")

    def do_GET(self) -> None:
        """Answer a read, or break a watch in the next way."""
        if "watch=" not in self.path:
            phase = "Running" if len(self.watches) == len(self.ways) else "Pending"
            self._answer(200, {"metadata": {"resourceVersion": "5"}, "status": {"phase": phase}})
            return
        way = self.ways[len(self.watches)]
        self.watches.append(way)
        if way in {"410", "503"}:
            self._answer(int(way), {"kind": "Status", "code": int(way)})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if way == "410 in the stream":
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            self.wfile.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
        elif way == "cut":
            self.wfile.write(b'{"type": "MODIF')
        elif way == "silence":
            time.sleep(0.4)

    def _answer(self, code: int, body: dict[str, object]) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    @override
    def log_message(self, *args: object) -> None:
        """Print nothing."""


def test_the_client_of_the_page_on_requests_survives_whatever_ends_its_watch() -> None:
    """A stream of 410, HTTP errors, cut lines and silence; each time it looks and goes on."""
    (program,) = blocks(ROOT / "docs" / "requests.md", "python")
    page: dict[str, Any] = {"__name__": "page"}
    exec(compile(program, "requests.md", "exec"), page)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shaky)
    Thread(target=server.serve_forever, daemon=True).start()
    configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
    try:
        with client.ApiClient(configuration) as connection:
            objects = client.CustomObjectsApi(connection)
            status = page["wait_until_it_runs"](objects, "shaky", timeout_seconds=30)
    finally:
        server.shutdown()
        server.server_close()

    assert status == {"phase": "Running"}
    assert tuple(Shaky.watches) == Shaky.ways


@contextmanager
def example_agent(
    operating: Operating, control_plane: LocalControlPlane, *command: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the example agent under its node's certificate until the block ends."""
    kubeconfig = control_plane.client_kubeconfig(node_user(NODE), [GROUPS[AGENT]])
    with (operating.directory / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(AGENT_EXAMPLE), NODE, "64", "16Gi", *command],
            env=os.environ
            | {
                "KUBECONFIG": str(kubeconfig),
                "CUBESCHED_REDIS_URL": control_plane.redis_url,
                "PYTHONPATH": str(ROOT / "operator"),
            },
            stderr=log,
        )
    try:
        wait_until(
            lambda: operating.ready_nodes(NODE) == 1,
            what=f"the agent is ready: {operating.text('agent.log')}",
        )
        yield process
    finally:
        process.terminate()
        process.wait(15)


def is_alive(endpoint: str) -> bool:
    """Tell whether the process of a sandbox exists."""
    return Path("/proc", endpoint.removeprefix("pid:")).exists()


def test_the_example_agent_runs_requests_as_processes(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_replica()
    with example_agent(operating, control_plane, "sleep", "600"):
        operating.apply(a_request("r1"), a_request("r2", templateID="t1"))
        wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
        endpoint = operating.get("sbr", "r1")["status"]["endpoint"]
        assert is_alive(endpoint)

        operating.kubectl("delete", "sbr", "r1")

        wait_until(lambda: not is_alive(endpoint), what="its process is gone")
        assert operating.phase("r2") == "Pending"


def state_of(endpoint: str) -> str:
    """Return the state of a sandbox's process: T when it is stopped."""
    stat = Path("/proc", endpoint.removeprefix("pid:"), "stat").read_text()
    return stat.rpartition(")")[2].split()[0]


def test_the_example_agent_stops_a_paused_process_and_lets_the_same_one_run_on(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_replica()
    with example_agent(operating, control_plane, "sleep", "600"):
        operating.apply(a_request("r1"))
        wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
        endpoint = operating.get("sbr", "r1")["status"]["endpoint"]
        operating.kubectl("patch", "sbr", "r1", "--type=merge", "-p", '{"spec":{"paused":true}}')
        wait_until(lambda: operating.phase("r1") == "Paused", what="r1 is paused")
        assert state_of(endpoint) == "T"

        operating.kubectl("patch", "sbr", "r1", "--type=merge", "-p", '{"spec":{"paused":false}}')
        wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs on")
        assert state_of(endpoint) == "S"
        assert operating.get("sbr", "r1")["status"]["endpoint"] == endpoint


def test_the_example_agent_reports_how_each_process_ended(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_replica()
    with example_agent(operating, control_plane, "sh", "-c", "exit 3"):
        operating.apply(a_request("r1"))
        wait_until(lambda: operating.phase("r1") == "Failed", what="r1 has failed")

    assert operating.reason("r1", "Ready") == "Finished"


def test_what_the_example_agent_ran_dies_with_it_and_is_reported_by_the_next(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_replica()
    with example_agent(operating, control_plane, "sleep", "600") as process:
        operating.apply(a_request("r1"))
        wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
        endpoint = operating.get("sbr", "r1")["status"]["endpoint"]
        process.kill()
        wait_until(lambda: not is_alive(endpoint), what="its process is gone")

    with example_agent(operating, control_plane, "sleep", "600"):
        wait_until(lambda: operating.phase("r1") == "Failed", what="the next agent reports it")
