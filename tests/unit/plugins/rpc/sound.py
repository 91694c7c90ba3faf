"""A sound plugin server, of the kind that authors write: `python sound.py SOCKET`."""

from __future__ import annotations

import sys
import threading

import numpy as np

from cubesched.core.snapshot import Bools, Floats
from cubesched.plugins.rpc.server import NOT_APPLICABLE, Fleet, NotApplicable, Request, Server

server = Server("sound")
gate = threading.Event()


@server.filter()
def all_but_n2(fleet: Fleet, request: Request) -> Bools:
    """Keep every node but n2."""
    kept: Bools = fleet.id != "n2"
    return kept


@server.filter("broken")
def broken(fleet: Fleet, request: Request) -> Bools:
    """Fail."""
    raise KeyError("zone")


@server.filter("a list")
def no_column(fleet: Fleet, request: Request) -> Bools:
    """Return a list."""
    return [True] * len(fleet)  # type: ignore[return-value]


@server.filter("a short one")
def too_short(fleet: Fleet, request: Request) -> Bools:
    """Leave nodes out."""
    return np.ones(1, np.bool_)


@server.filter("numbers")
def no_mask(fleet: Fleet, request: Request) -> Bools:
    """Return numbers."""
    return np.ones(len(fleet))  # type: ignore[return-value]


@server.score("idle")
def idle(fleet: Fleet, request: Request) -> Floats | NotApplicable:
    """Rate by what is idle, but for requests of templates."""
    return NOT_APPLICABLE if request.template_id else 100.0 - fleet.cpu_util


if __name__ == "__main__":
    server.start(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()
