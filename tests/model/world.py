"""The world of one schedule: server, machines, agents, replicas, users, and what befalls them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import orjson
from tests.model.adversary import Adversary
from tests.model.apiserver import ADMIN, ApiServer, Rights, least_rights
from tests.model.auditing import FINISHED, Auditor, ViolationError
from tests.model.auditing import REQUESTS as REQUESTS_KEY
from tests.model.client import Call
from tests.model.faults import Faults
from tests.model.http import NAMESPACE, a_request
from tests.model.lives import a_lifespan, silence
from tests.model.machines import Machine
from tests.model.modes import NODES_KEY, LeaseHistory, OperatorSays
from tests.model.processes import AgentProcess, ReplicaProcess, Reports
from tests.model.scenario import GIB, Scenario
from tests.model.store import Key, Object
from tests.model.virtualtime import WORLD, spawn

from cubesched.agent.runtime import Limits, Order
from cubesched.agent.serving import NodeSetup
from cubesched.agent.simulated import Behaviour, SimulatedRuntime
from cubesched.api import NODES, REQUESTS
from cubesched.fleet.entries import Weight

SIZES = (1, 1, 1, 2, 2, 3)
UNREADABLE = "unreadable"


class World:
    """Runs one scenario; everything random comes from its seed."""

    def __init__(self, scenario: Scenario, *, rights: Rights = least_rights) -> None:
        self.scenario = scenario
        self.rng = Random(f"world {scenario.seed}")
        self.server = ApiServer(
            rng=Random(f"server {scenario.seed}"), faults=scenario.faults, rights=rights
        )
        self.server.most_per_page = scenario.most_per_page
        self.server.bookmark_seconds = scenario.bookmark_seconds
        self.counts: Counter[str] = Counter()
        self.policy = next(iter(scenario.policies.values()))
        direct = {p.revision for mode, p in scenario.policies.items() if mode == "none"}
        self.auditor = Auditor(
            self.server.store, scenario.nodes, LeaseHistory(self.server.store, direct).allows
        )
        self.reports = Reports()
        self.auditor.takes_now = lambda node, name: self.machines[node].held.get(name)
        self.operator = OperatorSays(
            self.server.store,
            scenario.nodes,
            Random(f"operator {scenario.seed}"),
            release_ratio=self.rng.choice((0.0, 0.5, 0.5, 1.0)),
        )
        self.machines = {node: self._machine(node) for node in scenario.nodes}
        self.agents = {node: self._agent(node) for node in scenario.nodes}
        self.replicas = [self._replica(slot) for slot in range(scenario.replicas)]
        self.adversary = Adversary(self)
        self._born = 0
        self._waiting: list[asyncio.Task[None]] = []
        self._restored = False

    # Processes

    def _machine(self, node: str) -> Machine:
        limits = self.scenario.nodes[node]
        runtime = SimulatedRuntime(
            node,
            limits=Limits(limits.cpu_millis, limits.memory_bytes, sandboxes=limits.sandboxes),
            capacity=Weight(limits.cpu_millis, limits.memory_bytes),
            behaviour=Behaviour(
                seed=self.scenario.seed,
                create_delay_seconds=self.scenario.create_seconds,
                lifetime_seconds=self.scenario.lifetime_seconds,
                refuse_rate=self.scenario.refuse_rate,
                start_fail_rate=self.scenario.start_fail_rate,
            ),
        )
        return Machine(
            node,
            runtime,
            self._about_to_start,
            self._about_to_resume,
            stop_seconds=self.scenario.stop_seconds,
        )

    def _about_to_start(self, node: str, order: Order) -> None:
        twins = sum(machine.number_of(order.uid) for machine in self.machines.values())
        if self._restored:
            twins = 0  # what a restore took back may run elsewhere until its agent notices
        self.auditor.started(node, order, self.machines[node].held, twins)

    def _about_to_resume(self, node: str, sandbox: str, weight: Weight) -> None:
        if not self._restored:  # as for twins
            self.auditor.resumed(node, sandbox, weight, self.machines[node].held)

    def _agent(self, node: str) -> AgentProcess:
        limits = self.scenario.nodes[node]
        quota = {"sandboxes": limits.sandboxes, "createConcurrency": limits.creates}
        capacity = {"cpu": f"{limits.cpu_millis}m", "memory": str(limits.memory_bytes)}
        self.counts["agent started"] += 1
        return AgentProcess(
            f"agent-{node}-{self.counts['agent started']}",
            server=self.server,
            reports=self.reports,
            machine=self.machines[node],
            setup=NodeSetup(spec={"capacity": capacity, "quota": quota}),
            rng=Random(self.rng.random()),
        )

    def _replica(self, slot: int) -> ReplicaProcess:
        self.counts["replica started"] += 1
        return ReplicaProcess(
            f"r{slot}-{self.counts['replica started']}",
            server=self.server,
            reports=self.reports,
            policy=self.policy,
            counts=self.counts,
            rng=Random(self.rng.random()),
        )

    # What befalls

    def befall(self, name: str) -> None:
        """Let one of the things happen that a scenario has a rate for."""
        getattr(self if hasattr(self, name) else self.adversary, name)()

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> int:
        """Send a user's request, at once and without faults."""
        data = None if body is None else orjson.dumps(body)
        return self.server.serve(Call(ADMIN, method, path, body=data)).status

    def open_requests(self) -> list[Object]:
        """Return the requests that are not finished."""
        return [r for r in self.auditor.requests() if r["status"]["phase"] not in FINISHED]

    def create(self) -> None:
        """Create a request, now and then under a name that was used before."""
        if len(self.open_requests()) >= self.scenario.requests_at_once:
            return
        self._born += 1
        again = self._born > 3 and self.rng.random() < 0.2
        number = self.rng.randrange(self._born) if again else self._born
        cpus = self.rng.choice(SIZES)
        resources = {"cpu": str(cpus), "memory": str(cpus * GIB)}
        now = asyncio.get_running_loop().time()
        lifespan = a_lifespan(self.rng, now) if self.scenario.lives_are_bounded else {}
        body = a_request(
            f"q{number}", resources=resources, priority=self.rng.choice((0, 0, 5)), **lifespan
        )
        self.send("POST", REQUESTS.path(namespace=NAMESPACE), body)

    def silence(self) -> None:
        """Let a node's reports be lost for a while; its agent and machine go on."""
        silence(self.rng, list(self.machines), self.reports, self.later)

    def path(self, obj: Object) -> str:
        return REQUESTS.path(obj["metadata"]["name"], namespace=NAMESPACE)

    def delete(self) -> None:
        """Delete any request, finished ones too."""
        if requests := self.auditor.requests():
            self.send("DELETE", self.path(self.rng.choice(requests)))

    def label(self) -> None:
        """Change metadata only: the version rises, the reservation stays."""
        if requests := self.open_requests():
            obj = self.rng.choice(requests)
            labels = {"workload": "test", "touched": str(self.rng.random())}
            metadata = {**obj["metadata"], "labels": labels}
            self.send("PUT", self.path(obj), {**obj, "metadata": metadata})

    def crash(self) -> None:
        """Kill a replica; another process takes its place a little later."""
        slot = self.rng.randrange(len(self.replicas))
        self._kill_replica(slot, lands=self.scenario.writes_land_after_crash)
        self.later(self.rng.expovariate(0.5), lambda: self._revive(slot))

    def _kill_replica(self, slot: int, *, lands: float) -> None:
        self.counts["replica killed"] += 1
        self.replicas[slot].kill(lands=lands)

    def _revive(self, slot: int) -> None:
        if self.replicas[slot].task.done():
            self.replicas[slot] = self._replica(slot)

    def pause(self) -> None:
        """Stop a replica or an agent for a while, mid-flight."""
        process = self.rng.choice([*self.replicas, *self.agents.values()])
        if process.is_stopped or process.task.done():
            return
        self.counts["process paused"] += 1
        process.stop()
        self.later(self.rng.choice((0.05, 0.5, 4.0, 9.0)) * self.rng.random(), process.go_on)

    def agent_crash(self) -> None:
        """Kill an agent and start it again on the same machine."""
        node = self.rng.choice(list(self.agents))
        self.counts["agent killed"] += 1
        self.agents[node].kill(lands=self.scenario.writes_land_after_crash)
        self.agents[node] = self._agent(node)

    def restart(self) -> None:
        """Restart the API server."""
        seconds = self.rng.choice((0.0, 0.5, 3.0))
        self.server.restart(down_seconds=seconds, cold_seconds=seconds * self.rng.random())

    def compact(self) -> None:
        """Compact etcd up to now, sometimes in the server's cache as well."""
        self.server.compact(in_cache_too=self.rng.random() < 0.3)

    def end_streams(self) -> None:
        """End all watches, as a changed CRD does."""
        self.server.end_streams()

    def corrupt(self) -> None:
        """Store a request so that it cannot be read, as a newer release might; mend it later."""
        store = self.server.store
        readable = [
            (key, obj)
            for key, obj in store.objects.items()
            if key.resource == REQUESTS_KEY and "nodeName" in obj.get("status", {})
        ]
        if readable:
            key, obj = self.rng.choice(readable)
            self.counts["request corrupted"] += 1
            store.put(key, {**obj, "status": {**obj["status"], "refusals": UNREADABLE}}, ADMIN)
            self.later(self.rng.expovariate(0.3), lambda: self._mend(key))

    def _mend(self, key: Key) -> None:
        obj = self.server.store.objects.get(key)
        if obj is not None and obj.get("status", {}).get("refusals") == UNREADABLE:
            status = {name: part for name, part in obj["status"].items() if name != "refusals"}
            self.server.store.put(key, {**obj, "status": status}, ADMIN)

    def drain(self) -> None:
        """Have a node emptied, in part or whole, and take that back a little later."""
        node = self.rng.choice(list(self.scenario.nodes))
        self._set_drain(node, self.rng.choice(("Unstarted", "All", "All")))
        self.later(self.rng.expovariate(0.7), lambda: self._set_drain(node, "None"))

    def _set_drain(self, node: str, drain: str) -> None:
        obj = self.server.store.objects.get(Key(NODES_KEY, "", node))
        if obj is not None:
            self.counts[f"drain {drain}"] += 1
            self.send("PUT", NODES.path(node), {**obj, "spec": {**obj["spec"], "drain": drain}})

    def wish(self) -> None:
        """Have a client pause or resume a request, or change its mind again and again."""
        if requests := self.open_requests():
            begun = [r for r in requests if r["status"]["phase"] in {"Running", "Paused"}]
            obj = self.rng.choice(begun if begun and self.rng.random() < 0.9 else requests)
            name, times = obj["metadata"]["name"], self.rng.choice((1, 1, 1, 1, 2, 7))
            self.counts["wish changed all the time"] += times > 2
            for number in range(times):
                self.later(number * 0.2 * self.rng.random(), lambda: self._flip(name))

    def _flip(self, name: str) -> None:
        obj = self.server.store.objects.get(Key(REQUESTS_KEY, NAMESPACE, name))
        if obj is not None:
            spec = {**obj["spec"], "paused": not obj["spec"].get("paused", False)}
            self.send("PUT", self.path(obj), {**obj, "spec": spec})

    def ratio(self) -> None:
        """Have the operator say another share that paused sandboxes give up."""
        self.operator.change(self.rng.choice((0.0, 0.25, 0.5, 1.0)))

    def restore(self) -> None:
        """Restore etcd as the runbook says: nobody who remembers the future goes on."""
        store = self.server.store
        oldest = max(store.first, store.revision - 60)
        self._restored = True
        for slot in range(len(self.replicas)):
            self._kill_replica(slot, lands=0)
        for agent in self.agents.values():
            agent.kill(lands=0)
        self.server.restore(
            self.rng.randint(oldest, store.revision), bump=self.rng.choice((0, 1_000))
        )
        self.auditor.note_fitting()
        self.replicas = [self._replica(slot) for slot in range(len(self.replicas))]
        self.agents = {node: self._agent(node) for node in self.agents}

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            act()

        self._waiting.append(spawn(WORLD, wait()))

    async def settle_down(self) -> None:
        """Let everything that was to be mended, continued or revived be so; no faults from now."""
        await asyncio.gather(*self._waiting)
        self.reports.lost.clear()
        for key in list(self.server.store.objects):
            self._mend(key)  # a restore brought some back as they were
        for node in self.scenario.nodes:
            self._set_drain(node, "None")
        for obj in self.open_requests():
            if obj["spec"].get("paused") and self.rng.random() < 0.5:
                self._flip(obj["metadata"]["name"])
        self.server.faults = Faults()

    def check(self) -> None:
        """Raise what the auditor found, and what ended a process that nobody killed."""
        self.auditor.raise_violation()
        if self.server.malformed:
            raise ViolationError(f"refused as malformed: {self.server.malformed[0]}")
        for process in (*self.replicas, *self.agents.values()):
            if process.task.done() and not process.task.cancelled():
                raise ViolationError(f"{process.name} ended: {process.task.exception()!r}")
