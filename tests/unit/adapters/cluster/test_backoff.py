"""Backoff: doubling, bounded, spread, and forgiving after a success."""

from cubesched.adapters.cluster.backoff import Backoff


def test_delays_double_up_to_the_bound_and_start_again_after_a_reset() -> None:
    backoff = Backoff(lambda: 1.0)

    assert [backoff.next_seconds() for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    backoff.reset()
    assert backoff.next_seconds() == 0.2


def test_no_delay_is_shorter_than_half_of_its_bound() -> None:
    assert Backoff(lambda: 0.0).next_seconds() == 0.1
