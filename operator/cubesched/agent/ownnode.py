"""What holds on the agent's own node, as the operator says it on the SandboxNode.

Quota, over-commit and the pause ratio come from the node and the SchedulerConfig together; the
operator writes what comes out into `status.effectiveCapacity`, so that agents need not know how.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.core.snapshot import NO_LIMIT
from cubesched.fleet.ledger import Limits
from cubesched.fleet.objects import NamedObject, NodeAmounts

log = logging.getLogger(__name__)

NOTHING_SAID = NodeAmounts()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    effective_capacity: NodeAmounts = NOTHING_SAID


class _Said(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_NAMED = msgspec.json.Decoder(NamedObject)
_SAID = msgspec.json.Decoder(_Said)


@dataclass(slots=True)
class OwnNode:
    """A list-watch sink for one SandboxNode, followed by `metadata.name`."""

    node: str
    changed: Callable[[], None] = lambda: None
    """Called when `uid` or `effective` are others than before."""
    uid: str = ""
    """metadata.uid of the object; empty while there is none."""
    effective: NodeAmounts = NOTHING_SAID
    """What the operator last said; all unset while it has said nothing."""
    _listed: bytes | None = None

    @property
    def paused_release_ratio(self) -> Fraction:
        """Share of cores and memory that a paused sandbox gives up here.

        0 while that is not known: what is paused then goes on counting in full.
        """
        said = self.effective.paused_resource_release_ratio
        return Fraction(str(said)) if said is not None and 0 <= said <= 1 else Fraction(0)

    @property
    def limits(self) -> Limits | None:
        """What requests may take here in all; None while the operator has not said it."""
        said = self.effective
        required = (said.cpu, said.memory, said.sandboxes, said.create_concurrency)
        if None in required:
            return None
        try:
            return _limits(said)
        except QuantityError as error:
            log.warning("%s: effectiveCapacity cannot be used: %s", self.node, error)
            return None

    # The stream

    def reset(self) -> None:
        """Begin a list."""
        self._listed = None

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        self._listed = raw

    def complete(self, version: int) -> None:  # noqa: ARG002 - every sink is told
        """End the list."""
        self.take(self._listed)

    def event(self, kind: str, raw: bytes, version: int) -> None:  # noqa: ARG002
        """Apply one event."""
        self.take(None if kind == "DELETED" else raw)

    def progress(self, version: int) -> None:
        """Take a bookmark."""

    def take(self, raw: bytes | None) -> None:
        """Take the object as it now is; None when it was deleted."""
        before = self.uid, self.effective
        self.uid, self.effective = ("", NOTHING_SAID) if raw is None else self._read(raw)
        if before != (self.uid, self.effective):
            self.changed()

    def _read(self, raw: bytes) -> tuple[str, NodeAmounts]:
        try:
            return _NAMED.decode(raw).metadata.uid, _SAID.decode(raw).status.effective_capacity
        except msgspec.MsgspecError as error:
            log.warning("%s: effectiveCapacity cannot be read: %s", self.node, error)
            return self.uid, NOTHING_SAID


@dataclass(slots=True)
class SharedNodes:
    """A sink for one watch over all SandboxNodes, handed out to many agents in one process."""

    nodes: Mapping[str, OwnNode]
    _listed: dict[str, bytes] = field(default_factory=dict)

    def reset(self) -> None:
        """Begin a list."""
        self._listed = {}

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        self._listed[_name_of(raw)] = raw

    def complete(self, version: int) -> None:  # noqa: ARG002 - every sink is told
        """End the list."""
        for name, node in self.nodes.items():
            node.take(self._listed.get(name))
        self._listed = {}

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event, to the node it concerns."""
        node = self.nodes.get(_name_of(raw))
        if node is not None:
            node.event(kind, raw, version)

    def progress(self, version: int) -> None:
        """Take a bookmark."""


def _limits(said: NodeAmounts) -> Limits:
    """Read amounts that are all there, but for the disk where it is not limited."""
    disk = said.system_disk
    return Limits(
        cpu_millis=parse_millis(said.cpu or 0, round_up=False),
        memory_bytes=parse_units(said.memory or 0, round_up=False),
        disk_bytes=NO_LIMIT if disk is None else parse_units(disk, round_up=False),
        sandboxes=said.sandboxes or 0,
        creates=said.create_concurrency or 0,
    )


def _name_of(raw: bytes) -> str:
    try:
        return _NAMED.decode(raw).metadata.name
    except msgspec.MsgspecError:
        return ""
