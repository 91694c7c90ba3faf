"""`cubesched explain`: why a request waits or where it went, on what the cluster says now."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.app.explanation import Explained, explain
from cubesched.app.explanation_data import Data, as_data, as_data_of_node
from cubesched.app.livestate import Objects, read_objects, read_reports, state_of
from cubesched.cli import Subparsers, add_command
from cubesched.cli.explain_tables import print_explanation
from cubesched.cli.options import request_name
from cubesched.cli.output import add_output_option, print_data
from cubesched.plugins.spelling import did_you_mean
from cubesched.settings import NODE_METRICS_LAYOUTS, from_environment

_DETAILS = """
Reads the policy, the nodes and the requests from the API server and the node reports from Redis,
and decides again with the operator's own code: nothing is written, and no operator has to run. A
request that is placed already is looked at as if it were not.

Needs list on the four kinds (role cubesched-viewer) and Redis; without Redis every node counts as
alive and as measured by nobody, and the output says so."""

_EXAMPLES = """\
  cubesched explain default/build-4711                  counts, what would help, the nodes
  cubesched explain default/build-4711 --node node-017  why not this node: every stage
  cubesched explain default/build-4711 --all            every node, not only the first ones
  kubectl cubesched explain default/build-4711 -o json  the same as data, always all nodes

exit codes: 0 explained, 1 no such request or node, 2 wrong use or API server unreachable
"""

MOST_ROWS: Final = 15
MOST_NAMES: Final = 8


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "explain", details=_DETAILS, examples=_EXAMPLES)
    add = parser.add_argument
    add("request", type=request_name, metavar="NAMESPACE/NAME", help="NAME alone: in default")
    add("--node", metavar="NAME", help="every stage's verdict on one node")
    add("--all", action="store_true", help=f"show every node, not the first {MOST_ROWS}")
    add_output_option(parser)
    add("--kubeconfig", metavar="FILE", help="default: as kubectl finds it")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    add("--redis-url", metavar="URL", help="where node agents report (env CUBESCHED_REDIS_URL)")
    add(
        "--node-metrics-layout",
        choices=NODE_METRICS_LAYOUTS,
        help="whose layout the nodes report in (env CUBESCHED_NODE_METRICS_LAYOUT)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explain one request; 1 when it or the node does not exist."""
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    began = time.monotonic()
    settings = from_environment(os.environ)
    connection = await connect(args.kubeconfig, args.context)
    async with AiohttpTransport(connection) as transport:
        objects = await read_objects(transport)
    namespace, name = args.request
    entry = objects.request(namespace, name)
    if entry is None:
        return _not_found(_no_request(objects, namespace, name))
    state = state_of(objects, without=entry if entry.node else None)
    redis_url = args.redis_url or settings.redis_url
    await read_reports(redis_url, args.node_metrics_layout or settings.node_metrics_layout, state)
    names = state.node_names
    if args.node is not None and args.node not in names:
        return _not_found(_no_such("SandboxNode", args.node, "", names))
    data = _data(args, explain(state, entry))
    data["read"] = {
        "nodes": len(names),
        "requests": len(objects.requests.items),
        "seconds": round(time.monotonic() - began, 2),
    }
    if args.output == "table":
        print_explanation(data)
    else:
        print_data(data, args.output)
    return 0


def _data(args: argparse.Namespace, explained: Explained) -> Data:
    if args.node is not None:
        return as_data_of_node(explained, args.node)
    is_short = args.output == "table" and not args.all
    return as_data(explained, most_nodes=MOST_ROWS if is_short else None)


def _not_found(sentence: str) -> int:
    sys.stderr.write(f"cubesched: {sentence}\n")
    return 1


def _no_request(objects: Objects, namespace: str, name: str) -> str:
    names = objects.request_names(namespace)
    return _no_such("SandboxRequest", f"{namespace}/{name}", f" in namespace {namespace}", names)


def _no_such(kind: str, wanted: str, where: str, names: Sequence[str]) -> str:
    """Say that something does not exist, and what does."""
    if not names:
        return f"there is no {kind} {wanted}: there is none{where} at all"
    name = wanted.rpartition("/")[2]
    guess = did_you_mean(name, names) if len(names) > MOST_NAMES else ""
    if guess.startswith("did you mean"):
        return f"there is no {kind} {wanted}; {guess} There are {len(names)}{where}"
    listed = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"there is no {kind} {wanted}; there are{where}: {listed}{more}"
