from __future__ import annotations

import pytest

from cubesched.local import waiting


def _nothing() -> None:
    """Find nothing wrong."""


def test_waiting_ends_when_it_is_ready() -> None:
    answers = iter([False, True])

    waiting.wait_until(lambda: next(answers), what="x", check=_nothing, timeout_seconds=5)


def test_waiting_ends_with_what_the_check_found() -> None:
    def check() -> None:
        raise LookupError("it died")

    with pytest.raises(LookupError, match="it died"):
        waiting.wait_until(lambda: False, what="x", check=check, timeout_seconds=5)


def test_waiting_ends_after_its_time_naming_what_does_not_answer() -> None:
    with pytest.raises(waiting.NotReady, match="etcd does not answer after 0 s"):
        waiting.wait_until(lambda: False, what="etcd", check=_nothing, timeout_seconds=0)


def test_a_port_nobody_listens_on_does_not_answer() -> None:
    assert not waiting.redis_answers(waiting.free_port())
