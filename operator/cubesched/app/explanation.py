"""Why a request is where it is, or nowhere: decided again on what the cluster says now."""

from __future__ import annotations

from dataclasses import dataclass

from cubesched.adapters.clock import SystemClock
from cubesched.app.livestate import LiveState
from cubesched.core.counterfactuals import Counterfactual, counterfactuals
from cubesched.core.cycle import decide
from cubesched.core.decision import Decision, Rejected
from cubesched.core.inspecting import Inspection, inspect, only
from cubesched.core.pipeline import Pipeline, Selection, SelectionMethod
from cubesched.core.request import Request
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.entries import Entry, InvalidSpec
from cubesched.plugins.hosts import waiting
from cubesched.plugins.registry import CONSTRAINTS, GUARDS
from cubesched.policy.policyset import CompiledProfile, PolicySet
from cubesched.scheduling.attempts import Attempts, No

BARE = Pipeline("", GUARDS, CONSTRAINTS, (), (), Selection(SelectionMethod.HIGHEST, 1))
"""What every request passes, whatever the policy."""


@dataclass(frozen=True, slots=True)
class Routed:
    """Which Profile serves a request, and why that one."""

    profile: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The nodes as they stand for one request."""

    request: Request
    decision: Decision
    inspection: Inspection
    helps: tuple[Counterfactual, ...]
    """What would let a node fit; none where one does."""


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Everything there is to say of one request."""

    entry: Entry
    state: LiveState
    routed: Routed | None
    reason: str
    """Why no decision would place it now; empty when one would."""
    message: str
    decided: Decided | None
    """None where its spec cannot be used. Without a Profile: by guards and constraints alone."""
    unasked: tuple[str, ...] = ()
    """Plugins of its Profile that only the operator can ask, left out here."""


def explain(state: LiveState, entry: Entry) -> Explained:
    """Decide for a request as an operator would that sees what `state` holds."""
    attempts = Attempts(state.fleet, state, SystemClock())
    answer = attempts.attempt(entry, entry.status.attempts)
    reason, message = "", ""
    if isinstance(answer, No):
        reason, message = answer.reason.value, attempts.explain(answer)[0]
    try:
        request = attempts.request_of(entry, entry.status.attempts)
    except InvalidSpec:
        return Explained(entry, state, None, reason, message, None)
    policy = state.current
    profile = _profile_of(policy, request) if policy else None
    pipeline = profile.pipeline if profile else BARE
    unasked = tuple(dict.fromkeys(plugin.name for plugin in waiting(pipeline)))
    return Explained(
        entry,
        state,
        _routed(policy, profile) if policy and profile else None,
        reason,
        message,
        _decided(state, request, pipeline.local()),
        unasked,
    )


def on_one_node(explained: Explained, node: str) -> tuple[Counterfactual, ...]:
    """Return what would let the request fit this node; nothing where it does."""
    decided, state = explained.decided, explained.state
    if decided is None:
        return ()
    fleet = state.fleet.snapshot
    pipeline = _pipeline(state, decided.request)
    return _helps(state, only(fleet, fleet.row_of[node]), decided.request, pipeline)


def _decided(state: LiveState, request: Request, pipeline: Pipeline) -> Decided:
    fleet = state.fleet.snapshot
    return Decided(
        request,
        decide(fleet, request, pipeline),
        inspect(fleet, request, pipeline),
        _helps(state, fleet, request, pipeline),
    )


def _helps(
    state: LiveState, fleet: Snapshot, request: Request, pipeline: Pipeline
) -> tuple[Counterfactual, ...]:
    decision = decide(fleet, request, pipeline)
    if not isinstance(decision, Rejected):
        return ()
    route = state.current.route if state.current else None
    return tuple(counterfactuals(decision, fleet, request, pipeline, route=route))


def _pipeline(state: LiveState, request: Request) -> Pipeline:
    pipeline = state.current.route(request) if state.current else None
    return pipeline.local() if pipeline else BARE


def _profile_of(policy: PolicySet, request: Request) -> CompiledProfile | None:
    pipeline = policy.route(request)
    return next((each for each in policy.profiles if each.pipeline is pipeline), None)


def _routed(policy: PolicySet, profile: CompiledProfile) -> Routed:
    """Say which part of a route took the request, and how many Profiles were asked before."""
    before = [each.name for each in policy.profiles[: policy.profiles.index(profile)]]
    if profile.is_default:
        why = "the default: no other Profile's route matches" if before else "the only Profile"
        return Routed(profile.name, why)
    parts = [f"label {key}={value}" for key, value in profile.route.labels]
    parts += ["instanceType"] if profile.route.instance_types else []
    tried = f"; {len(before)} tried before it do not match" if before else ""
    return Routed(profile.name, f"its route matches: {', '.join(parts)}{tried}")
