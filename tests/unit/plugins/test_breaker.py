"""When a plugin that keeps failing is left alone, and when it is asked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from cubesched.core.errors import PluginError
from cubesched.plugins.breaker import Breaker


@dataclass
class World:
    now: float = 100.0
    breaker: Breaker = field(init=False)

    def __post_init__(self) -> None:
        self.breaker = Breaker(3, 30.0, clock=lambda: self.now)

    def call(self, error: BaseException | None = None) -> str:
        """Return what came of a call: `fine`, or the error it ended with."""
        try:
            with self.breaker.guarding("zones"):
                if error is not None:
                    raise error
        except PluginError as caught:
            return caught.message
        return "fine"

    def fail(self, times: int) -> None:
        for number in range(times):
            assert self.call(PluginError("zones", f"broken {number}")) == f"broken {number}"


def test_calls_go_through_until_so_many_failed_in_a_row() -> None:
    world = World()
    world.fail(2)

    assert world.call() == "fine"
    world.fail(2)
    assert not world.breaker.is_open
    assert world.breaker.why == ""


def test_an_open_breaker_fails_calls_at_once_and_says_why() -> None:
    world = World()
    world.fail(3)
    world.now += 10

    assert world.breaker.is_open
    why = "3 calls in a row failed, the last: broken 2"
    assert world.breaker.why == why
    assert world.call() == f"not asked for another 20.0 s: {why}"


def test_after_the_cooldown_one_call_tries_and_the_others_do_not_wait_for_it() -> None:
    world = World()
    world.fail(3)
    world.now += 30

    with world.breaker.guarding("zones"):
        assert world.call().startswith("not asked while one call tries")
    assert not world.breaker.is_open
    assert world.call() == "fine"


def test_a_try_that_fails_opens_it_for_as_long_again() -> None:
    world = World()
    world.fail(3)
    world.now += 30
    world.fail(1)

    world.now += 29.9
    assert world.call().startswith("not asked for another 0.1 s: 4 calls in a row failed")
    world.now += 0.1
    assert world.call() == "fine"


def test_a_call_from_before_it_opened_does_not_close_it() -> None:
    world = World()
    with world.breaker.guarding("zones"):
        world.fail(3)

    assert world.breaker.is_open


def test_a_call_from_before_it_opened_does_not_keep_it_open_longer() -> None:
    world = World()

    def fail_late() -> None:
        with world.breaker.guarding("zones"):
            world.fail(3)
            world.now += 20
            raise PluginError("zones", "late")

    with pytest.raises(PluginError):
        fail_late()
    world.now += 10
    assert world.call() == "fine"


@pytest.mark.parametrize("why", [KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_try_that_is_given_up_says_nothing_and_the_next_call_tries(
    why: Callable[[], BaseException],
) -> None:
    world = World()
    world.fail(3)
    world.now += 30

    with pytest.raises(why):  # type: ignore[call-overload]
        world.call(why())

    assert world.breaker.is_open
    assert world.call() == "fine"


def test_the_first_failure_opens_it_where_one_is_enough() -> None:
    breaker = Breaker(1, 30.0, clock=lambda: 0.0)

    with pytest.raises(PluginError), breaker.guarding("zones"):
        raise PluginError("zones", "broken")

    assert breaker.why == "1 call failed, the last: broken"
