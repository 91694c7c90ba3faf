"""`cubesched lint`: manifests checked before they are applied, by the operator's own compiler."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from typing import Final

from cubesched.cli import Subparsers, add_command
from cubesched.cli.lint_output import FORMATS, print_report
from cubesched.core.errors import UsageError
from cubesched.manifests.findings import Finding, Report, Skipped
from cubesched.manifests.judging import Held, judge
from cubesched.manifests.objects import Manifest, read_objects
from cubesched.manifests.sources import read_sources
from cubesched.plugins.listing import Surroundings
from cubesched.settings import NODE_METRICS_LAYOUTS, from_environment

_DETAILS: Final = """
Compiles SchedulerProfiles and the SchedulerConfig as one set, as the operator does, and checks
SandboxNodes and SandboxRequests; other kinds are passed over. FILE is a file, a folder (every
*.yaml and *.yml in it and below, but for hidden ones) or - for standard input.

With --cluster the set is what the cluster holds, with the files put over it by name: what it would
be once they are applied. Its filters and scores are tried on the nodes as they are now. Needs list
on the four kinds (role cubesched-viewer) and Redis; without Redis a line says so, and what nodes
measure is not looked at. Python plugins are checked as far as they are installed here; no grpc
plugin is contacted."""

_EXAMPLES: Final = """\
  cubesched lint policies/                    every file in a folder
  cubesched lint policies/ --cluster          as they would be beside what the cluster holds
  cubesched lint policies/ --strict -o github annotations on a pull request, for CI
  helm template mine | cubesched lint -       what a program writes

exit codes: 0 fine, 1 errors (with --strict warnings too), 2 wrong use, or a file or the API server
cannot be read
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "lint", details=_DETAILS, examples=_EXAMPLES)
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a file, a folder, or - for standard input")
    add("--cluster", action="store_true", help="check the files over what the cluster holds")
    add("--kubeconfig", metavar="FILE", help="with --cluster; default: as kubectl finds it")
    add("--context", metavar="NAME", help="with --cluster: context of the kubeconfig")
    add("--redis-url", metavar="URL", help="with --cluster (env CUBESCHED_REDIS_URL)")
    add(
        "--node-metrics-layout",
        choices=NODE_METRICS_LAYOUTS,
        help="with --cluster (env CUBESCHED_NODE_METRICS_LAYOUT)",
    )
    add("--strict", action="store_true", help="let warnings fail as errors do")
    add(
        "--plugin-directory",
        metavar="DIR",
        help="where the operator has the sockets of grpc plugins (env CUBESCHED_PLUGIN_DIRECTORY)",
    )
    add("-o", "--output", choices=FORMATS, default="human", help="default: human")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the files; 1 when something is wrong with them."""
    _check_use(args)
    settings = from_environment(os.environ)
    found = list(_read(args.files))
    directory = args.plugin_directory or settings.plugin_directory
    around = Surroundings(plugin_directory=directory)
    if args.cluster:
        from cubesched.cli.lint_cluster import Cluster  # noqa: PLC0415 - slow imports

        reading = Cluster.read(
            args.kubeconfig,
            args.context,
            redis_url=args.redis_url or settings.redis_url,
            layout=args.node_metrics_layout or settings.node_metrics_layout,
        )
        cluster = asyncio.run(reading)
        report = judge(found, cluster.held, around, cluster.look)
    else:
        report = judge(found, Held(), around)
    print_report(report, args.output, over_cluster=args.cluster)
    return 1 if _is_failure(report, is_strict=args.strict) else 0


def _check_use(args: argparse.Namespace) -> None:
    for option in ("kubeconfig", "context", "redis_url", "node_metrics_layout"):
        if getattr(args, option) and not args.cluster:
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} is for --cluster; see `cubesched lint --help`")


def _read(paths: list[str]) -> Iterator[Manifest | Skipped | Finding]:
    for source in read_sources(paths):
        yield from read_objects(source)


def _is_failure(report: Report, *, is_strict: bool) -> bool:
    return bool(report.number("error") or (is_strict and report.number("warning")))
