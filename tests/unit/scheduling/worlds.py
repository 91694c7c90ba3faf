"""One replica's scheduler over a small API server, on a virtual clock; nobody waits for anything.

The server keeps requests, checks versions and tells every change in order, `lag_seconds` late.
How single writes end can be scripted.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.model.virtualtime import run_virtual, spawn
from tests.unit.builders import a_pipeline
from tests.unit.fleet.objects import a_node_object, a_request_dict, as_json, reports

from cubesched.core.pipeline import Pipeline
from cubesched.core.scheduler_settings import Settings
from cubesched.core.writing import Outcome, WriteResult
from cubesched.fleet.fleet import Fleet
from cubesched.policy.policyset import CompiledProfile, PolicySet, Route
from cubesched.scheduling.scheduler import Scheduler

ME = "replica-me"
WALL_AT_START = 1_800_000_000.0


class LoopClock:
    """Both clocks from the running loop's."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return WALL_AT_START + self.monotonic()


@dataclass
class Numbers:
    """A meter that remembers."""

    counts: Counter[str] = field(default_factory=Counter)
    labels: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def inc(self, name: str, value: float = 1.0, **labels: str) -> None:
        self.counts[name] += int(value)
        self.labels.append((name, labels))

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.inc(name, 1.0, **labels)

    def set(self, name: str, value: float, **labels: str) -> None:
        self.labels.append((name, labels))


@dataclass
class Posted:
    """Events that remember."""

    notes: list[tuple[str, str, str]] = field(default_factory=list)
    """(name, reason, note)"""

    def post(self, *, name: str, reason: str, note: str, **_: str) -> None:
        self.notes.append((name, reason, note))


def a_policy(
    pipeline: Pipeline | None = None,
    *,
    revision: str = "rev-1",
    route: Route | None = None,
    **settings: Any,
) -> PolicySet:
    """Return a set of one Profile: the default one, unless it has a route."""
    profile = CompiledProfile(
        name="a-profile",
        generation=1,
        route=route or Route(),
        is_default=route is None,
        pipeline=pipeline or a_pipeline(("least_allocated", {}, 1.0)),
    )
    return PolicySet(
        revision=revision,
        source="custom",
        settings=Settings(**settings),
        config_generation=0,
        profiles=(profile,),
    )


@dataclass
class Policy:
    """What is leased."""

    current: PolicySet | None = field(default_factory=a_policy)


@dataclass(slots=True)
class Put:
    """One write that reached the server, or did not."""

    name: str
    version: int
    status: dict[str, Any]
    priority: int
    at: float


End = Callable[["Server", Put], WriteResult]


def lands(server: Server, put: Put) -> WriteResult:
    """The server takes the write if its version is the current one."""
    return server.store_status(put)


def lost_after_landing(server: Server, put: Put) -> WriteResult:
    """It lands; the reply does not arrive."""
    server.store_status(put)
    return unknown(server, put)


def resent_after_landing(server: Server, put: Put) -> WriteResult:
    """It lands; the HTTP layer sends it again, and that answer is a 409."""
    server.store_status(put)
    return WriteResult(Outcome.REFUSED, 409, "", "conflict")


def unknown(server: Server, put: Put) -> WriteResult:
    """Nothing lands and no answer comes."""
    return WriteResult(Outcome.UNKNOWN, 0, "", "no answer")


def rejected(server: Server, put: Put) -> WriteResult:
    """The server will not have it."""
    return WriteResult(Outcome.REJECTED, 422, "", "invalid: no")


def unsent(server: Server, put: Put) -> WriteResult:
    """The server cannot be reached."""
    return WriteResult(Outcome.REJECTED, 0, "", "cannot connect")


def breaks(server: Server, put: Put) -> WriteResult:
    """The client itself has a fault."""
    raise RuntimeError("a fault in the client")


