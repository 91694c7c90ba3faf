from __future__ import annotations

from cubesched.relay.watches import MOST_PENDING_BYTES, Watch

HALF = b"x" * (MOST_PENDING_BYTES // 2 + 1)


def a_watch(*backlog: bytes) -> Watch:
    return Watch("n1", wants_bookmarks=True, backlog=list(backlog))


async def test_everything_there_is_comes_at_once_in_order() -> None:
    watch = a_watch(b"1")
    watch.tell(b"2")
    watch.tell(b"3")

    assert await watch.take(wait_seconds=1) == b"123"
    assert await watch.take(wait_seconds=0) == b""


async def test_an_ended_watch_says_its_last_and_is_over() -> None:
    watch = a_watch(b"1")
    watch.end(b"last")
    assert not watch.is_over

    assert await watch.take(wait_seconds=1) == b"1last"
    assert watch.is_over
    assert await watch.take(wait_seconds=1) == b""


async def test_an_agent_that_does_not_read_loses_its_watch_and_not_a_line() -> None:
    watch = a_watch()
    assert watch.tell(HALF)
    assert not watch.tell(HALF)

    assert watch.is_over
    assert await watch.take(wait_seconds=1) == b""


async def test_one_large_line_is_not_a_slow_agent() -> None:
    watch = a_watch()
    assert watch.tell(HALF + HALF)

    assert await watch.take(wait_seconds=1) == HALF + HALF
    assert watch.tell(HALF)
