from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import pytest
from tests.model.apiserver import ADMIN, ApiServer
from tests.model.faults import Faults
from tests.model.http import Http, a_request
from tests.model.virtualtime import run_virtual
from tests.unit.agent.worlds import placed

from cubesched.agent.simulated import Behaviour
from cubesched.agent.simulation import Machines, Simulation, node_user, runtime_of, setup_of
from cubesched.api import NODES
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.entries import Weight
from cubesched.fleet.metrics_layout import decode_all, uid_bytes

GIB = 1 << 30


class Store:
    """Takes reports; fails while told to."""

    def __init__(self) -> None:
        self.reports: dict[str, bytes] = {}
        self.times: list[float] = []
        self.is_down = False

    async def publish(self, reports: Mapping[str, bytes]) -> None:
        if self.is_down:
            raise StoreUnavailable("down")
        self.times.append(asyncio.get_running_loop().time())
        self.reports |= reports


class Fleet:
    """A simulation on an in-memory API server."""

    def __init__(self, machines: Machines, *, shared: bool) -> None:
        self.server = ApiServer(rng=Random(1))
        self.admin = Http(self.server.client(ADMIN))
        self.nodes = Http(self.server.client(ADMIN), NODES)
        self.store = Store()
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()
        self.simulation = Simulation(
            machines,
            Behaviour(),
            transport_as=lambda node: self.server.client(node_user(node)),
            metrics=self.store,
            shared_transport=self.server.client("viewer") if shared else None,
        )

    async def run(self) -> None:
        await self.simulation.run(self.stop, ready=self.ready.set)

    async def node(self, name: str) -> dict[str, Any]:
        _, found = await self.nodes.get(name)
        return found

    async def condition(self, name: str) -> str:
        (condition,) = (await self.node(name))["status"]["conditions"]
        reason: str = condition["reason"]
        return reason


def with_fleet(
    test: Callable[[Fleet], Awaitable[None]], *, count: int = 3, shared: bool = False
) -> None:
    async def main() -> None:
        machines = Machines(
            count=count,
            templates=("t",),
            template_share=1.0,
            images={"app:1": 5 * GIB},
            image_share=1.0,
        )
        fleet = Fleet(machines, shared=shared)
        running = asyncio.create_task(fleet.run())
        await test(fleet)
        fleet.stop.set()
        await running

    run_virtual(main)


