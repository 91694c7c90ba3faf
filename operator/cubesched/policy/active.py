"""The policy in force: swapped whole, leased by each attempt, kept when a new set is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from cubesched.policy.compiler import CompileResult
from cubesched.policy.objects import (
    CONFIG_KIND,
    CONFIG_NAME,
    NOT_THE_CONFIG,
    PROFILE_KIND,
    PolicyObject,
    Problem,
)
from cubesched.policy.policyset import PolicySet

logger = logging.getLogger(__name__)

NO_ACTIVE_POLICY = "NoActivePolicy"
RUNNING = "Running"
SET_REJECTED = "SetRejected"
MODE_DISABLED = "ModeDisabled"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What this replica made of one generation of one object."""

    accepted: bool
    problems: tuple[str, ...] = ()
    """The object's own errors, `path: message`."""
    active: bool = False
    """The running set holds this generation."""
    reason: str = SET_REJECTED
    """Running, SetRejected or ModeDisabled."""
    culprits: tuple[Problem, ...] = ()
    """Every error of the refused set, this object's own among them; empty when none was refused."""
    warnings: tuple[Problem, ...] = ()
    """Allowed, yet probably not meant."""


class ActivePolicy:
    """Holds the one running PolicySet. Owned by the event loop; nothing here suspends.

    Nothing is activated before each of `await_kinds` has been marked as listed, so that a
    replica never places by half of a policy.
    """

    def __init__(self, await_kinds: Collection[str] = (PROFILE_KIND, CONFIG_KIND)) -> None:
        self.current: PolicySet | None = None
        """None until a first set compiles: then the reason is NoActivePolicy.

        A set is immutable: an attempt that has read it keeps it, whatever is swapped in.
        """
        self.on_change: list[Callable[[PolicySet], None]] = []
        """Called after each swap, with the new set."""
        self.on_reject: list[Callable[[Sequence[Problem]], None]] = []
        """Called once for each different list of errors that keeps a set out."""
        self._unlisted = set(await_kinds)
        self._result = CompileResult()

    @property
    def is_listed(self) -> bool:
        """Tell whether every kind that the policy is made of has been listed once."""
        return not self._unlisted

    def mark_listed(self, kind: str) -> None:
        """Note that the first complete list of this kind is in."""
        self._unlisted.discard(kind)

    def adopt(self, result: CompileResult) -> None:
        """Run a compiled set, or note why it cannot; without effect until all lists are in."""
        if not self.is_listed:
            return
        previous, self._result = self._result, result
        if result.policy is None:
            self._reject(result, previous)
        elif self.current is None or _content(result.policy) != _content(self.current):
            self._swap(result.policy)

    def restore(self, policy: PolicySet) -> None:
        """Run a set of the past, while nothing else ever ran: the stored one does not compile."""
        if self.current is None and self.is_listed:
            self._swap(policy)

    def verdict(self, subject: PolicyObject) -> Verdict:
        """Return what this replica thinks of exactly this generation of the object."""
        own = tuple(p.detail for p in self._result.problems if _is_about(p, subject))
        if subject.kind == CONFIG_KIND and subject.name != CONFIG_NAME:
            own = (f"metadata.name: {NOT_THE_CONFIG}",)
        active = _holds(self.current, subject)
        disabled = isinstance(subject.spec, dict) and subject.spec.get("mode") == "Disabled"
        return Verdict(
            accepted=not own,
            problems=own,
            active=active,
            reason=RUNNING if active else MODE_DISABLED if disabled else SET_REJECTED,
            culprits=self._result.problems,
            warnings=tuple(w for w in self._result.warnings if _is_about(w, subject)),
        )

    def _swap(self, policy: PolicySet) -> None:
        self.current = policy
        names = ", ".join(profile.name for profile in policy.profiles)
        is_chosen = policy.source in ("custom", "legacy")
        level = logging.INFO if is_chosen else logging.WARNING
        logger.log(level, "policy %s runs: %s Profiles %s", policy.revision, policy.source, names)
        for notify in self.on_change:
            notify(policy)

    def _reject(self, result: CompileResult, previous: CompileResult) -> None:
        if result.problems == previous.problems:
            return
        kept = f"{self.current.revision} keeps running" if self.current else NO_ACTIVE_POLICY
        first, number = result.problems[0].text, len(result.problems)
        logger.warning("policy refused, %s; 1 of %d problems: %s", kept, number, first)
        for notify in self.on_reject:
            notify(result.problems)


def _content(policy: PolicySet) -> tuple[object, ...]:
    """Return what makes two sets the same: their specs' hash and the objects behind them."""
    objects = tuple((p.name, p.uid, p.generation) for p in policy.profiles)
    return policy.revision, policy.config_uid, policy.config_generation, objects


def _is_about(problem: Problem, subject: PolicyObject) -> bool:
    return problem.kind == subject.kind and problem.name == subject.name


def _holds(policy: PolicySet | None, subject: PolicyObject) -> bool:
    if policy is None:
        return False
    mine = (subject.name, subject.uid, subject.generation)
    if subject.kind == CONFIG_KIND:
        return (subject.name, policy.config_uid, policy.config_generation) == mine
    return any((p.name, p.uid, p.generation) == mine for p in policy.profiles)
