"""From a verdict to the status that should stand on the object. Pure: the clock is an argument.

`observedGeneration` is always the generation judged; `lastTransitionTime` changes only with
`status`; `status_change` is None where the stored status already says all this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from cubesched.api.conditions import Condition, condition, shortened, stored_conditions
from cubesched.core.pipeline import FilterFailure, Health
from cubesched.plugins.hosts import waiting
from cubesched.policy.active import MODE_DISABLED, NO_ACTIVE_POLICY, Verdict
from cubesched.policy.lints import LIVE_LINTS
from cubesched.policy.objects import PolicyObject, Problem
from cubesched.policy.policyset import CompiledProfile, PolicySet

PASSING: Final = frozenset({"RiskAccepted", "PluginsHealthy", "Warnings"})
"""Conditions that stand only while there is something to say."""
MAX_PROBLEMS = 50
MAX_PROBLEM_CHARS = 512

Status = dict[str, Any]


def profile_status(
    subject: PolicyObject,
    verdict: Verdict,
    running: PolicySet | None,
    *,
    revisions: Sequence[str],
    seen: Sequence[Problem] | None = (),
    now: str,
) -> Status:
    """Return a SchedulerProfile's whole status; `revisions` holds one entry a live replica.

    `seen` are warnings that only a look at the fleet can give; None before the first look.
    """
    write = _Conditions(subject, now)
    write.add("Accepted", *_accepted(verdict))
    write.add("Active", *_active(subject, verdict, running))
    profiles = running.profiles if running else ()
    for mine in (p for p in profiles if p.uid and p.uid == subject.uid):
        _add_risks(write, mine)
    _add_warnings(write, verdict, seen)
    status: Status = {"conditions": write.conditions}
    if verdict.problems:
        status["problems"] = _bounded(verdict.problems)
    if running is not None and any(p.uid == subject.uid for p in running.profiles if p.uid):
        status["activeRevision"] = running.revision
        same = sum(revision == running.revision for revision in revisions)
        status["replicasOnRevision"] = f"{same}/{len(revisions)}"
    return status


def config_status(
    subject: PolicyObject,
    verdict: Verdict,
    running: PolicySet | None,
    *,
    note: str,
    seen: Sequence[Problem] | None = (),
    now: str,
) -> Status:
    """Return a SchedulerConfig's whole status; `note`: what to know while it is Active."""
    write = _Conditions(subject, now)
    write.add("Accepted", *_accepted(verdict))
    is_active, reason, message = _active(subject, verdict, running)
    write.add("Active", is_active, reason, f"{message} {note}".strip() if is_active else message)
    write.add("FactoryProfilesActive", *_factory(running))
    _add_warnings(write, verdict, seen)
    status: Status = {"conditions": write.conditions}
    if verdict.problems:
        status["problems"] = _bounded(verdict.problems)
    if running is not None:
        status["activeRevision"] = running.revision
    return status


def status_change(subject: PolicyObject, desired: Status, *, owned: Sequence[str]) -> Status | None:
    """Return `desired`, or None when the stored status already agrees in the `owned` fields."""
    types = {condition["type"] for condition in desired["conditions"]} | PASSING
    stored = [
        c for c in stored_conditions(subject.status.get("conditions")) if c.get("type") in types
    ]
    if sorted(stored, key=_type) != sorted(desired["conditions"], key=_type):
        return desired
    same = all(subject.status.get(name) == desired.get(name) for name in owned)
    return None if same else desired


class _Conditions:
    """Builds the conditions of one object beside those it already has."""

    def __init__(self, subject: PolicyObject, now: str) -> None:
        self.conditions: list[Condition] = []
        self._generation = subject.generation
        stored = stored_conditions(subject.status.get("conditions"))
        self._before = {known.get("type"): known for known in stored}
        self._now = now

    def add(self, kind: str, is_true: bool, reason: str, message: str) -> None:
        fresh = condition(
            kind,
            "True" if is_true else "False",
            reason=reason,
            message=message,
            generation=self._generation,
            now=self._now,
            before=self._before.get(kind, {}),
        )
        self.conditions.append(fresh)

    def keep(self, kind: str, reasons: Collection[str]) -> None:
        """Leave a condition as stored, if it is about this generation and has such a reason."""
        stored = self._before.get(kind, {})
        if stored.get("reason") in reasons and stored.get("observedGeneration") == self._generation:
            self.conditions.append(stored)


