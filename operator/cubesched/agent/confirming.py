"""Confirming reservations on the node, where the agent is asked to: its claim is the confirmation.

The agent judges as an operator's replica would: by everything that names its node at one point of
its node's exact stream, by the weights that were stamped, against the limits that the operator
says. What really runs on the machine is looked at besides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cubesched.agent.ownnode import OwnNode
from cubesched.agent.requests import OwnRequests
from cubesched.agent.room import Room
from cubesched.core.errors import CubeschedError
from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import CREATING, Limits, Usage


class CannotJudge(CubeschedError):
    """What a confirmation rests on is not known here yet; the agent tries again."""


def is_to_confirm(entry: Entry) -> bool:
    """Tell whether the reservation asks its node's agent, and nobody else, to confirm it."""
    return entry.phase == "Reserved" and entry.confirmation == Confirmation.AGENT


@dataclass(slots=True)
class Confirming:
    """Judges what is reserved on one node; remembers what has to wait."""

    requests: OwnRequests
    own_node: OwnNode
    room: Room
    _waiting: set[str] = field(default_factory=set)

    def may_claim(self, entry: Entry) -> bool:
        """Judge now, without yielding; one that may not be claimed is looked at again later.

        A "no" is no refusal: others were reserved beside it, and the replicas move on from those
        that do not fit. Raises CannotJudge while what it rests on is unknown.
        """
        self._waiting.add(entry.uid)
        newest = self.requests.get(entry.uid)
        if newest is None or newest.version != entry.version:
            return False  # it is not what it was, and the newer state has its own look
        limits = self._limits(entry)
        if not self.requests.position.is_listed or not self._usage().within(limits):
            return False
        self._waiting.discard(entry.uid)
        return True

    def _limits(self, entry: Entry) -> Limits:
        limits = self.own_node.limits
        if limits is None:
            raise CannotJudge("not claimed: the SandboxNode has no status.effectiveCapacity")
        if entry.node_uid not in {"", self.own_node.uid}:
            raise CannotJudge(f"not claimed: reserved on another SandboxNode, {entry.node_uid}")
        if self.requests.position.blind:
            raise CannotJudge("not claimed: a request cannot be read, which may be on this node")
        return limits

    def take_waiting(self) -> set[str]:
        """Return what has to wait, by uid; none of it does any more."""
        waiting, self._waiting = self._waiting, set()
        return waiting

    def _usage(self) -> Usage:
        """Count what names the node where its stream stands, and what its machine holds beside."""
        usage, explained = Usage(), set()
        for entry in self.requests.streamed():
            explained.add(entry.sandbox)
            if entry.unreadable:
                usage.unreadable += 1
            else:
                usage.add(entry.weight, creating=entry.phase in CREATING)
        for sandbox, weight in self.room.held.items():
            if sandbox not in explained:
                usage.add(weight, creating=False)
        return usage
