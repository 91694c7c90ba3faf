"""What one process is told at its start; everything that people change at run time is policy."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"
DEFAULT_PLUGIN_DIRECTORY: Final = "/run/cube"
NODE_METRICS_LAYOUTS: Final = ("cubesched", "cubemaster", "both")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """Flags of `cubesched run`; the environment gives the defaults (CUBESCHED_...)."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = ""
    """Where this replica keeps its Lease; empty: cubesched-system."""
    redis_url: str = DEFAULT_REDIS_URL
    node_metrics_layout: str = "cubesched"
    """Whose layout the nodes report in; with both, ours wins where a node uses both."""
    plugin_directory: str = DEFAULT_PLUGIN_DIRECTORY
    """The one directory under which the sockets of grpc plugins are."""
    http_host: str = "0.0.0.0"  # noqa: S104 - probes and scrapes come from outside the pod
    http_port: int = 8080
    """Metrics and probes; 0 takes a free port and logs it."""
    replica: str = ""
    """Name of this replica; empty: the pod's uid, else host and process id."""
    log_level: str = "info"
    log_style: str = "json"
    stop_seconds: float = 10.0
    """How long SIGTERM waits for writes under way."""

    def identity(self, boot_id: str) -> str:
        """Return the replica's name in reservations and Leases: a restart is a new replica."""
        name = self.replica or os.environ.get("POD_UID") or f"{socket.gethostname()}-{os.getpid()}"
        return f"{name}-{boot_id}"


def from_environment(environ: Mapping[str, str]) -> OperatorSettings:
    """Return the settings that the environment gives; flags win over them."""
    return OperatorSettings(
        namespace=environ.get("POD_NAMESPACE", ""),
        redis_url=environ.get("CUBESCHED_REDIS_URL", DEFAULT_REDIS_URL),
        node_metrics_layout=environ.get("CUBESCHED_NODE_METRICS_LAYOUT", "cubesched"),
        plugin_directory=environ.get("CUBESCHED_PLUGIN_DIRECTORY", DEFAULT_PLUGIN_DIRECTORY),
        log_level=environ.get("CUBESCHED_LOG_LEVEL", "info"),
        log_style=environ.get("CUBESCHED_LOG_STYLE", "json"),
    )