def _accepted(verdict: Verdict) -> tuple[bool, str, str]:
    if not verdict.accepted:
        return False, "Invalid", _summary(verdict.problems)
    return True, "Compiled", "The spec compiles."


def _add_warnings(write: _Conditions, verdict: Verdict, seen: Sequence[Problem] | None) -> None:
    warnings = [*verdict.warnings, *(seen or ())]
    if seen is None and not warnings:
        write.keep("Warnings", LIVE_LINTS)  # what another replica saw, until this one looks
    if warnings:
        lints = dict.fromkeys(warning.lint for warning in warnings)
        write.add("Warnings", True, next(iter(lints)), _listed([w.detail for w in warnings]))


def _add_risks(write: _Conditions, profile: CompiledProfile) -> None:
    """Say what the running Profile leaves to plugins, and how those do."""
    pipeline = profile.pipeline
    if pipeline.filters and pipeline.filter_failure is FilterFailure.FAIL_OPEN:
        names = ", ".join(plugin.name for plugin in pipeline.filters)
        message = f"A failure of {names} keeps nodes that it might have excluded."
        write.add("RiskAccepted", True, "FailOpen", message)
    told = {plugin.name: plugin.host.health() for plugin in waiting(pipeline)}
    ill = {name: (health, why) for name, (health, why) in told.items() if health != Health.HEALTHY}
    if ill:
        first, _ = next(iter(ill.values()))
        names_by_why: dict[str, list[str]] = {}
        for name, (_, why) in ill.items():
            names_by_why.setdefault(why, []).append(name)
        message = _listed([f"{', '.join(names)}: {why}" for why, names in names_by_why.items()])
        write.add("PluginsHealthy", False, first.value, message)
    elif told:
        write.add("PluginsHealthy", True, Health.HEALTHY.value, f"{', '.join(told)} answer.")


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts)


def _active(
    subject: PolicyObject, verdict: Verdict, running: PolicySet | None
) -> tuple[bool, str, str]:
    if verdict.active and running is not None:
        return True, verdict.reason, f"Runs in revision {running.revision}."
    if verdict.reason == MODE_DISABLED:
        return False, verdict.reason, "spec.mode is Disabled."
    return False, verdict.reason, _refusal(subject, verdict, running)


def _refusal(subject: PolicyObject, verdict: Verdict, running: PolicySet | None) -> str:
    """Name who keeps this generation from running, the object itself before all others."""
    others = [p.text for p in verdict.culprits if p.title != subject.title]
    kept = f"revision {running.revision} keeps running" if running else NO_ACTIVE_POLICY
    return f"The set is not activated ({kept}): {_summary([*verdict.problems, *others])}"


def _factory(running: PolicySet | None) -> tuple[bool, str, str]:
    if running is None:
        return False, NO_ACTIVE_POLICY, "No policy runs."
    if running.source == "factory":
        return True, "NoActiveProfile", "No Profile has mode Active: the factory Profiles run."
    if running.source == "none":
        return False, "DisabledByConfig", "disableFactoryProfiles is set and no Profile is Active."
    if running.source == "legacy":
        return False, "LegacyConfigured", "spec.legacy runs instead, as Profile default."
    return False, "ProfilesActive", f"{len(running.profiles)} Profiles run instead."


def _summary(problems: Sequence[str]) -> str:
    if not problems:
        return "another generation is being compiled"
    more = len(problems) - 1
    return f"{problems[0]} (and {more} more)" if more else problems[0]


def _bounded(problems: Sequence[str]) -> list[str]:
    shown = [shortened(problem, MAX_PROBLEM_CHARS) for problem in problems[:MAX_PROBLEMS]]
    more = len(problems) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def _type(condition: Mapping[str, Any]) -> str:
    return str(condition.get("type", ""))
