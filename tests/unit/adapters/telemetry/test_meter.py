"""Metrics: the table is all there is, and what is gone is not shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cubesched.adapters.telemetry.meter import Meter
from cubesched.adapters.telemetry.table import METRICS, Kind, Program

FORBIDDEN_LABELS = {"node", "request", "name", "namespace", "uid", "message", "error"}


def lines_of(meter: Meter, name: str) -> list[str]:
    return [line for line in meter.exposition().decode().splitlines() if line.startswith(name)]


def test_names_follow_the_conventions_and_no_label_is_unbounded() -> None:
    names = [metric.name for metric in METRICS]

    assert len(names) == len(set(names))
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert metric.help.endswith(".")
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
        assert list(metric.buckets) == sorted(metric.buckets)
        assert not FORBIDDEN_LABELS & set(metric.labels)


def test_each_kind_is_exported_as_prometheus_expects() -> None:
    meter = Meter()

    meter.inc("scheduler_attempts_total", profile="p", result="reserved", reason="Bound")
    meter.inc("scheduler_attempts_total", 2, profile="p", result="reserved", reason="Bound")
    meter.set("cubesched_redis_up", 1)
    meter.observe("scheduler_duration_seconds", 0.0003, profile="p")

    assert lines_of(meter, "scheduler_attempts_total") == [
        'scheduler_attempts_total{profile="p",reason="Bound",result="reserved"} 3.0'
    ]
    assert lines_of(meter, "cubesched_redis_up") == ["cubesched_redis_up 1.0"]
    assert 'scheduler_duration_seconds_count{profile="p"} 1.0' in lines_of(
        meter, "scheduler_duration_seconds"
    )
    assert lines_of(meter, "cubesched_build_info")[0].endswith(" 1.0")


@pytest.mark.parametrize(
    "labels", [{}, {"profile": "p"}, {"profile": "p", "result": "r", "x": "y"}]
)
def test_labels_outside_the_table_are_a_defect(labels: dict[str, str]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Meter().inc("scheduler_attempts_total", 1, **labels)


def test_names_and_kinds_outside_the_table_are_a_defect() -> None:
    with pytest.raises(KeyError):
        Meter().inc("nope_total")
    with pytest.raises(AssertionError):
        Meter().set("cubesched_flush_rescues_total", 1)
    with pytest.raises(ValueError, match="labels"):
        Meter().inc("cubesched_flush_rescues_total", profile="p")


def test_the_series_of_a_deleted_profile_vanish_and_no_others() -> None:
    meter = Meter()
    before = len(meter.exposition().splitlines())
    for number in range(300):
        profile = f"random-{number}"
        meter.inc("scheduler_attempts_total", profile=profile, result="r", reason="x")
        meter.observe("scheduler_duration_seconds", 0.1, profile=profile)
    meter.set("cubesched_profile_info", 1, profile="stays", revision="1", source="object")

    for number in range(300):
        meter.forget_profile(f"random-{number}")

    assert len(meter.exposition().splitlines()) == before + 1
    assert len(lines_of(meter, "cubesched_profile_info")) == 1


def test_forgetting_by_one_label_keeps_the_rest() -> None:
    meter = Meter()
    for revision in ("1", "2"):
        meter.set("cubesched_profile_info", 1, profile="p", revision=revision, source="object")

    meter.forget("cubesched_profile_info", revision="1")

    assert lines_of(meter, "cubesched_profile_info") == [
        'cubesched_profile_info{profile="p",revision="2",source="object"} 1.0'
    ]


def test_two_meters_in_one_process_do_not_meet() -> None:
    one, other = Meter(), Meter()

    one.inc("cubesched_flush_rescues_total")

    assert lines_of(one, "cubesched_flush_rescues_total") == ["cubesched_flush_rescues_total 1.0"]
    assert lines_of(other, "cubesched_flush_rescues_total") == ["cubesched_flush_rescues_total 0.0"]


def test_gauges_that_change_by_themselves_are_set_at_the_scrape() -> None:
    meter = Meter()
    meter.before_scrape(lambda: meter.set("cubesched_watch_age_seconds", 7, resource="r"))

    assert lines_of(meter, "cubesched_watch_age_seconds") == [
        'cubesched_watch_age_seconds{resource="r"} 7.0'
    ]


def test_the_multiprocess_mode_of_the_client_library_does_no_harm(tmp_path: Path) -> None:
    program = (
        "from cubesched.adapters.telemetry.meter import Meter\n"
        "meter = Meter(); meter.inc('cubesched_flush_rescues_total')\n"
        "text = meter.exposition().decode()\n"
        "assert text.count('\\ncubesched_flush_rescues_total ') == 1, text\n"
    )
    operator = str(Path(__file__).parents[4] / "operator")
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": operator}

    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_each_program_exports_its_own_metrics_only() -> None:
    relay, operator = Meter(program=Program.RELAY), Meter()

    assert lines_of(relay, "cubesched_relay_watches") == ["cubesched_relay_watches 0.0"]
    assert not lines_of(relay, "cubesched_redis_up")
    assert not lines_of(operator, "cubesched_relay_")
    assert lines_of(relay, "cubesched_build_info")
    with pytest.raises(KeyError):
        relay.set("cubesched_redis_up", 1)
