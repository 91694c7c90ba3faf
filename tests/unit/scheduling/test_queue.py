"""The queue: priority, then age; each request in one place; nothing leaks."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubesched.scheduling.queue import Item, Queue


def an_item(uid: str = "a", *, priority: int = 0, created: str = "2026-01-01T00:00:00Z") -> Item:
    return Item(uid=uid, priority=priority, created=created, since=0.0)


def a_queue(*items: Item, draw: float = 0.5) -> Queue:
    queue = Queue(lambda: draw)
    for item in items:
        queue.add(item)
    return queue


def order(queue: Queue) -> list[str]:
    taken = []
    while (item := queue.take()) is not None:
        taken.append(item.uid)
    return taken


def left_over(queue: Queue) -> int:
    """How many entries the queue's own structures still hold for requests that wait."""
    return len(queue.items) + len(queue._parked)


def test_higher_priority_goes_first_then_the_older_then_the_smaller_uid() -> None:
    queue = a_queue(
        an_item("d", created="2026-01-02T00:00:00Z"),
        an_item("c"),
        an_item("b"),
        an_item("urgent", priority=5, created="2026-01-03T00:00:00Z"),
    )

    assert order(queue) == ["urgent", "b", "c", "d"]


def test_what_is_taken_is_busy_and_is_not_taken_twice() -> None:
    queue = a_queue(an_item())

    item = queue.take()
    assert item is not None
    assert item.where == "busy"
    assert queue.take() is None


def test_a_new_priority_counts_from_the_next_turn_on() -> None:
    low = an_item("low")
    queue = a_queue(low, an_item("other", priority=1))

    low.priority = 9
    queue.make_ready(low)

    assert order(queue) == ["low", "other"]


def test_a_forgotten_request_leaves_no_trace_wherever_it_was() -> None:
    queue = a_queue(*(an_item(uid) for uid in "abcd"))
    queue.hold(queue.items["a"], 5.0)
    queue.park(queue.items["b"], "class", flush_at=60.0)
    queue.set_busy(queue.items["c"])

    for uid in "abcde":
        queue.forget(uid)
    queue.release_due(100.0)

    assert order(queue) == []
    assert left_over(queue) == 0
    assert queue.next_due() is None


def test_a_held_request_comes_back_at_its_time_and_not_before() -> None:
    queue = a_queue(an_item())
    queue.hold(queue.items["a"], 5.0)

    queue.release_due(4.99)
    assert queue.take() is None
    assert queue.next_due() == 5.0
    queue.release_due(5.0)
    assert order(queue) == ["a"]


def test_a_hold_that_was_overtaken_by_another_does_nothing() -> None:
    queue = a_queue(an_item())
    queue.hold(queue.items["a"], 5.0)
    queue.hold(queue.items["a"], 9.0)

    queue.release_due(5.0)
    assert queue.take() is None
    queue.release_due(9.0)
    assert order(queue) == ["a"]


def test_a_parked_request_comes_back_by_the_flush_and_says_so() -> None:
    queue = a_queue(an_item())
    queue.park(queue.items["a"], "class", flush_at=60.0)
    assert queue.take() is None

    queue.release_due(60.0)
    item = queue.take()

    assert item is not None
    assert item.flushed
    assert queue.classes() == []


@pytest.mark.parametrize("by", ["hold", "wake"])
def test_a_request_that_came_back_otherwise_was_not_saved_by_the_flush(by: str) -> None:
    queue = a_queue(an_item())
    item = queue.items["a"]
    if by == "hold":
        queue.hold(item, 5.0)
        queue.release_due(5.0)
    else:
        queue.park(item, "class", flush_at=60.0)
        queue.wake(item, not_before=0.0, now=1.0)

    taken = queue.take()
    assert taken is item
    assert not taken.flushed


def test_the_mark_of_the_flush_goes_with_the_next_place() -> None:
    queue = a_queue(an_item())
    item = queue.items["a"]
    queue.park(item, "class", flush_at=1.0)
    queue.release_due(1.0)
    queue.take()
    queue.park(item, "class", flush_at=99.0)
    queue.wake(item, not_before=0.0, now=2.0)

    assert not item.flushed


def test_a_woken_request_keeps_its_backoff() -> None:
    queue = a_queue(an_item())
    item = queue.items["a"]
    queue.park(item, "class", flush_at=60.0)
    queue.wake(item, not_before=7.0, now=1.0)

    assert (item.where, queue.take()) == ("held", None)
    queue.release_due(7.0)
    assert order(queue) == ["a"]


