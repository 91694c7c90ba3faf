"""`cubesched local`: start, stop and look at a control plane on this machine."""

from __future__ import annotations

import argparse
import time
from dataclasses import fields

from cubesched.cli import Subparsers, add_command
from cubesched.cli.output import add_output_option, age, print_data, print_table
from cubesched.core.errors import UsageError
from cubesched.local import LocalControlPlane, instances
from cubesched.local.binaries import find_binaries
from cubesched.local.controlplane import to_stderr
from cubesched.local.instances import Instance
from cubesched.local.manifests import install_manifests, manifest_paths
from cubesched.local.paths import DEFAULT_NAME

_DETAILS = """
Runs etcd, kube-apiserver, kube-controller-manager and Redis as ordinary processes, on
loopback only, with RBAC and client certificates, and installs cubesched's CRDs, roles and
admission rules. There are no kubelets: pods are stored and never run.

The programs are taken from $KUBEBUILDER_ASSETS, else from the cache, else built from source
once (6 to 12 minutes on two cores). Needs no root, no containers and no image registry."""

_EXAMPLES = """\
  cubesched local up
  export KUBECONFIG=$(cubesched local kubeconfig)
  kubectl get --raw /readyz
  cubesched local up --name second     another one beside it
  cubesched local status
  cubesched local down                 stop it and delete all that was in it
"""


def register(subparsers: Subparsers) -> None:
    """Add the command and its four actions."""
    parser = add_command(subparsers, "local", details=_DETAILS, examples=_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    start = add_command(actions, "up", summary="start a control plane; it runs until `down`")
    start.add_argument(
        "--no-manifests", action="store_true", help="leave the cluster without cubesched's CRDs"
    )
    start.set_defaults(run=up)
    make = add_command(actions, "build", summary="find or build the programs, start nothing")
    make.set_defaults(run=build)
    stop = add_command(actions, "down", summary="stop it and delete all that was in it")
    stop.set_defaults(run=down)
    show = add_command(actions, "status", summary="list what runs; exit 1 when NAME does not")
    show.add_argument("--name", help="this instance only")
    add_output_option(show)
    show.set_defaults(run=status)
    config = add_command(actions, "kubeconfig", summary="print the path of its kubeconfig")
    config.add_argument("--print", action="store_true", help="print the content, not the path")
    config.set_defaults(run=kubeconfig)
    for action in (start, stop, config):
        action.add_argument("--name", default=DEFAULT_NAME, help=f"default: {DEFAULT_NAME}")


def up(args: argparse.Namespace) -> int:
    """Start an instance that outlives this command; an instance that runs is left as it is."""
    running = instances.find(args.name)
    if running is not None:
        to_stderr(f"control plane {args.name} is running already")
        _print_instance(running)
        return 0
    plane = LocalControlPlane(args.name).start()
    try:
        if not args.no_manifests:
            install_manifests(plane.kubeconfig, kubectl=plane.binaries.kubectl)
            to_stderr(f"installed {len(manifest_paths())} manifests")
        plane.detach()
    finally:
        plane.stop()
    _print_instance(_require(args.name))
    return 0


def build(args: argparse.Namespace) -> int:  # noqa: ARG001 - it takes no option
    """Make sure that every program is there; minutes the first time, then nothing."""
    programs = find_binaries(report=to_stderr)
    print_table(
        ["PROGRAM", "PATH"],
        [[field.name, str(getattr(programs, field.name))] for field in fields(programs)],
    )
    return 0


def down(args: argparse.Namespace) -> int:
    """Stop an instance; fine too when none runs."""
    was_running = instances.stop(args.name)
    print(f"control plane {args.name} {'stopped' if was_running else 'was not running'}")
    return 0


def status(args: argparse.Namespace) -> int:
    """List running instances, or the one named."""
    if args.name is None:
        found = instances.list_running()
    else:
        named = instances.find(args.name)
        found = [named] if named is not None else []
    if args.output != "table":
        print_data([_as_data(instance) for instance in found], args.output)
    elif found:
        _print_status(found)
    else:
        what = "no control plane" if args.name is None else f"no control plane {args.name!r}"
        print(f"{what} is running; start one with `cubesched local up`")
    return 1 if args.name is not None and not found else 0


def kubeconfig(args: argparse.Namespace) -> int:
    """Print where the administrator's kubeconfig is, or what is in it."""
    path = _require(args.name).kubeconfig
    print(path.read_text() if args.print else path, end="" if args.print else "\n")
    return 0


def _require(name: str) -> Instance:
    instance = instances.find(name)
    if instance is None:
        raise UsageError(
            f"control plane {name!r} is not running; start it with `cubesched local up`"
        )
    return instance


def _print_instance(instance: Instance) -> None:
    name = "" if instance.name == DEFAULT_NAME else f" --name {instance.name}"
    print(f"API server   {instance.server}")
    print(f"Redis        {instance.redis_url}")
    print(f"kubeconfig   {instance.kubeconfig}")
    print(f"logs         {instance.directory}/*.log")
    print(f"\nUse it:   export KUBECONFIG=$(cubesched local kubeconfig{name})")
    print(f"Stop it:  cubesched local down{name}")


def _print_status(found: list[Instance]) -> None:
    rows = [
        (
            instance.name,
            "Running" if not instance.dead else f"Degraded ({', '.join(instance.dead)} ended)",
            instance.server,
            instance.redis_url,
            age(time.time() - instance.started),
        )
        for instance in found
    ]
    print_table(("NAME", "STATE", "SERVER", "REDIS", "AGE"), rows)


def _as_data(instance: Instance) -> dict[str, object]:
    return {
        "name": instance.name,
        "server": instance.server,
        "redisURL": instance.redis_url,
        "kubeconfig": str(instance.kubeconfig),
        "directory": str(instance.directory),
        "ageSeconds": round(time.time() - instance.started, 1),
        "dead": list(instance.dead),
    }
