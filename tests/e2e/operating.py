"""Operators and nodes as separate processes, each under its own certificate, for one test."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from cubesched.local.demo.cluster import OPERATORS, SIMULATORS, Cluster
from cubesched.local.demo.processes import Processes

NAMESPACE = "default"


class Kubectl(Protocol):
    """See conftest."""

    def __call__(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]: ...


def wait_until(
    true: Callable[[], object], *, seconds: float = 30.0, what: str = "it", every: float = 0.1
) -> None:
    """Return when `true()` holds; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(every)


def a_request(name: str, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    """Return a SandboxRequest; `labels` are its metadata labels."""
    labels = spec.pop("labels", {})
    return {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"resources": {"cpu": cpu, "memory": memory}, **spec},
    }


@dataclass
class Operating:
    """One test's view of the cluster and of the processes it has started."""

    cluster: Cluster
    processes: Processes
    kubectl: Kubectl
    directory: Path

    @property
    def journal(self) -> Path:
        return self.directory / "journal.jsonl"

    def start_replica(self, name: str = "a") -> None:
        """Start an operator replica and wait until it is ready."""
        self.launch_replica(name)
        self.wait_ready(name)

    def launch_replica(self, name: str = "a", *more: str) -> None:
        access = self.cluster.access(f"cubesched:operator:{name}", OPERATORS)
        flags = ["--redis-url", self.cluster.redis_url, "--http-host", "127.0.0.1"]
        flags += ["--http-port", "0", "--replica", name, "--log-style", "json"]
        self.processes.start(f"replica-{name}", "cubesched", ["run", *access, *flags, *more])

    def wait_ready(self, name: str, *, seconds: float = 30.0) -> None:
        wait_until(
            lambda: self.probe(name, "readyz")[0] == 200,
            seconds=seconds,
            what=f"replica {name} ready; see {self.directory}",
        )

    def start_nodes(self, count: int, *flags: str, prefix: str = "node-") -> None:
        """Start simulated nodes and wait until all are Ready."""
        access = self.cluster.access("cubesched:simulator", SIMULATORS)
        common = [
            "--simulate",
            str(count),
            "--prefix",
            prefix,
            "--redis-url",
            self.cluster.redis_url,
        ]
        common += ["--log", str(self.journal)]
        self.journal.touch()
        self.processes.start(f"nodes-{prefix}", "cubesched", ["agent", *access, *common, *flags])
        wait_until(lambda: self.ready_nodes(prefix) == count, seconds=90, what="nodes ready")

    def start_auditor(self) -> None:
        access = self.cluster.access("cubesched:auditor", "cubesched:viewers")
        flags = ["--agent-log", str(self.journal), "--until-stopped"]
        self.journal.touch()
        self.processes.start("auditor", "cubesched.local.auditor", [*access, *flags])
        wait_until(lambda: "auditing from" in self.text("auditor.log"), what="auditor")

    def audit(self) -> dict[str, Any]:
        """Stop the auditor and return its summary."""
        code, printed = self.processes.stop("auditor")
        summary: dict[str, Any] = json.loads(printed)
        assert code == (1 if summary["violations"] else 0)
        return summary

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(list(objects)))

    def create_all(self, objects: Iterable[dict[str, Any]]) -> None:
        self.kubectl("create", "-f", "-", input=json.dumps(_as_list(objects)))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json").stdout)
        return value

    def items(self, kind: str = "sbr") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json").stdout)[
            "items"
        ]
        return found

    def phase(self, name: str) -> str:
        return str(self.get("sbr", name).get("status", {}).get("phase", "Pending"))

    def phases(self) -> Counter[str]:
        return Counter(item.get("status", {}).get("phase", "Pending") for item in self.items())

    def reason(self, name: str, condition: str = "Scheduled") -> str:
        conditions = self.get("sbr", name).get("status", {}).get("conditions", ())
        return next((str(c["reason"]) for c in conditions if c["type"] == condition), "")

    def ready_nodes(self, prefix: str) -> int:
        return sum(
            node["metadata"]["name"].startswith(prefix)
            and any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in node.get("status", {}).get("conditions", ())
            )
            for node in self.items("sbn")
        )

    def text(self, file: str) -> str:
        path = self.directory / file
        return path.read_text(errors="replace") if path.exists() else ""

    def log(self, replica: str) -> str:
        return self.text(f"replica-{replica}.log")

    def port(self, replica: str) -> int:
        for line in self.log(replica).splitlines():
            message = str(json.loads(line)["message"]) if line.startswith("{") else ""
            if "serves probes on port" in message:
                return int(message.rsplit(" ", 1)[1])
        return 0

    def probe(self, replica: str, path: str) -> tuple[int, str]:
        """Return status and body of one HTTP path of a replica; 0 while it does not answer."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port(replica)}/{path}", timeout=5
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, replica: str, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples with these labels."""
        total = 0.0
        for line in self.probe(replica, "metrics")[1].splitlines():
            if line.split("{")[0].split(" ")[0] != name:
                continue
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total


def _as_list(objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
