"""A plugin server for cubesched: a filter and a score in a process of their own.

python server.py [SOCKET [MAINTENANCE]]
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np

from cubesched.core.snapshot import Bools, Floats
from cubesched.plugins.rpc.server import NOT_APPLICABLE, Fleet, NotApplicable, Request, Server

SOCKET = sys.argv[1] if len(sys.argv) > 1 else "/run/cube/example.sock"
MAINTENANCE = Path(sys.argv[2] if len(sys.argv) > 2 else "/etc/cubesched-example/maintenance")
server = Server("example")


@server.filter("not_in_maintenance")
def not_in_maintenance(fleet: Fleet, request: Request) -> Bools:
    """Keep all nodes but those that the file names, one a line; it may change at any time."""
    named = MAINTENANCE.read_text().split() if MAINTENANCE.exists() else []
    return ~np.isin(fleet.id, named)


@server.score("cool")
def cool(fleet: Fleet, request: Request) -> Floats | NotApplicable:
    """Rate by idle cpu, half for nodes that never reported it; batch work does not care."""
    if request.labels.get("workload") == "batch":
        return NOT_APPLICABLE
    return np.where(fleet.known("cpu_util"), np.clip(100.0 - fleet.cpu_util, 0, 100), 50.0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    server.run(SOCKET)
