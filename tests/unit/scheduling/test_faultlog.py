from __future__ import annotations

import logging

import pytest

from cubesched.core.decision import Fault
from cubesched.scheduling.faultlog import FaultLog


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


FAULT = Fault("zone", "fail-open", "no such key:\n zone", 3)


def test_a_failure_is_told_at_once_and_its_likes_in_sum_a_minute_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    clock = Clock()
    log = FaultLog(clock)

    for now in (0.0, 1.0, 2.0, 60.0):
        clock.now = now
        log.note("burst", FAULT)

    text = "plugin zone of Profile burst failed on 3 nodes, fail-open applies: no such key: zone"
    assert [record.getMessage() for record in caplog.records] == [
        text,
        f"{text} (2 more since the last word)",
    ]


def test_each_plugin_of_each_profile_is_told_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    log = FaultLog(Clock())

    log.note("burst", FAULT)
    log.note("other", FAULT)
    log.note("burst", Fault("mark", "default-score", "late"))

    assert len(caplog.records) == 3
