"""One attempt at one request: lease the policy, route, decide; a value says what came out."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from cubesched.api.timestamps import unix_seconds
from cubesched.core.counterfactuals import counterfactuals
from cubesched.core.cycle import decide, feasible_rows
from cubesched.core.decision import Placed, Reason, Rejected
from cubesched.core.explaining import explanation, message
from cubesched.core.pipeline import NoCandidate, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Safety
from cubesched.fleet.entries import Entry, InvalidSpec
from cubesched.fleet.fleet import Fleet
from cubesched.policy.policyset import PolicySet
from cubesched.scheduling.ports import Clock, Policy

REFUSAL_SECONDS = 300.0
"""How long a refusal keeps a request off the node that refused it."""
MOST_WOKEN = 256


@dataclass(frozen=True, slots=True)
class No:
    """Why a request was not placed; `key` is its class: what helps one member helps all."""

    reason: Reason
    key: Hashable
    message: str = ""
    profile: str = ""
    revision: str = ""
    blocked_by: str = ""
    """The guard, constraint or filter that rejected most nodes."""
    is_final: bool = False
    """`noCandidate: fail` makes it so; only for reasons that do not pass by themselves."""
    rejected: Rejected | None = None
    request: Request | None = None
    pipeline: Pipeline | None = None


@dataclass(frozen=True, slots=True)
class Yes:
    """A node for the request."""

    request: Request
    pipeline: Pipeline
    placed: Placed
    policy: PolicySet


@dataclass(slots=True)
class Attempts:
    """Runs the pipeline for requests as this replica sees them now."""

    fleet: Fleet
    policy: Policy
    clock: Clock
    alone: bool = True
    """This replica is the only live one, so no node is anyone else's to prefer."""
    _said_at: Hashable = None
    _said: dict[Hashable, tuple[str, str]] = field(default_factory=dict)
    """Texts by class, of the fleet's version and the policy of `_said_at` alone."""

    def attempt(self, entry: Entry, attempts: int) -> Yes | No:
        """Decide for one request; `attempts` seeds ties and random picks."""
        gate = _gate_of(entry)
        if gate:
            return No(Reason.GATED, ("gated", entry.uid), gate)
        try:
            request = entry.request(attempt=attempts, refused_nodes=self.refused_nodes(entry))
        except InvalidSpec as error:
            return No(Reason.INVALID_SPEC, ("invalid", entry.uid), str(error))
        policy = self.policy.current
        if policy is None:
            return No(Reason.NO_ACTIVE_POLICY, ("policy",), "no policy set is active")
        pipeline = policy.route(request)
        if pipeline is None:
            text = "no SchedulerProfile matches this request and there is no default"
            return No(Reason.NO_PROFILE, ("policy",), text, revision=policy.revision)
        prefer_own = policy.settings.own_nodes_first and not self.alone
        decision = decide(self.fleet.snapshot, request, pipeline, prefer_own=prefer_own)
        if isinstance(decision, Placed):
            return Yes(request, pipeline, decision, policy)
        return self._no(decision, request, pipeline, policy)

    def room_like(self, yes: Yes) -> int:
        """Return about how many requests like a placeable one would find room now, at least 1."""
        view, request = self.fleet.snapshot, yes.request
        rows = feasible_rows(view, request, yes.pipeline)
        room = np.minimum.reduce(
            [
                (view.cpu_limit_millis[rows] - view.cpu_used_millis[rows]) // request.cpu_millis,
                (view.memory_limit_bytes[rows] - view.memory_used_bytes[rows])
                // request.memory_bytes,
                view.sandbox_limit[rows] - view.sandboxes[rows],
                view.create_limit[rows] - view.creating[rows],
            ]
        )
        return int(min(MOST_WOKEN, max(1, np.minimum(room, MOST_WOKEN).sum())))

    def explain(self, no: No) -> tuple[str, str]:
        """Return the one-line message and the several-line explanation of a "no".

        Those of one class are told the same, which is put in words once a version of the fleet.
        """
        if no.rejected is None or no.request is None or no.pipeline is None:
            return no.message, ""
        now = (self.fleet.snapshot.version, no.revision)
        if self._said_at != now:
            self._said_at, self._said = now, {}
        key = (no.key, no.reason)
        if key not in self._said:
            self._said[key] = self._in_words(no.rejected, no.request, no.pipeline)
        return self._said[key]

    def _in_words(
        self, rejected: Rejected, request: Request, pipeline: Pipeline
    ) -> tuple[str, str]:
        policy, parts = self.policy.current, (rejected, self.fleet.snapshot, request, pipeline)
        helps = counterfactuals(*parts, route=policy.route if policy else None)
        return message(*parts), explanation(*parts, helps=helps)

    def _no(
        self, rejected: Rejected, request: Request, pipeline: Pipeline, policy: PolicySet
    ) -> No:
        most = max(rejected.counts, key=lambda count: count.rejected, default=None)
        return No(
            reason=rejected.reason,
            key=_class_of(request, pipeline.profile),
            profile=pipeline.profile,
            revision=policy.revision,
            blocked_by=most.plugin if most else "",
            is_final=pipeline.no_candidate is NoCandidate.FAIL and self._is_final(rejected.reason),
            rejected=rejected,
            request=request,
            pipeline=pipeline,
        )

    def _is_final(self, reason: Reason) -> bool:
        """Tell whether waiting cannot help: not so while a node has yet to be heard of."""
        if reason is Reason.UNSCHEDULABLE:
            return not bool(np.any(self.fleet.snapshot.safety == Safety.AWAITING_REPORT))
        return reason is Reason.NEVER_FITS

    def refusal_passes_in(self, entry: Entry) -> float | None:
        """Return in how many seconds the next of its refusals will have passed; None without."""
        now = self.clock.wall()
        left = [REFUSAL_SECONDS - (now - unix_seconds(r.time)) for r in entry.status.refusals]
        return min((seconds for seconds in left if seconds > 0.0), default=None)

    def refused_nodes(self, entry: Entry) -> tuple[str, ...]:
        """Return the nodes whose agents refused this request lately."""
        since = self.clock.wall() - REFUSAL_SECONDS
        refusals = entry.status.refusals
        return tuple(sorted({r.node for r in refusals if unix_seconds(r.time) > since}))


def _gate_of(entry: Entry) -> str:
    """Say what its client holds it back by; empty when nothing does."""
    wishes = entry.wishes
    if wishes.gates:
        return f"held back by schedulingGates: {', '.join(wishes.gates)}"
    return "held back by spec.paused: set it to false to have it placed" * wishes.is_paused


def _class_of(request: Request, profile: str) -> Hashable:
    return (
        profile,
        request.cpu_millis,
        request.memory_bytes,
        request.disk_bytes,
        request.instance_type,
        request.template_id,
        request.template_node_scope,
        request.allow_non_local_template,
        request.node_selector,
        request.tolerations,
        request.refused_nodes,
        tuple(sorted(request.labels.items())),
    )