class Server:
    """Requests in memory; implements the scheduler's Writer."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, dict[str, Any]] = {}
        self.puts: list[Put] = []
        self.script: deque[End] = deque()
        self.otherwise: End = lands
        self.latency_seconds = 0.002
        self.tell: Callable[[str, bytes, int], None] = lambda *_: None

    async def put_status(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        resource_version: str,
        status: Mapping[str, Any],
        priority: int = 1,
    ) -> WriteResult:
        now = asyncio.get_running_loop().time()
        put = Put(name, int(resource_version), dict(status), priority, now)
        self.puts.append(put)
        await asyncio.sleep(self.latency_seconds)
        end = self.script.popleft() if self.script else self.otherwise
        return end(self, put)

    def store_status(self, put: Put) -> WriteResult:
        stored = self.objects.get(put.name)
        if stored is None:
            return WriteResult(Outcome.MISSING, 404, "", "not found")
        if stored["metadata"]["resourceVersion"] != str(put.version):
            return WriteResult(Outcome.REFUSED, 409, "", "conflict")
        if stored.get("status", {}) == put.status:
            return WriteResult(Outcome.LANDED, 200, str(put.version), "")
        version = self.change(put.name, status=put.status)
        return WriteResult(Outcome.LANDED, 200, str(version), "")

    def create(self, name: str, **fields: Any) -> None:
        self.version += 1
        self.objects[name] = a_request_dict(name, version=self.version, **fields)
        self.tell("ADDED", as_json(self.objects[name]), self.version)

    def change(self, name: str, **parts: Any) -> int:
        """Change parts of an object, as anybody may; `status` is replaced whole."""
        self.version += 1
        stored = msgspec.json.decode(as_json(self.objects[name]))
        for key, value in parts.items():
            if key == "status":
                stored["status"] = value
            else:
                stored[key] |= value
        if "spec" in parts:
            stored["metadata"]["generation"] += 1
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[name] = stored
        self.tell("MODIFIED", as_json(stored), self.version)
        return self.version

    def patch_status(self, name: str, **fields: Any) -> int:
        """Change fields of a status, as its node's agent or another replica does."""
        return self.change(name, status={**self.objects[name].get("status", {}), **fields})

    def delete(self, name: str) -> None:
        self.version += 1
        gone = self.objects.pop(name)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.tell("DELETED", as_json(gone), self.version)


@dataclass
class Deletions:
    """Deletes from a server, on the very version only; implements the scheduler's Remover."""

    server: Server
    asked: list[tuple[str, float]] = field(default_factory=list)
    """What an operator asked to be deleted, and when."""
    answers: deque[WriteResult] = field(default_factory=deque)
    """What the next ones are answered, with nothing done."""

    async def delete(
        self, *, namespace: str, name: str, uid: str, resource_version: str
    ) -> WriteResult:
        self.asked.append((name, asyncio.get_running_loop().time()))
        await asyncio.sleep(self.server.latency_seconds)
        if self.answers:
            return self.answers.popleft()
        stored = self.server.objects.get(name)
        if stored is None:
            return WriteResult(Outcome.MISSING, 404, "", "not found")
        meta = stored["metadata"]
        if (meta["uid"], meta["resourceVersion"]) != (uid, resource_version):
            return WriteResult(Outcome.REFUSED, 409, "", "conflict")
        self.server.delete(name)
        return WriteResult(Outcome.LANDED, 200, "", "")


