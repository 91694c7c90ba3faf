"""`cubesched demo`: see it work on this machine."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from cubesched.cli import Subparsers, add_command
from cubesched.cli.options import whole_number
from cubesched.cli.output import print_table
from cubesched.local.controlplane import to_stderr
from cubesched.local.demo.story import Demo, Outcome, Plan

_DETAILS = """
Starts a real control plane and Redis on this machine (building them from source the first
time, 6 to 12 minutes on two cores), two operator replicas, 200 simulated nodes and an auditor, each
a process of its own with its own client certificate; creates 1,000 SandboxRequests, of which
some cannot fit; and shows where they went and why the others wait."""

_EXAMPLES = """\
  cubesched demo
  cubesched demo --keep                     leave everything running until Ctrl-C
  cubesched demo --nodes 50 --requests 200 --replicas 3
  cubesched demo --context kind-cubesched   on another cluster (deploy/kind.yaml makes one)
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "demo", details=_DETAILS, examples=_EXAMPLES)
    plan = Plan()
    add = parser.add_argument
    for option, default, most in (
        ("--nodes", plan.nodes, 10_000),
        ("--requests", plan.requests, 100_000),
        ("--replicas", plan.replicas, 20),
    ):
        reader = whole_number(1, most)
        add(option, type=reader, metavar="N", default=default, help=f"default: {default}")
    add("--seed", type=int, metavar="N", default=plan.seed, help="of the requests' sizes")
    add("--context", metavar="NAME", help="use the cluster of this kubeconfig context")
    add("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play the demo; exit 1 when a node was over-committed."""
    plan = Plan(
        nodes=args.nodes,
        requests=args.requests,
        replicas=args.replicas,
        seed=args.seed,
        context=args.context,
    )
    directory = Path(tempfile.mkdtemp(prefix="cubesched-demo-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code, is_interrupted = 1, False
    try:
        code = _play(plan, directory, keep=args.keep)
    except (KeyboardInterrupt, SystemExit):
        is_interrupted = True
        raise
    finally:
        _tidy(directory, keep_logs=code != 0 and not is_interrupted)
    return code


def _play(plan: Plan, directory: Path, *, keep: bool) -> int:
    with ExitStack() as stack:
        demo = Demo(plan, directory, report=to_stderr)
        demo.start(stack)
        outcome = asyncio.run(demo.play())
        _show(demo, outcome)
        _show_next(demo, keep=keep)
        if keep:
            _wait_for_ctrl_c()
    return 1 if outcome.audit_code else 0


def _tidy(directory: Path, *, keep_logs: bool) -> None:
    """Remove the directory, unless something went wrong that its logs may explain."""
    if keep_logs and any(directory.rglob("*.log")):
        to_stderr(f"logs: {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)


def _wait_for_ctrl_c() -> None:
    sys.stdout.flush()
    try:
        while True:
            signal.pause()
    except (KeyboardInterrupt, SystemExit):
        to_stderr("stopping everything")


def _show(demo: Demo, outcome: Outcome) -> None:
    placements = outcome.placements
    print("\nPlacements by Profile\n")
    rows = [[name, *map(str, numbers)] for name, *numbers in placements.by_profile()]
    print_table(["PROFILE", "PLACED", "NODES", "WAITING"], rows)
    phases = placements.phases()
    waiting = ", ".join(f"{n} {why}" for why, n in placements.waiting_by_reason().most_common())
    print(
        f"\n{phases['Running']} of {demo.plan.requests} run after {outcome.bound_seconds:.1f} s; ",
        end="",
    )
    print(f"{phases['Pending']} wait ({waiting})")
    if outcome.described:
        print(f"\n$ kubectl describe sbr {outcome.described_name}\n")
        print(outcome.described.rstrip())
    audit = outcome.audit
    print("\nThe auditor, a program of its own that read only the watch and the agents' log:")
    print(f"  revisions checked: {audit.get('revisions', '?')}")
    print(f"  over-committed nodes: {audit.get('over_committed_nodes', '?')}")
    print(f"  violations of any kind: {audit.get('violations', '?')}")


def _show_next(demo: Demo, *, keep: bool) -> None:
    if not keep:
        print("\nTo look around yourself: cubesched demo --keep (or make demo KEEP=1)")
        return
    config = demo.cluster.kubeconfig
    print("\nIt keeps running. In another terminal:\n")
    if config:
        print(f"  export KUBECONFIG={config}")
    if shutil.which("kubectl") is None:
        print(f"  export PATH=$PATH:{demo.cluster.kubectl.parent}")
    print("  kubectl get sbr -n demo -o wide")
    print("  kubectl get sbn")
    print("  kubectl get sprof,sconf")
    print("  kubectl explain sandboxrequest.spec")
    print("  kubectl apply -f deploy/examples/profiles.yaml   # in place of the factory Profiles")
    print("\nCtrl-C stops everything.")
