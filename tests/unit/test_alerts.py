"""The alerting rules parse, speak of metrics and labels that exist, and lead into the runbook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser as promql
import pytest
import yaml

from cubesched.adapters.telemetry.table import METRICS, Kind, Metric
from cubesched.core.snapshot import Safety

ROOT: Final = Path(__file__).parents[2]
RULES: Final = yaml.safe_load((ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text())
ALERTS: Final = [rule for group in RULES["groups"] for rule in group["rules"]]
OF_A_SCRAPE: Final = {"job", "instance"}
"""Labels that Prometheus adds."""
OF_COUNTS: Final = {"rate", "increase", "irate"}
PART: Final = re.compile("_(bucket|count|sum)$")
KNOWN: Final = {metric.name: metric for metric in METRICS}
STATES: Final = {state.name.lower() for state in Safety}

each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])


def children(expression: promql.Expr) -> Iterator[promql.Expr]:
    """Yield what an expression is made of, one level down."""
    match expression:
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr():
            yield expression.expr
        case promql.BinaryExpr():
            yield from (expression.lhs, expression.rhs)
        case promql.Call():
            yield from expression.args
        case promql.MatrixSelector():
            yield expression.vector_selector
        case _:
            return


def walk(expression: promql.Expr) -> Iterator[promql.Expr]:
    """Yield an expression and everything in it."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def metric_of(selector: promql.VectorSelector) -> Metric:
    """Return the metric that a selector reads; KeyError when there is none of that name."""
    name = str(selector.name)
    return KNOWN[name] if name in KNOWN else KNOWN[PART.sub("", name)]


def grouped_by(expression: promql.Expr) -> list[str]:
    """Return the labels by which an aggregation groups, or an operator matches."""
    match expression:
        case promql.AggregateExpr(modifier=modifier) if modifier:
            return list(modifier.labels)
        case promql.BinaryExpr(modifier=modifier) if modifier and modifier.matching:
            return list(modifier.matching.labels)
        case _:
            return []


def parsed(alert: dict[str, Any]) -> promql.Expr:
    """Return the expression of an alert; ValueError when it is none."""
    return promql.parse(alert["expr"])


def selectors(expression: promql.Expr) -> list[promql.VectorSelector]:
    """Return all selectors in an expression."""
    return [part for part in walk(expression) if isinstance(part, promql.VectorSelector)]


@each_alert
def test_an_alert_reads_metrics_that_are_exported(alert: dict[str, Any]) -> None:
    found = selectors(parsed(alert))

    assert found
    for selector in found:
        is_part = metric_of(selector).name != selector.name
        assert is_part == (metric_of(selector).kind is Kind.HISTOGRAM)


@each_alert
def test_an_alert_selects_by_labels_that_its_metrics_have(alert: dict[str, Any]) -> None:
    for selector in selectors(parsed(alert)):
        named = {matcher.name for matcher in selector.matchers.matchers}

        assert named <= {*metric_of(selector).labels, *OF_A_SCRAPE}


@each_alert
def test_an_alert_groups_by_labels_that_its_metrics_have(alert: dict[str, Any]) -> None:
    for part in walk(parsed(alert)):
        for selector in selectors(part):
            assert set(grouped_by(part)) <= {*metric_of(selector).labels, *OF_A_SCRAPE}


@each_alert
def test_an_alert_takes_the_rate_of_what_only_rises(alert: dict[str, Any]) -> None:
    for part in walk(parsed(alert)):
        if isinstance(part, promql.Call) and part.func.name in OF_COUNTS:
            assert {metric_of(s).kind for s in selectors(part)} <= {Kind.COUNTER, Kind.HISTOGRAM}


@each_alert
def test_an_alert_names_states_that_nodes_can_be_in(alert: dict[str, Any]) -> None:
    matchers = [m for s in selectors(parsed(alert)) for m in s.matchers.matchers]

    named = {value for m in matchers if m.name == "state" for value in m.value.split("|")}
    assert named <= STATES


@each_alert
def test_an_alert_says_what_is_wrong_and_how_bad_it_is(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"]


@each_alert
def test_an_alert_shows_labels_that_are_left_of_its_metrics(alert: dict[str, Any]) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    expression = parsed(alert)
    sums = [part for part in walk(expression) if isinstance(part, promql.AggregateExpr)]
    kept = {label for part in sums for label in grouped_by(part)}
    whole = {*metric_of(selectors(expression)[0]).labels, *OF_A_SCRAPE}

    assert shown <= (kept if sums else whole)


@each_alert
def test_an_alert_leads_to_its_section_of_the_runbook(alert: dict[str, Any]) -> None:
    page, _, anchor = alert["annotations"]["runbook"].partition("#")

    assert anchor == alert["alert"].lower()
    assert f"# {alert['alert']}\n" in (ROOT / page).read_text()


def test_no_two_alerts_have_one_name() -> None:
    names = [alert["alert"] for alert in ALERTS]

    assert len(names) == len(set(names)) > 0