class World:
    """A replica with everything around it."""

    def __init__(self, policy: PolicySet | None = None) -> None:
        self.clock, self.meter, self.events = LoopClock(), Numbers(), Posted()
        self.server, self.policy = Server(), Policy(policy or a_policy())
        self.remover = Deletions(self.server)
        self.fleet = Fleet(monotonic=self.clock.monotonic, wall=self.clock.wall)
        self.ids = 0
        self.lag_seconds = 0.001
        self.is_beating = True
        self.mute: set[str] = set()
        """Nodes that do not report."""
        self.cut_off = False
        self.everyone_runs = True
        self.scheduler = Scheduler(
            identity=ME,
            fleet=self.fleet,
            policy=self.policy,
            writer=self.server,
            remover=self.remover,
            clock=self.clock,
            meter=self.meter,
            events=self.events,
            new_id=self._new_id,
            random=lambda: 0.5,
            everyone_runs=lambda _revision: self.everyone_runs,
        )
        self.server.tell = self._tell
        self._on_its_way: deque[tuple[str, bytes, int]] = deque()
        self.jobs: list[asyncio.Task[None]] = []

    def _new_id(self) -> str:
        self.ids += 1
        return f"id-of-mine-{self.ids}"

    def _tell(self, kind: str, raw: bytes, version: int) -> None:
        if not self.cut_off:
            loop = asyncio.get_running_loop()
            self._on_its_way.append((kind, raw, version))
            loop.call_later(self.lag_seconds, self._meet_next)

    def _meet_next(self) -> None:
        """Tell the oldest event: timers of one instant may go off in any order."""
        if self._on_its_way:
            self.fleet.ledger.event(*self._on_its_way.popleft())

    # What stands at the start

    def list_anew(self) -> None:
        """End the stream and list what the server holds; what was on its way is not told."""
        self._on_its_way.clear()
        self.list_requests()

    def list_requests(self) -> None:
        """List what the server holds now: the stream starts anew here."""
        ledger = self.fleet.ledger
        ledger.reset()
        for stored in self.server.objects.values():
            ledger.seen(as_json(stored))
        ledger.complete(self.server.version)

    def list_nodes(self, *names: str, **fields: Any) -> None:
        """List these nodes and let each be seen alive."""
        self.fleet.reset()
        for name in names:
            self.fleet.seen(a_node_object(name, **fields))
        self.server.version += 1
        self.fleet.complete(self.server.version)
        self.beat(*names, ago_seconds=1.0)
        self.beat(*names)

    def put_node(self, name: str, kind: str = "ADDED", **fields: Any) -> None:
        self.server.version += 1
        self.fleet.event(kind, a_node_object(name, **fields), self.server.version)

    def beat(self, *names: str, ago_seconds: float = 0.0, **fields: Any) -> None:
        stamp_ms = int((self.clock.wall() - ago_seconds) * 1000)
        for name in names or self.fleet.columns.names:
            record = self.fleet.records[name]
            self.fleet.take_reports(reports(stamp_ms, name, node_uid=record.uid, **fields))

    def read_old_reports(self) -> None:
        """Read the reports once more, none of which is new."""
        for name, record in self.fleet.records.items():
            stamp_ms = int(self.fleet.columns.reported.stamp_ms[self.fleet.columns.row_of[name]])
            self.fleet.take_reports(reports(stamp_ms, name, node_uid=record.uid))

    # What runs

    def start(self) -> None:
        """Start the scheduler's loops and a second-by-second heartbeat of all nodes."""
        for job in (
            self.scheduler.run(),
            self.scheduler.run_sweeps(),
            self.scheduler.run_waking(),
            self._beat_each_second(),
        ):
            self.jobs.append(spawn("replica", job))

    async def _beat_each_second(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            if self.is_beating and (names := set(self.fleet.columns.names) - self.mute):
                self.beat(*sorted(names), applied_version=self.server.version)
            self.fleet.sweep()

    def status(self, name: str = "r1") -> dict[str, Any]:
        """Return a request's status as the server holds it."""
        found: dict[str, Any] = self.server.objects[name].get("status", {})
        return found

    def phase(self, name: str = "r1") -> str:
        return str(self.status(name).get("phase", "Pending"))

    def scheduled(self, name: str = "r1") -> tuple[str, str]:
        """Return status and reason of the condition `Scheduled`."""
        for condition in self.status(name).get("conditions", ()):
            if condition["type"] == "Scheduled":
                return condition["status"], condition["reason"]
        return "", ""

    def phases(self, name: str = "r1") -> list[str]:
        """Return what was written for a request, in order."""
        return [put.status["phase"] for put in self.server.puts if put.name == name]

    def is_at_rest(self) -> bool:
        """Tell whether no plan, write, reservation or place in the queue is left over."""
        scheduler, busy = self.scheduler, self.scheduler.queue.count("busy")
        return not (
            self.fleet.assumed or scheduler.inflight.writes or scheduler.reservations.mine or busy
        )


async def settle(seconds: float = 1.0) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(seconds)


def in_world(
    policy: Callable[[], PolicySet] | None = None, nodes: tuple[str, ...] = ("n1",)
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run an async test on a virtual clock, in a world with these nodes and empty lists."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def run(**params: Any) -> None:
            async def main() -> None:
                world = World(policy() if policy else None)
                world.list_requests()
                world.list_nodes(*nodes)
                await test(world, **params)

            run_virtual(main)

        signature = inspect.signature(test)
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[p for name, p in signature.parameters.items() if name != "world"]
        )
        run.__name__, run.__module__ = test.__name__, test.__module__
        return run

    return decorate
