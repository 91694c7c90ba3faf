from __future__ import annotations

import pytest
from tests.unit.policy.migration.files import config_of, notes_of

from cubesched.policy.migration.durations import seconds_of, written
from cubesched.policy.migration.migrate import migrate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300s", 300.0),
        ("1h0m30s", 3630.0),
        ("1.5h", 5400.0),
        ("100ms", 0.1),
        ("250us", 0.00025),
        ("300000000000", 300.0),
        ("-1s", -1.0),
        (".5s", 0.5),
        ("5 minutes", None),
        ("1d", None),
        ("s", None),
        ("", None),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == (None if seconds is None else pytest.approx(seconds))


def test_durations_are_written_in_whole_milliseconds() -> None:
    assert [written(seconds) for seconds in (90.0, 0.1, 0.00025, 3600.0)] == [
        "90s",
        "100ms",
        "1ms",
        "3600s",
    ]


@pytest.mark.parametrize(
    ("setting", "guards", "note"),
    [
        ("metric_update_timeout: 3h", {"metricsMaxAge": "3600s"}, "written as 3600s"),
        ("metric_update_timeout: 1s", {"metricsMaxAge": "5s"}, "written as 5s"),
        ("metric_update_timeout: -1s", {"metricsMaxAge": "3600s"}, "written as 3600s"),
        ("metric_update_timeout: 0", None, "may be silent for 1h there"),
        ("metric_update_timeout: soon", None, "must be a duration"),
        ("node_max_cpu_util: 130", {"maxCpuUtilPercent": 100}, "written as 100"),
        ("node_max_cpu_util: 0", None, ""),
        ("node_max_cpu_util: -5", None, "must not be negative"),
        ("node_max_cpu_util: [80]", None, "must be a number, not a list"),
        ("node_max_cpu_util: high", None, "must be a number"),
        ("node_max_cpu_util: '85'", {"maxCpuUtilPercent": 85}, ""),
        ("node_max_mvm_num_reserve_num_percent: 0.9", {"maxSandboxesPerNode": 2700}, "multiplied"),
        ("node_max_mem_reserved_in_mb: 512", {"memoryReserved": "512Mi"}, "keeps 10 % on nodes"),
    ],
)
def test_a_guard_keeps_its_bound_or_says_why_not(
    setting: str, guards: dict[str, object] | None, note: str
) -> None:
    text = f"scheduler: {{{setting}}}"

    assert config_of(text).get("guards") == guards
    assert note in "\n".join(notes_of(migrate(text)))


def test_overcommit_below_1_is_written_as_1() -> None:
    text = "scheduler: {overcommit_ratio: {cpu_ratio: 0.5, mem_ratio: 2}}"

    assert config_of(text)["overcommit"] == {"cpu": 1, "memory": 2}


def test_what_is_no_flag_is_noted() -> None:
    text = "scheduler: {ignore_redis_allocation: maybe}"

    assert "ignoreRedisAllocation" not in config_of(text)
    assert any("must be true or false" in note for note in notes_of(migrate(text)))
