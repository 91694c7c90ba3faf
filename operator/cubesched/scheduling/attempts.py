"""One attempt at one request: lease the policy, route, decide; a value says what came out."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from cubesched.api.timestamps import unix_seconds
from cubesched.core.counterfactuals import Counterfactual, counterfactuals
from cubesched.core.cycle import decide, decide_waiting, feasible_rows
from cubesched.core.decision import Placed, Reason, Rejected
from cubesched.core.errors import PluginError
from cubesched.core.explaining import explanation, message
from cubesched.core.pipeline import NoCandidate, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Safety, Snapshot
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
    """What rejected it can be asked again of this, at any time."""
    has_own_say: bool = False
    """A filter that is waited for takes part, so what would help cannot be told."""
    was_asked: bool = False
    """Plugins that are waited for have answered; what they would say now is not known."""


@dataclass(frozen=True, slots=True)
class Yes:
    """A node for the request."""

    request: Request
    pipeline: Pipeline
    placed: Placed
    policy: PolicySet


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nodes are left, and plugins that are waited for have yet to be asked about them."""

    request: Request
    pipeline: Pipeline
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

    def request_of(self, entry: Entry, attempts: int) -> Request:
        """Return what plugins may see of a request; raises InvalidSpec."""
        policy = self.policy.current
        return entry.request(
            attempt=attempts,
            refused_nodes=self.refused_nodes(entry),
            label_keys=policy.settings.profile_route_label_keys if policy else (),
        )

    def attempt(self, entry: Entry, attempts: int) -> Yes | No | Undecided:
        """Decide for one request, as far as nothing has to be waited for.

        `attempts` seeds ties and random picks.
        """
        gate = _gate_of(entry)
        if gate:
            return No(Reason.GATED, ("gated", entry.uid), gate)
        try:
            request = self.request_of(entry, attempts)
        except InvalidSpec as error:
            return No(Reason.INVALID_SPEC, ("invalid", entry.uid), str(error))
        policy = self.policy.current
        if policy is None:
            return No(Reason.NO_ACTIVE_POLICY, ("policy",), "no policy set is active")
        pipeline = policy.route(request)
        if pipeline is None:
            text = "no SchedulerProfile matches this request and there is no default"
            return No(Reason.NO_PROFILE, ("policy",), text, revision=policy.revision)
        return self._decide(Undecided(request, pipeline, policy))

    def _decide(self, asked: Undecided) -> Yes | No | Undecided:
        """Decide at once; where plugins are waited for, only whether asking them is of any use."""
        pipeline = asked.pipeline.local() if asked.pipeline.waits else asked.pipeline
        prefer_own = self._prefers_own(asked.policy)
        decision = decide(self.fleet.snapshot, asked.request, pipeline, prefer_own=prefer_own)
        if isinstance(decision, Rejected):
            return self._no(decision, asked, pipeline)
        if asked.pipeline.waits:
            return asked
        return Yes(asked.request, pipeline, decision, asked.policy)

    async def ask(self, asked: Undecided) -> Yes | No:
        """Decide on the fleet as it is now, suspended while plugins are waited for."""
        fleet, prefer_own = self.fleet.frozen(asked.request), self._prefers_own(asked.policy)
        decision, told = await decide_waiting(
            fleet, asked.request, asked.pipeline, prefer_own=prefer_own
        )
        if isinstance(decision, Rejected):
            return replace(self._no(decision, asked, told), was_asked=True)
        return Yes(asked.request, asked.pipeline, decision, asked.policy)

    def stands(self, yes: Yes) -> bool:
        """Tell whether the chosen node still passes everything that can be asked at once."""
        view = self.fleet.snapshot
        row = view.row_of.get(yes.placed.node)
        try:
            return row is not None and row in feasible_rows(view, yes.request, yes.pipeline)
        except PluginError:  # the next attempt meets it as well, and tells
            return False

    def _prefers_own(self, policy: PolicySet) -> bool:
        return policy.settings.own_nodes_first and not self.alone

    def room_like(self, yes: Yes | Undecided) -> int:
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
            parts = (no.rejected, self.fleet.snapshot, no.request, no.pipeline)
            helps = None if no.has_own_say else self._helps(*parts)
            self._said[key] = message(*parts), explanation(*parts, helps=helps)
        return self._said[key]

    def _helps(
        self, rejected: Rejected, fleet: Snapshot, request: Request, pipeline: Pipeline
    ) -> list[Counterfactual]:
        policy = self.policy.current
        route = policy.route if policy else None
        return counterfactuals(rejected, fleet, request, pipeline, route=route)

    def _no(self, rejected: Rejected, asked: Undecided, pipeline: Pipeline) -> No:
        """Return the "no"; `pipeline` is what rejected it, with nothing to be waited for."""
        most = max(rejected.counts, key=lambda count: count.rejected, default=None)
        return No(
            reason=rejected.reason,
            key=_class_of(asked.request, pipeline.profile),
            profile=pipeline.profile,
            revision=asked.policy.revision,
            blocked_by=most.plugin if most else "",
            is_final=pipeline.no_candidate is NoCandidate.FAIL and self._is_final(rejected.reason),
            rejected=rejected,
            request=asked.request,
            pipeline=pipeline,
            has_own_say=len(asked.pipeline.local_filters) < len(asked.pipeline.filters),
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


def class_of(yes: Yes) -> Hashable:
    """Return the class of a request that was placed: what helped it helps the others of it."""
    return _class_of(yes.request, yes.pipeline.profile)


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
