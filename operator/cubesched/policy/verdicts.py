"""From a verdict to the status that should stand on the object. Pure: the clock is an argument.

`observedGeneration` is always the generation judged; `lastTransitionTime` changes only with
`status`; `status_change` is None where the stored status already says all this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cubesched.api.conditions import Condition, condition, shortened, stored_conditions
from cubesched.policy.active import MODE_DISABLED, NO_ACTIVE_POLICY, Verdict
from cubesched.policy.objects import PolicyObject
from cubesched.policy.policyset import PolicySet

MAX_PROBLEMS = 50
MAX_PROBLEM_CHARS = 512

Status = dict[str, Any]


def profile_status(
    subject: PolicyObject,
    verdict: Verdict,
    running: PolicySet | None,
    *,
    revisions: Sequence[str],
    now: str,
) -> Status:
    """Return a SchedulerProfile's whole status; `revisions` holds one entry a live replica."""
    write = _Conditions(subject, now)
    write.add("Accepted", *_accepted(verdict))
    write.add("Active", *_active(subject, verdict, running))
    status: Status = {"conditions": write.conditions}
    if verdict.problems:
        status["problems"] = _bounded(verdict.problems)
    if running is not None and any(p.uid == subject.uid for p in running.profiles if p.uid):
        status["activeRevision"] = running.revision
        same = sum(revision == running.revision for revision in revisions)
        status["replicasOnRevision"] = f"{same}/{len(revisions)}"
    return status


def config_status(
    subject: PolicyObject, verdict: Verdict, running: PolicySet | None, *, note: str, now: str
) -> Status:
    """Return a SchedulerConfig's whole status; `note`: what to know while it is Active."""
    write = _Conditions(subject, now)
    write.add("Accepted", *_accepted(verdict))
    is_active, reason, message = _active(subject, verdict, running)
    write.add("Active", is_active, reason, f"{message} {note}".strip() if is_active else message)
    write.add("FactoryProfilesActive", *_factory(running))
    status: Status = {"conditions": write.conditions}
    if verdict.problems:
        status["problems"] = _bounded(verdict.problems)
    if running is not None:
        status["activeRevision"] = running.revision
    return status


def status_change(subject: PolicyObject, desired: Status, *, owned: Sequence[str]) -> Status | None:
    """Return `desired`, or None when the stored status already agrees in the `owned` fields."""
    types = {condition["type"] for condition in desired["conditions"]}
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


def _accepted(verdict: Verdict) -> tuple[bool, str, str]:
    if not verdict.accepted:
        return False, "Invalid", _summary(verdict.problems)
    return True, "Compiled", " ".join(("The spec compiles.", *verdict.warnings))


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
