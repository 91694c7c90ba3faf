"""Where the demo runs: a control plane of its own, or any other cluster by its context."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cubesched.adapters.cluster.connection import connect
from cubesched.core.errors import UsageError
from cubesched.local.controlplane import LocalControlPlane, with_free_port
from cubesched.local.demo.processes import Processes
from cubesched.local.manifests import deploy_path, install_manifests
from cubesched.local.toolchain import Report

OPERATORS, SIMULATORS = "cubesched:operators", "cubesched:simulators"


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server, and who the demo's processes are on it."""

    kubectl: Path
    kubeconfig: Path | None
    context: str | None
    redis_url: str
    plane: LocalControlPlane | None

    @property
    def kubectl_command(self) -> list[str]:
        """The command line that reaches this cluster as the person who runs the demo."""
        command = [str(self.kubectl)]
        command += ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return command + (["--context", self.context] if self.context else [])

    def run_kubectl(self, *arguments: str) -> str:
        """Run kubectl and return what it printed; UsageError with its words when it fails."""
        answer = subprocess.run(
            [*self.kubectl_command, *arguments], capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise UsageError(f"kubectl {arguments[0]}: {answer.stderr.strip()}")
        return answer.stdout

    def access(self, user: str, group: str) -> list[str]:
        """Return the flags that make a process act as `user`.

        On the demo's own control plane each user has a client certificate; elsewhere all act as
        the person who runs the demo.
        """
        if self.plane is not None:
            return ["--kubeconfig", str(self.plane.client_kubeconfig(user, [group]))]
        flags = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return flags + (["--context", self.context] if self.context else [])


def own_cluster(stack: ExitStack, directory: Path, *, report: Report) -> Cluster:
    """Start a control plane that ends with `stack`."""
    plane = stack.enter_context(LocalControlPlane("demo", directory / "cluster", report=report))
    install_manifests(plane.kubeconfig, kubectl=plane.binaries.kubectl)
    cluster = Cluster(Path(plane.binaries.kubectl), plane.kubeconfig, None, plane.redis_url, plane)
    cluster.run_kubectl("apply", "--server-side", "-f", str(deploy_path("local/simulator.yaml")))
    return cluster


def other_cluster(processes: Processes, *, context: str) -> Cluster:
    """Use the cluster of a kubeconfig context; only Redis is started here."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UsageError("kubectl is not on the path; the demo needs it to reach another cluster")
    asyncio.run(connect(None, context))  # says better than kubectl what is wrong
    install_manifests(None, kubectl=kubectl, context=context)
    port = with_free_port(processes.start_redis)
    return Cluster(Path(kubectl), None, context, f"redis://127.0.0.1:{port}/0", None)
