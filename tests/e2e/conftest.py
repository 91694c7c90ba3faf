"""One real control plane for the whole run, of this process alone; it dies with it."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.e2e.operating import Operating
from tests.e2e.realredis import RealRedis, a_free_port

from cubesched.local import LocalControlPlane
from cubesched.local.binaries import find_binaries
from cubesched.local.controlplane import to_stderr
from cubesched.local.demo.cluster import Cluster
from cubesched.local.demo.processes import Processes
from cubesched.local.manifests import deploy_path

_LOGS = pytest.StashKey[Path]()


class Kubectl(Protocol):
    """Calls kubectl as the cluster's administrator."""

    def __call__(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalControlPlane]:
    """A running control plane with every manifest installed."""
    plane = LocalControlPlane(f"test-{os.getpid()}", tmp_path_factory.mktemp("control-plane"))
    request.config.stash[_LOGS] = plane.directory
    plane.start(manifests=True)
    yield plane
    plane.stop()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: no test's time limit would allow for it."""
    if any(Path(__file__).parent in item.path.parents for item in session.items):
        find_binaries(report=to_stderr)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the servers' logs are when something failed."""
    if _LOGS in config.stash and {"failed", "error"} & terminalreporter.stats.keys():
        terminalreporter.write_line(f"logs of the control plane: {config.stash[_LOGS]}/*.log")


@pytest.fixture(scope="session")
def kubectl(control_plane: LocalControlPlane) -> Kubectl:
    """kubectl bound to the control plane; with `check`, a failure shows what kubectl said."""
    cache = control_plane.directory / "kubectl-cache"

    def run(
        *args: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            [control_plane.binaries.kubectl, "--kubeconfig", control_plane.kubeconfig, *args],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KUBECACHEDIR": str(cache)},
        )
        if check and answer.returncode != 0:
            pytest.fail(f"kubectl {' '.join(args)}: {answer.stderr or answer.stdout}")
        return answer

    return run


@pytest.fixture(scope="session")
def redis_url(control_plane: LocalControlPlane) -> str:
    """The URL of the Redis beside the control plane."""
    return control_plane.redis_url


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RealRedis]:
    """A Redis of this test alone, which it may kill."""
    server = RealRedis(tmp_path, a_free_port())
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def admin_kubeconfig(control_plane: LocalControlPlane) -> Path:
    """The kubeconfig of the cluster's administrator."""
    return control_plane.kubeconfig


@pytest.fixture
def fresh_namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of this test alone, deleted afterwards (in the background)."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def operating(
    control_plane: LocalControlPlane, kubectl: Kubectl, tmp_path: Path
) -> Iterator[Operating]:
    """Processes of one test on a cluster that was emptied of all our objects."""
    _empty(kubectl)
    apply = ("apply", "--server-side", "-f", str(deploy_path("local/simulator.yaml")))
    kubectl(*apply)
    cluster = Cluster(
        Path(control_plane.binaries.kubectl),
        control_plane.kubeconfig,
        None,
        control_plane.redis_url,
        control_plane,
    )
    with Processes(tmp_path) as processes:
        yield Operating(cluster, processes, kubectl, tmp_path)
    _empty(kubectl)


def _empty(kubectl: Kubectl) -> None:
    for kind in ("sandboxrequests", "sandboxnodes", "schedulerprofiles", "schedulerconfigs"):
        scope = ("--all-namespaces",) if kind == "sandboxrequests" else ()
        kubectl("delete", kind, "--all", "--wait=false", *scope)
    kubectl("delete", "leases,controllerrevisions", "--all", "-n", "cubesched-system")
