"""`cubesched run`: one operator replica."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from cubesched.cli import Subparsers, add_command
from cubesched.settings import OperatorSettings, from_environment


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "run",
        summary="run one replica of the operator; start as many as you like",
        examples="  cubesched run --kubeconfig ~/.kube/config --redis-url redis://127.0.0.1:6379/0\n",
    )
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, or the pod's service account")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    add("--namespace", metavar="NAME", help="where the replicas keep their Leases")
    add("--redis-url", metavar="URL", help="where node agents report (env CUBESCHED_REDIS_URL)")
    add("--http-host", metavar="ADDRESS", help="address for metrics and probes")
    add("--http-port", metavar="PORT", type=int, help="port for metrics and probes; 0 = any free")
    add("--replica", metavar="NAME", help="this replica's name in reservations and Leases")
    add("--log-level", choices=["debug", "info", "warning", "error"])
    add("--log-style", choices=["json", "plain"])
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
    return replace(from_environment(os.environ), **given)