def test_classes_stand_in_the_order_of_their_first_members() -> None:
    queue = a_queue(an_item("a"), an_item("b", priority=1), an_item("c", priority=2), an_item("d"))
    for uid, key in (("a", "low"), ("d", "low"), ("b", "mixed"), ("c", "high")):
        queue.park(queue.items[uid], key, flush_at=60.0)

    assert queue.classes() == ["high", "mixed", "low"]
    assert [item.uid for item in queue.members("low")] == ["a", "d"]
    assert queue.members("none") == []


def test_a_priority_that_changes_while_parked_does_not_lose_the_place() -> None:
    queue = a_queue(an_item("a"), an_item("b"))
    for uid in "ab":
        queue.park(queue.items[uid], "class", flush_at=60.0)

    queue.items["b"].priority = 9
    queue.make_ready(queue.items["b"])

    assert [item.uid for item in queue.members("class")] == ["a"]
    assert order(queue) == ["b"]


@pytest.mark.parametrize(
    ("rejections", "draw", "seconds"),
    [(0, 0.5, 1.0), (1, 0.5, 1.0), (2, 0.5, 2.0), (3, 0.5, 4.0), (9, 0.5, 10.0), (99, 0.5, 10.0),
     (1, 0.0, 0.75), (1, 1.0, 1.25)],
)  # fmt: skip
def test_backoff_doubles_up_to_its_bound_give_or_take_a_quarter(
    rejections: int, draw: float, seconds: float
) -> None:
    queue, item = a_queue(draw=draw), an_item()
    item.rejections = rejections

    assert queue.backoff_seconds(item, initial=1.0, longest=10.0) == seconds


@pytest.mark.parametrize(("draw", "first"), [(0.0, 0.025), (0.5, 0.05), (1.0, 0.075)])
def test_conflicts_hold_for_50_ms_give_or_take_half_doubling_to_2_s(
    draw: float, first: float
) -> None:
    queue = a_queue(an_item(), draw=draw)
    item, held = queue.items["a"], []
    for _ in range(20):
        queue.conflict_hold(item, 100.0)
        held.append(item.held_until - 100.0)

    assert held[:3] == pytest.approx([first, 2 * first, 4 * first])
    assert held[-1] == pytest.approx(2.0 * (0.5 + draw))


def test_failed_writes_hold_for_a_second_doubling_to_eight() -> None:
    queue = a_queue(an_item(), draw=1.0)
    item, held = queue.items["a"], []
    for _ in range(6):
        queue.failure_hold(item, 0.0)
        held.append(item.held_until)

    assert held == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def one_step(queue: Queue, rng: random.Random, now: float) -> None:
    """Do anything to one request, as its owner or the scheduler might."""
    item = queue.items.get(uid := rng.choice("abcdef"))
    if item is None:
        queue.add(an_item(uid, priority=rng.randrange(3)))
        return
    until = now + rng.random()
    steps: list[Callable[[], object]] = [
        lambda: queue.make_ready(item),
        lambda: queue.hold(item, until),
        lambda: queue.park(item, rng.choice("xy"), flush_at=until),
        lambda: queue.wake(item, not_before=now + rng.choice([-1, 1]), now=now),
        lambda: queue.set_busy(item),
        lambda: queue.forget(uid),
        lambda: setattr(item, "priority", item.priority + 1),
        queue.take,
    ]
    rng.choice(steps)()


@given(st.integers(0, 1 << 32))
def test_after_any_history_each_request_is_in_one_place_and_all_come_out(seed: int) -> None:
    rng = random.Random(seed)
    queue, now = Queue(rng.random), 0.0
    for _ in range(80):
        now += rng.random()
        one_step(queue, rng, now)
        queue.release_due(now)
        parked = {i.uid for key in queue.classes() for i in queue.members(key)}
        assert parked == {i.uid for i in queue.items.values() if i.where == "parked"}
        assert sum(queue.count(w) for w in ("ready", "held", "parked", "busy")) == len(queue.items)

    queue.release_due(now + 10)
    for item in queue.items.values():
        if item.where == "busy":
            queue.make_ready(item)
    assert sorted(order(queue)) == sorted(queue.items)
    for uid in list(queue.items):
        queue.forget(uid)
    assert left_over(queue) == 0
