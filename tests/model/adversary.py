"""What is done to a schedule by those who know where it hurts, and by changes of the mode."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.model.store import Change

from cubesched.api.quantity import parse_millis, parse_units
from cubesched.api.rights import NODE_USER_PREFIX

if TYPE_CHECKING:
    from tests.model.world import World


class Adversary:
    """Acts on one world; everything random comes from the world's dice."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._freezes = self._usurps = False
        world.server.store.listeners.append(self.committed)

    def resize(self) -> None:
        """Change what a request asks for, which only a policy of the cluster forbids."""
        world = self.world
        if requests := world.open_requests():
            obj = world.rng.choice(requests)
            resources = {**obj["spec"]["resources"], "cpu": str(world.rng.choice((1, 2, 3)))}
            spec = {**obj["spec"], "resources": resources}
            world.send("PUT", world.path(obj), {**obj, "spec": spec})

    def rival(self) -> None:
        """Reserve as a replica does that sees nothing of the others, and dies of it."""
        node = self.world.rng.choice(list(self.world.scenario.nodes))
        self._reserve(node, self.world.rng.choice(("agent", "operator")))

    def _reserve(self, node: str, confirmation: str) -> None:
        world = self.world
        pending = [r for r in world.open_requests() if r["status"]["phase"] == "Pending"]
        if not pending:
            return
        obj = world.rng.choice(pending)
        resources = obj["spec"]["resources"]
        reservation = {
            "id": f"{world.rng.getrandbits(128):032x}",
            "replica": "rival",
            "time": obj["metadata"]["creationTimestamp"],
            "cpuMillis": parse_millis(resources["cpu"], round_up=True),
            "memoryBytes": parse_units(resources["memory"], round_up=True),
            "confirmation": confirmation,
        }
        status = {"phase": "Reserved", "nodeName": node, "reservation": reservation}
        body = {**obj, "status": {**obj["status"], **status}}
        code = world.send("PUT", f"{world.path(obj)}/status", body)
        world.counts["reserved by a rival"] += code == 200

    def usurp(self) -> None:
        """Hand on the room of the running request that is deleted next, while it still runs."""
        self._usurps = True

    def freeze(self) -> None:
        """Stop the agent that claims next, between its claim, which has landed, and the start."""
        self._freezes = True

    def committed(self, change: Change) -> None:
        """Do at the worst moment what was asked for."""
        status = change.object.get("status", {})
        node = status.get("nodeName", "")
        if change.kind == "DELETED" and status.get("phase") == "Running" and self._usurps:
            self._usurps = False
            self.world.later(0.05, partial(self._reserve, node, "agent"))
        if status.get("phase") == "Starting" and change.by.startswith(NODE_USER_PREFIX):
            self._freeze(node)

    def _freeze(self, node: str) -> None:
        agent = self.world.agents.get(node)
        if self._freezes and agent is not None and not agent.is_stopped:
            self._freezes = False
            self.world.counts["agent frozen after its claim"] += 1
            agent.stop()
            self.world.later(self.world.rng.uniform(3.5, 9.0), agent.go_on)

    def switch(self) -> None:
        """Ask for another mode of confirmation; each replica hears of it in its own time."""
        world = self.world
        mode = world.rng.choice(list(world.scenario.policies))
        world.policy = world.scenario.policies[mode]
        world.counts[f"switch to {mode}"] += 1
        for slot in range(len(world.replicas)):
            world.later(world.rng.expovariate(1.0), partial(self._adopt, slot))

    def _adopt(self, slot: int) -> None:
        self.world.replicas[slot].adopt(self.world.policy)
