"""`cubesched run`: one operator replica."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cubesched.cli import Subparsers, add_command
from cubesched.cli.options import whole_number
from cubesched.core.errors import UsageError
from cubesched.settings import NODE_METRICS_LAYOUTS, OperatorSettings, from_environment

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_STYLES: Final = ("json", "plain")


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "run",
        examples="  cubesched run --kubeconfig ~/.kube/config --redis-url redis://127.0.0.1:6379/0\n",
    )
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: as kubectl finds it, or the pod's account")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    add("--namespace", metavar="NAME", help="where the replicas keep their Leases")
    add("--redis-url", metavar="URL", help="where node agents report (env CUBESCHED_REDIS_URL)")
    add(
        "--node-metrics-layout",
        choices=NODE_METRICS_LAYOUTS,
        help="whose layout the nodes report in (env CUBESCHED_NODE_METRICS_LAYOUT)",
    )
    add(
        "--plugin-directory",
        metavar="DIR",
        help="where the sockets of grpc plugins are (env CUBESCHED_PLUGIN_DIRECTORY)",
    )
    add("--http-host", metavar="ADDRESS", help="address for metrics and probes")
    port = whole_number(0, 65_535)
    add("--http-port", metavar="PORT", type=port, help="port for metrics and probes; 0 = any free")
    add("--replica", metavar="NAME", help="this replica's name in reservations and Leases")
    add("--log-level", choices=LOG_LEVELS, help="default: $CUBESCHED_LOG_LEVEL, else info")
    add("--log-style", choices=LOG_STYLES, help="default: $CUBESCHED_LOG_STYLE, else json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM."""
    from cubesched.adapters.telemetry.logs import configure_logging  # noqa: PLC0415 - slow imports

    settings = _settings(args)
    configure_logging(level=settings.log_level, style=settings.log_style)  # type: ignore[arg-type]
    import uvloop  # noqa: PLC0415

    from cubesched.app.operator import run_operator  # noqa: PLC0415

    return uvloop.run(run_operator(settings))


def _settings(args: argparse.Namespace) -> OperatorSettings:
    given = {key: value for key, value in vars(args).items() if value is not None}
    given.pop("run")
    settings = replace(from_environment(os.environ), **given)
    _check("CUBESCHED_NODE_METRICS_LAYOUT", settings.node_metrics_layout, NODE_METRICS_LAYOUTS)
    _check("CUBESCHED_LOG_LEVEL", settings.log_level, LOG_LEVELS)
    _check("CUBESCHED_LOG_STYLE", settings.log_style, LOG_STYLES)
    return settings


def _check(variable: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse what the environment says and no flag would have been allowed to."""
    if value not in allowed:
        raise UsageError(f"{variable} is {value!r}; allowed are {', '.join(allowed)}")
