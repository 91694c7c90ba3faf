"""The reference page of the metrics, from the one table that also registers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cubesched.adapters.telemetry.table import METRICS, Metric, Program
from cubesched.generate.markdown import code, first_lines, table

_WHAT: Final = """\
What `/metrics` of each replica exports, in Prometheus' text format. A series appears with its
first value, and goes with the Profile it is about. No label holds the name of a request or a node.
Counters and histograms count what this replica did; gauges of nodes and policy say the same on
every replica, so take their maximum, not their sum."""

_RELAY: Final = "What `/metrics` of `cubesched relay` exports; each counts its own agents."


def metrics_page() -> str:
    """Return the Markdown page of all metrics."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Metrics", _WHAT)
    yield from _table_of(Program.OPERATOR)
    yield from ("", "## The relay", "", _RELAY, "")
    yield from _table_of(Program.RELAY)
    yield from ("", "## Buckets", "", "Upper bounds of the histograms, in seconds:", "")
    for metric in METRICS:
        if metric.buckets:
            bounds = ", ".join(f"{bound:g}" for bound in metric.buckets)
            yield f"* `{metric.name}`: {bounds}"


def _table_of(program: Program) -> Iterator[str]:
    yield from table(
        ("metric", "type", "labels", "what"),
        (
            (code(m.name), m.kind.value, _labels(m), m.help)
            for m in METRICS
            if program in m.programs
        ),
    )


def _labels(metric: Metric) -> str:
    return ", ".join(code(label) for label in metric.labels)
