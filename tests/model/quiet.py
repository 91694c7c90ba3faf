"""When the world has fallen quiet: is everything placed that fits, and is anything left behind?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from tests.model.auditing import COUNTED
from tests.model.lives import overdue
from tests.model.loads import Load
from tests.model.processes import ReplicaProcess
from tests.model.store import Object
from tests.model.world import World

from cubesched.api.quantity import parse_millis, parse_units


def is_settled(world: World) -> bool:
    """Tell whether nothing more is to come."""
    return not any((any(_moving(world)), any(_left_behind(world)), any(_overdue(world))))


def _overdue(world: World) -> Iterator[str]:
    return overdue(world, asyncio.get_running_loop().time())


def complaints(world: World) -> list[str]:
    """Return what should have settled and has not."""
    return [*_moving(world), *_left_behind(world), *_overdue(world)]


def _moving(world: World) -> Iterator[str]:
    runs_for_ever = world.scenario.lifetime_seconds is None
    for obj in world.open_requests():
        name, status = obj["metadata"]["name"], obj["status"]
        match status["phase"]:
            case "Pending" | "Paused" if obj["spec"].get("paused"):
                pass
            case "Running" if obj["spec"].get("paused"):
                yield f"{name} is not paused"
            case "Paused":
                if _could_be_resumed(world, obj):
                    yield f"{name} is Paused and could be resumed"
            case "Pending":
                if nodes := _nodes_with_room(world, obj):
                    yield f"{name} is Pending and fits {', '.join(nodes)}"
            case "Running" if runs_for_ever:
                pass
            case phase:
                yield f"{name} is still {phase} on {status['nodeName']}"


def _nodes_with_room(world: World, obj: Object) -> list[str]:
    resources = obj["spec"]["resources"]
    wanted: Mapping[str, Any] = {
        "phase": "Bound",
        "reservation": {
            "cpuMillis": parse_millis(resources["cpu"], round_up=True),
            "memoryBytes": parse_units(resources["memory"], round_up=True),
        },
    }
    refused = {refusal["node"] for refusal in obj["status"].get("refusals", ())}
    refused |= {node for process in world.replicas for node in process.replica.fleet.quarantined}
    return [
        node
        for node in world.scenario.nodes
        if node not in refused
        and not _with(world, node, wanted).exceeds(world.scenario.nodes[node])
    ]


def _could_be_resumed(world: World, obj: Object) -> bool:
    """Tell whether its node has room for all of it, beside everything else that counts there."""
    status, uid = obj["status"], obj["metadata"]["uid"]
    load = world.auditor.confirmed_on(status["nodeName"], COUNTED, but=uid)
    load.add({**status, "phase": "Bound"})
    return not load.exceeds(world.scenario.nodes[status["nodeName"]])


def _with(world: World, node: str, wanted: Mapping[str, Any]) -> Load:
    load = world.auditor.confirmed_on(node, COUNTED)
    load.add(wanted)
    return load


def _left_behind(world: World) -> Iterator[str]:
    for process in world.replicas:
        if process.task.done():
            yield f"{process.name} is gone"
            continue
        yield from _of_replica(world, process)


def _of_replica(world: World, process: ReplicaProcess) -> Iterator[str]:
    replica = process.replica
    for what, number in (
        ("plans", replica.fleet.assumed),
        ("writes", len(replica.scheduler.inflight.writes)),
        ("reservations", replica.scheduler.reservations.unresolved),
        ("ghosts", len(replica.fleet.ledger.ghosts)),
    ):
        if number:
            yield f"{process.name} still holds {number} {what}"
    stored = {
        obj["metadata"]["uid"]: (obj["status"]["phase"], obj["metadata"]["resourceVersion"])
        for obj in world.auditor.requests()
    }
    held = {
        entry.uid: (entry.phase, str(entry.version))
        for entry in replica.fleet.ledger.entries.values()
    }
    if held != stored or not replica.fleet.ledger.exact:
        differing = len(held.items() ^ stored.items())
        yield f"the ledger of {process.name} differs from the server in {differing} states"