@pytest.mark.parametrize("shared", [False, True], ids=["own watches", "shared watch"])
def test_every_node_registers_reports_and_runs_what_is_bound_to_it(shared: bool) -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.ready.wait()
        for number in range(3):
            _, created = await fleet.admin.create(a_request(f"q{number}"))
            await fleet.admin.put_status(created, placed("Bound", node=f"node-00{number}"))
        await asyncio.sleep(3)

        for number in range(3):
            _, stored = await fleet.admin.get(f"q{number}")
            assert stored["status"]["phase"] == "Running"
            assert stored["status"]["endpoint"].startswith(f"node-00{number}:")
        assert await fleet.condition("node-002") == "AgentReady"
        status = (await fleet.node("node-002"))["status"]
        assert status["templates"] == ["t"]
        assert status["images"] == [{"name": "app:1", "sizeBytes": 5 * GIB}]
        assert status["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]

    with_fleet(test, shared=shared)


def test_reports_carry_the_nodes_uid_and_come_every_second() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.ready.wait()
        await asyncio.sleep(10)

        names, table, problems = decode_all(
            {name.encode(): packed for name, packed in fleet.store.reports.items()}
        )
        assert sorted(names) == ["node-000", "node-001", "node-002"]
        assert not problems
        uid = (await fleet.node(names[0]))["metadata"]["uid"]
        assert table["node_uid"][0].tobytes() == uid_bytes(uid)
        assert (table["applied_version"] > 0).all()
        steps = [b - a for a, b in zip(fleet.store.times, fleet.store.times[1:], strict=False)]
        assert max(steps) <= 1.1

    with_fleet(test)


def test_an_outage_of_redis_stops_nothing() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.store.is_down = True
        await fleet.ready.wait()
        _, created = await fleet.admin.create(a_request("q"))
        await fleet.admin.put_status(created, placed("Bound", node="node-000"))
        await asyncio.sleep(3)
        assert not fleet.store.reports
        fleet.store.is_down = False
        await asyncio.sleep(3)

        _, stored = await fleet.admin.get("q")
        assert stored["status"]["phase"] == "Running"
        assert len(fleet.store.reports) == 3

    with_fleet(test)


def test_an_existing_spec_is_left_as_its_admin_wrote_it() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.ready.wait()
        assert (await fleet.node("node-001"))["spec"]["capacity"] == {"cpu": "4", "memory": "8Gi"}

    async def main() -> None:
        fleet = Fleet(Machines(count=2), shared=False)
        mine = {"apiVersion": "cubesched.io/v1alpha1", "kind": "SandboxNode"}
        metadata = {"name": "node-001"}
        spec = {"capacity": {"cpu": "4", "memory": "8Gi"}}
        status, _ = await fleet.nodes.create({**mine, "metadata": metadata, "spec": spec})
        assert status == 201
        running = asyncio.create_task(fleet.run())
        await test(fleet)
        fleet.stop.set()
        await running

    run_virtual(main)


def test_a_node_recreated_by_an_admin_is_served_under_its_new_uid() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.ready.wait()
        old = await fleet.node("node-000")
        await fleet.nodes.delete("node-000")
        await asyncio.sleep(60)
        code, _ = await fleet.nodes.get("node-000")
        assert code == 404
        mine = {key: old[key] for key in ("apiVersion", "kind", "spec")}
        _, new = await fleet.nodes.create({**mine, "metadata": {"name": "node-000"}})
        await asyncio.sleep(60)

        assert await fleet.condition("node-000") == "AgentReady"
        report = decode_all({b"node-000": fleet.store.reports["node-000"]}).table[0]
        assert report["node_uid"].tobytes() == uid_bytes(new["metadata"]["uid"])

    with_fleet(test)


def test_a_stopped_node_says_so() -> None:
    async def main() -> None:
        fleet = Fleet(Machines(count=2), shared=False)
        running = asyncio.create_task(fleet.run())
        await fleet.ready.wait()
        fleet.stop.set()
        await running

        assert await fleet.condition("node-000") == "AgentStopped"

    run_virtual(main)


def test_nodes_come_up_through_a_server_that_fails_now_and_then() -> None:
    async def main() -> None:
        fleet = Fleet(Machines(count=20), shared=False)
        fleet.server.faults = Faults(lost=0.1, lost_after=0.1, error=0.1, unreachable=0.1)
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(fleet.ready.wait(), 300)
        fleet.server.faults = Faults()
        fleet.stop.set()
        await running

    run_virtual(main)


def test_machines_are_the_same_for_the_same_seed() -> None:
    images = {"app:1": 5 * GIB, "app:2": GIB}
    machines = Machines(count=50, heterogeneous=True, templates=("a", "b"), images=images, seed=3)

    def facts(of: Machines) -> list[tuple[float, tuple[str, ...], tuple[str, ...]]]:
        return [
            (of.size_of(name), of.templates_of(name), tuple(of.images_of(name)))
            for name in of.names()
        ]

    assert facts(machines) == facts(
        Machines(count=50, heterogeneous=True, templates=("a", "b"), images=images, seed=3)
    )
    assert len(set(facts(machines))) > 4


def test_a_node_registers_what_its_machine_holds() -> None:
    machines = Machines(
        count=2,
        capacity=Weight(4000, 8 * GIB, 10 * GIB),
        quota=Weight(8000, 8 * GIB, 10 * GIB),
        sandboxes=5,
        zones=("z1", "z2"),
    )

    setup = setup_of(machines, 1, "node-001")
    limits = runtime_of(machines, "node-001", Behaviour(), None).limits()

    assert setup.spec == {
        "capacity": {"cpu": "4", "memory": "8Gi", "systemDisk": "10Gi"},
        "quota": {"cpu": "8", "memory": "8Gi", "systemDisk": "10Gi", "sandboxes": 5},
    }
    assert setup.labels == {"topology.kubernetes.io/zone": "z2"}
    assert (limits.cpu_millis, limits.memory_bytes, limits.sandboxes) == (8000, 8 * GIB, 5)
    assert limits.disk_bytes == 10 * GIB
