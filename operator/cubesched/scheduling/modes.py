"""Who confirms what this replica places from now on, and whether the guarantee stands.

Both exact modes may be mixed: any evaluator with an exact prefix may evaluate anyone's reservation.
`none` may not be mixed with them, so a replica binds directly only while every live Lease shows the
revision that asks for it; until then the operator confirms. What was bound directly says so in its
reservation, and until the last of it is gone a node may hold more than its limits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.ledger import Change
from cubesched.scheduling.ports import Policy

_LOG = logging.getLogger(__name__)
DIRECT = "Requests are bound directly: a node may be over-committed for a moment."
NOT_YET = (
    "confirmation none waits until the Lease of every live replica shows this revision:"
    " until then the operator confirms."
)
DIRECT_LEFT = (
    "Requests that were bound directly are left: until the last is gone a node may be"
    " over-committed."
)


class Modes:
    """One replica's mode of confirmation: what is asked for, and what may be done by now."""

    def __init__(self, policy: Policy, everyone_runs: Callable[[str], bool]) -> None:
        """`everyone_runs` tells whether every live Lease shows a policy revision."""
        self.directly_bound: set[str] = set()
        """Requests, by uid, that count on a node and that nobody has evaluated."""
        self.on_note: list[Callable[[], None]] = []
        """Called after `note` has changed."""
        self._policy, self._everyone_runs = policy, everyone_runs
        self._told = ""

    @property
    def current(self) -> Confirmation:
        """Who confirms what is placed now; `none`: nobody does."""
        if self._asked is Confirmation.NONE and not self._may_bind_directly():
            return Confirmation.OPERATOR
        return self._asked

    @property
    def exact(self) -> Confirmation:
        """Who confirms what stays a reservation in any mode."""
        is_direct = self.current is Confirmation.NONE
        return Confirmation.OPERATOR if is_direct else self.current

    @property
    def note(self) -> str:
        """What people should know while the guarantee does not hold; empty while it does."""
        if self.current is Confirmation.NONE:
            return DIRECT
        waits = NOT_YET if self._asked is Confirmation.NONE else ""
        left = DIRECT_LEFT if self.directly_bound else ""
        return f"{waits} {left}".strip()

    @property
    def _asked(self) -> Confirmation:
        policy = self._policy.current
        return policy.settings.confirmation if policy else Confirmation.OPERATOR

    def _may_bind_directly(self) -> bool:
        policy = self._policy.current
        return policy is not None and self._everyone_runs(policy.revision)

    def meet(self, change: Change) -> None:
        """Note which requests count on a node without anybody's verdict."""
        entry = change.after
        if entry is not None and entry.node and entry.confirmation == Confirmation.NONE:
            self.directly_bound.add(change.uid)
        else:
            self.directly_bound.discard(change.uid)

    def sweep(self) -> None:
        """Say once what has changed of the guarantee."""
        note = self.note
        if note == self._told:
            return
        self._told = note
        if note:
            _LOG.warning("%s", note)
        else:
            _LOG.info("every binding is confirmed: no node is over-committed")
        for tell in self.on_note:
            tell()
