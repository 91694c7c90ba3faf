"""Room that this replica has planned for requests before the stream shows their reservations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cubesched.fleet.entries import Weight
from cubesched.fleet.ledger import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Assumption:
    """Room this replica has planned for a request whose write the stream has not shown yet."""

    node: str
    weight: Weight
    template_id: str
    resumes: bool = False
    """It is on the node already, paused: `weight` is what is added, and it is no new sandbox."""


@dataclass(slots=True)
class Assumptions:
    """All plans by request uid, and what they add up to on each node."""

    _by_uid: dict[str, Assumption] = field(default_factory=dict)
    _on_node: dict[str, Usage] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many plans stand; 0 at rest."""
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        """Tell whether a plan stands for `uid`."""
        return uid in self._by_uid

    def add(self, uid: str, assumption: Assumption) -> None:
        """Count a plan; there is none for `uid` yet."""
        self._by_uid[uid] = assumption
        usage = self._on_node.get(assumption.node)
        if usage is None:
            usage = self._on_node[assumption.node] = Usage()
        _count(usage, assumption, 1)

    def remove(self, uid: str) -> Assumption | None:
        """Take a plan out and return it; None when there is none."""
        assumption = self._by_uid.pop(uid, None)
        if assumption is not None:
            usage = self._on_node[assumption.node]
            _count(usage, assumption, -1)
            if not usage.creating:
                del self._on_node[assumption.node]
        return assumption

    def usage(self, node: str) -> Usage:
        """Return what is planned on `node`; not to be changed."""
        return self._on_node.get(node, NO_USAGE)

    def on_node(self, node: str) -> Iterator[Assumption]:
        """Iterate over the plans for `node`."""
        return (plan for plan in self._by_uid.values() if plan.node == node)


def _count(usage: Usage, assumption: Assumption, sign: int) -> None:
    usage.add(assumption.weight, creating=True, sign=sign)
    if assumption.resumes:
        usage.sandboxes -= sign
