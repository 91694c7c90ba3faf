"""The one table of metrics: what is exported, under which name and labels, and what it means.

Labels are names of live Profiles and values of fixed sets; never a request, a node, or text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """Prometheus' metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Program(Enum):
    """The programs that export metrics."""

    OPERATOR = "operator"
    RELAY = "relay"


OPERATOR_ONLY: Final = frozenset({Program.OPERATOR})
RELAY_ONLY: Final = frozenset({Program.RELAY})
BOTH: Final = frozenset(Program)


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table."""

    name: str
    """As scraped; counters end in `_total`."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    """Upper bounds in seconds, for histograms."""
    programs: frozenset[Program] = OPERATOR_ONLY
    """Those that export it."""


DECISION_BUCKETS: Final = (
    0.00005, 0.0001, 0.0002, 0.0004, 0.0008, 0.0015, 0.003, 0.006, 0.0125, 0.025, 0.05, 0.1, 0.5,
)  # fmt: skip
PLUGIN_BUCKETS: Final = (
    0.000005, 0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5,
)  # fmt: skip
CREATE_BUCKETS: Final = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
)  # fmt: skip

METRICS: Final = (
    Metric(
        "scheduler_attempts_total",
        Kind.COUNTER,
        ("profile", "result", "reason"),
        "Decisions, by result (reserved or unschedulable) and the reason shown to users.",
    ),
    Metric(
        "scheduler_duration_seconds",
        Kind.HISTOGRAM,
        ("profile",),
        "Time of one decision, from the frozen fleet to the chosen node, without any write.",
        DECISION_BUCKETS,
    ),
    Metric(
        "scheduler_plugin_duration_seconds",
        Kind.HISTOGRAM,
        ("profile", "kind", "plugin"),
        "Time of one plugin (kind guard, constraint, filter or score) within a decision.",
        PLUGIN_BUCKETS,
    ),
    Metric(
        "scheduler_decisions_total",
        Kind.COUNTER,
        ("profile", "template_hit"),
        "Decisions that chose a node, by whether it holds the template (true, false, none).",
    ),
    Metric(
        "sandbox_create_duration_seconds",
        Kind.HISTOGRAM,
        ("profile", "result"),
        "From the owner's first sight of a request to Running or Failed, on a monotonic clock.",
        CREATE_BUCKETS,
    ),
    Metric(
        "cubesched_pending_requests",
        Kind.GAUGE,
        ("profile", "queue"),
        "Requests of this replica that wait, by queue (active, backoff, unschedulable).",
    ),
    Metric(
        "cubesched_unschedulable_requests",
        Kind.GAUGE,
        ("profile", "guard"),
        "Waiting requests by the guard, constraint or filter that rejects the most nodes.",
    ),
    Metric(
        "cubesched_plugin_failures_total",
        Kind.COUNTER,
        ("profile", "plugin", "policy"),
        "Failures of plugins, by the failure policy that answered them.",
    ),
    Metric(
        "cubesched_plugin_circuit_state",
        Kind.GAUGE,
        ("plugin",),
        "Whether a python or grpc plugin is asked: 0 yes, 1 one call tries (half open), 2 no.",
    ),
    Metric(
        "cubesched_bind_conflicts_total",
        Kind.COUNTER,
        ("profile", "kind"),
        "Placements lost: the write was refused, or the reservation met a full node (room).",
    ),
    Metric(
        "cubesched_overcommitted_nodes",
        Kind.GAUGE,
        ("profile",),
        "Nodes whose confirmed requests exceed their limits; profile is empty.",
    ),
    Metric(
        "cubesched_directly_bound_requests",
        Kind.GAUGE,
        (),
        "Requests on nodes that nobody confirmed; while there are any, a node may be"
        " over-committed.",
    ),
    Metric(
        "cubesched_nodes",
        Kind.GAUGE,
        ("state",),
        "SandboxNodes by what the node_safety guard says of them (ok, stale, not_ready, ...).",
    ),
    Metric(
        "cubesched_node_metrics_age_seconds",
        Kind.GAUGE,
        (),
        "Age of the oldest heartbeat among the nodes that still report.",
    ),
    Metric(
        "cubesched_node_reports_unusable",
        Kind.GAUGE,
        ("problem",),
        "Reports, or values in them, left out of the last read because they are garbage.",
    ),
    Metric(
        "cubesched_profile_info",
        Kind.GAUGE,
        ("profile", "revision", "source"),
        "1 for each Profile in the running set; source is custom, factory or none.",
    ),
    Metric(
        "cubesched_profile_compile_failures_total",
        Kind.COUNTER,
        (),
        "Policy sets that did not compile and left the previous one running.",
    ),
    Metric(
        "cubesched_watch_restarts_total",
        Kind.COUNTER,
        ("resource",),
        "Lists and watches that broke and were begun again.",
        programs=BOTH,
    ),
    Metric(
        "cubesched_watch_age_seconds",
        Kind.GAUGE,
        ("resource",),
        "Time since the last event, bookmark or list of a resource.",
        programs=BOTH,
    ),
    Metric(
        "cubesched_flush_rescues_total",
        Kind.COUNTER,
        (),
        "Requests placed only because of the periodic flush: each is a missed wake-up.",
    ),
    Metric(
        "cubesched_redis_up",
        Kind.GAUGE,
        (),
        "1 while the last read of the nodes' reports succeeded.",
    ),
    Metric(
        "cubesched_routes_unwritten",
        Kind.GAUGE,
        (),
        "Routing records of this replica's share that Redis has yet to take.",
    ),
    Metric(
        "cubesched_events_suppressed_total",
        Kind.COUNTER,
        (),
        "Kubernetes Events dropped by the rate limit, the queue's bound, or an error.",
    ),
    Metric(
        "cubesched_loop_stalls_total",
        Kind.COUNTER,
        (),
        "Times that something held the event loop for longer than the bound.",
        programs=BOTH,
    ),
    Metric(
        "cubesched_relay_watches",
        Kind.GAUGE,
        (),
        "Watches of node agents that are open.",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_relay_events_total",
        Kind.COUNTER,
        ("kind",),
        "Lines handed to open watches, by kind (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR).",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_relay_answers_total",
        Kind.COUNTER,
        ("verb", "code"),
        "Answers to agents, by what was asked (list, watch, probe or other) and HTTP status.",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_relay_slow_watches_total",
        Kind.COUNTER,
        (),
        "Watches closed because their agent did not read; it opens another where this one ended.",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_relay_requests",
        Kind.GAUGE,
        (),
        "SandboxRequests that name a node, all held in memory.",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_relay_history_bytes",
        Kind.GAUGE,
        (),
        "Size of the events remembered for agents that open a watch again.",
        programs=RELAY_ONLY,
    ),
    Metric(
        "cubesched_build_info",
        Kind.GAUGE,
        ("version", "python"),
        "1, with the running version.",
        programs=BOTH,
    ),
)
