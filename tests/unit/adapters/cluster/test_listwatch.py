"""List-watch: the sink always holds an exact prefix, or knows that it does not."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from tests.model.virtualtime import run_virtual, running_loop
from tests.unit.adapters.scripted import (
    ScriptedTransport,
    Watch,
    a_bookmark,
    a_line,
    a_page,
    a_refusal,
    an_object,
)
from typing_extensions import override

from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError, Gone

PATH = "/apis/cubesched.io/v1alpha1/sandboxrequests"


@dataclass
class NotingSink:
    """Keeps the state as a real sink would, and a diary of all calls."""

    diary: list[str] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        self.diary.append("reset")
        self.listed = {}

    def seen(self, raw: bytes) -> None:
        name, version = _read(raw)
        self.listed[name] = version

    def complete(self, version: int) -> None:
        self.diary.append(f"complete {version}")
        self.held = self.listed

    def event(self, kind: str, raw: bytes, version: int) -> None:
        name, _ = _read(raw)
        self.diary.append(f"{kind} {name} {version}")
        if kind == "DELETED":
            self.held.pop(name, None)
        else:
            self.held[name] = version

    def progress(self, version: int) -> None:
        self.diary.append(f"progress {version}")


def _read(raw: bytes) -> tuple[str, int]:
    metadata = json.loads(raw)["metadata"]
    return metadata["name"], int(metadata["resourceVersion"])


@dataclass
class Run:
    """What was left after the list-watch ran for a while."""

    sink: NotingSink
    transport: ScriptedTransport
    watch: ListWatch
    restarts: list[str]
    age_seconds: float


def follow(
    transport: ScriptedTransport,
    *,
    for_seconds: float = 60.0,
    verify: Callable[[], Awaitable[None]] | None = None,
    meanwhile: Callable[[], Awaitable[Any]] | None = None,
    **options: Any,
) -> Run:
    """Run a list-watch on a virtual clock for that long."""
    sink = NotingSink()
    restarts: list[str] = []
    watch = ListWatch(
        transport,
        PATH,
        sink,
        rng=lambda: 0.5,
        verify=verify,
        on_restart=restarts.append,
        **options,
    )

    async def main() -> float:
        task = asyncio.create_task(watch.run())
        if meanwhile is not None:
            await meanwhile()
        await asyncio.wait([task], timeout=for_seconds)
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return watch.age_seconds(running_loop().time())

    age = run_virtual(main)
    return Run(sink, transport, watch, restarts, age)


def a_server(
    *answers: Any, watches: tuple[Any, ...] = (), newest: int = 1_000
) -> ScriptedTransport:
    return ScriptedTransport(deque(answers), deque(watches), newest)


def test_all_pages_are_read_before_the_state_counts_as_complete() -> None:
    server = a_server(
        a_page(7, an_object("a", 3), token="t1"),
        a_page(7, an_object("b", 5)),
    )

    run = follow(server)

    assert run.sink.held == {"a": 3, "b": 5}
    assert run.sink.diary == ["reset", "complete 7"]
    assert [call.params.get("continue") for call in server.lists()] == [None, "t1"]
    assert server.lists()[0].params["limit"] == "500"


def test_the_watch_starts_at_the_version_of_the_list_and_asks_for_bookmarks() -> None:
    server = a_server(a_page(7))

    follow(server, field_selector="status.nodeName=n1")

    params = server.opened()[0].params
    assert params["resourceVersion"] == "7"
    assert params["allowWatchBookmarks"] == "true"
    assert 600 <= int(params["timeoutSeconds"]) <= 900
    assert params["fieldSelector"] == "status.nodeName=n1"
    assert server.lists()[0].params["fieldSelector"] == "status.nodeName=n1"


def test_events_reach_the_sink_in_order_and_move_the_position() -> None:
    says = [
        a_line("ADDED", an_object("a", 8)),
        a_line("MODIFIED", an_object("a", 9)),
        a_bookmark(12),
        a_line("DELETED", an_object("a", 13)),
    ]
    run = follow(a_server(a_page(7), watches=(Watch(says),)))

    assert run.sink.diary[2:] == ["ADDED a 8", "MODIFIED a 9", "progress 12", "DELETED a 13"]
    assert run.watch.position == 13


def test_pages_of_different_versions_restart_the_list() -> None:
    server = a_server(
        a_page(7, an_object("old", 3), token="t1"),
        a_page(9, an_object("b", 5)),
        a_page(11, an_object("new", 10)),
    )

    run = follow(server)

    assert run.sink.held == {"new": 10}
    assert run.watch.position == 11
    assert server.lists()[2].params.get("continue") is None


def test_an_inconsistent_continue_token_is_never_used() -> None:
    metadata = {"continue": "inconsistent", "resourceVersion": "9"}
    server = a_server(
        a_page(7, an_object("old", 3), token="t1"),
        a_refusal(410, "token expired", metadata=metadata, reason="Expired"),
        a_page(11, an_object("new", 10)),
    )

    run = follow(server)

    assert run.sink.held == {"new": 10}
    assert [call.params.get("continue") for call in server.lists()] == [None, "t1", None]


@pytest.mark.parametrize(
    "how",
    [
        Gone("too old"),
        Watch([a_line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})]),
    ],
    ids=["http", "line in a 200"],
)
def test_a_position_that_is_gone_leads_to_a_new_list_without_what_vanished(how: Any) -> None:
    server = a_server(
        a_page(7, an_object("a", 3), an_object("vanished", 4)),
        a_page(20, an_object("a", 3)),
        watches=(how, Watch([a_line("ADDED", an_object("b", 21))])),
    )

    run = follow(server)

    assert run.sink.held == {"a": 3, "b": 21}
    assert server.opened()[1].params["resourceVersion"] == "20"
    assert len(run.restarts) == 1


def test_the_sink_is_told_at_once_that_its_prefix_ended() -> None:
    server = a_server(a_page(7), watches=(Watch([Gone("too old")]),))

    run = follow(server)

    assert run.sink.diary[:3] == ["reset", "complete 7", "reset"]
    assert run.watch.position is None


@pytest.mark.parametrize(
    "how",
    [
        ApiError("connection reset"),
        ApiError("forbidden", 403),
        Watch([ApiError("nothing arrived for 75 s")]),
        Watch([a_line("ERROR", {"kind": "Status", "code": 500, "message": "etcd leader changed"})]),
        Watch([1.5], stays_open=False),
    ],
    ids=["unreachable", "forbidden", "silent", "other error line", "closed"],
)
def test_a_broken_watch_goes_on_where_it_stopped_without_a_new_list(how: Any) -> None:
    server = a_server(
        a_page(7, an_object("a", 3)),
        watches=(how, Watch([a_line("ADDED", an_object("b", 8))])),
    )

    run = follow(server)

    assert run.sink.held == {"a": 3, "b": 8}
    assert len(server.lists()) == 1
    assert server.opened()[1].params["resourceVersion"] == "7"


def test_a_refused_watch_is_tried_again_for_as_long_as_it_takes() -> None:
    refusals = [ApiError("forbidden", 403)] * 40
    last = Watch([a_line("ADDED", an_object("b", 8))])
    server = a_server(a_page(7), watches=(*refusals, last))

    run = follow(server, for_seconds=600)

    assert run.sink.held == {"b": 8}
    pauses = [after.at - before.at for before, after in _pairs(server.opened())]
    assert pauses[0] < 0.3
    assert max(pauses) <= 10.0


def _pairs(calls: list[Any]) -> list[tuple[Any, Any]]:
    return list(pairwise(calls))


def test_retry_after_is_the_least_time_that_a_server_is_left_alone() -> None:
    busy = a_refusal(429, "too many requests", headers={"retry-after": "20"})
    server = a_server(busy, busy, a_page(7), watches=(ApiError("busy", 429, 15.0),))

    follow(server, for_seconds=120)

    lists, watches = server.lists(), server.opened()
    assert lists[1].at - lists[0].at == pytest.approx(20)
    assert lists[2].at - lists[1].at == pytest.approx(20)
    assert watches[1].at - watches[0].at == pytest.approx(15)


def test_the_backoff_starts_afresh_after_a_watch_that_lasted() -> None:
    broken = [ApiError("reset")] * 8
    lasting = Watch([30.0, ApiError("reset")])
    server = a_server(a_page(7), watches=(*broken, lasting, Watch([])))

    follow(server, for_seconds=120)

    last, before = server.opened()[-1], server.opened()[-2]
    assert last.at - before.at == pytest.approx(30.15)


def test_short_watches_are_good_ones_when_the_server_ends_them() -> None:
    cut, short = ApiError("cut"), Watch([5.0], stays_open=False)
    server = a_server(a_page(7), watches=(cut, cut, cut, short, cut, Watch([])))

    follow(server, watch_seconds=(4, 7))

    opened = [call.at for call in server.opened()]
    assert server.opened()[0].params["timeoutSeconds"] == "5"
    # 0.2 s doubled twice, and after the short watch that ended well 0.2 s again.
    assert [round(b - a, 2) for a, b in pairwise(opened)] == [0.15, 0.3, 0.6, 5.0, 0.15]


def test_a_watch_ended_by_the_server_after_its_time_opens_again_at_once() -> None:
    server = a_server(a_page(7), watches=(Watch([700.0], stays_open=False), Watch([])))

    run = follow(server, for_seconds=900)

    assert server.opened()[1].at == pytest.approx(700)
    assert run.restarts == []


def test_a_server_behind_our_position_was_restored_and_everything_is_listed_again() -> None:
    server = a_server(
        a_page(50, an_object("lost", 40)),
        a_page(30, an_object("old", 20)),
        watches=(Watch([20.0, ApiError("server went away")]), Watch([])),
        newest=50,
    )

    async def restore() -> None:
        await asyncio.sleep(10)
        server.newest = 30

    run = follow(server, meanwhile=restore)

    assert run.sink.held == {"old": 20}
    assert run.watch.position == 30


def test_every_connect_is_checked_before_its_first_event_counts() -> None:
    says = [a_line("ADDED", an_object("b", 60))]
    server = a_server(a_page(50), watches=(Watch(says), Watch(says)), newest=40)

    run = follow(server, for_seconds=0.05)

    assert "ADDED b 60" not in run.sink.diary
    assert run.watch.position is None


def test_a_lease_older_than_its_renewal_ends_the_prefix_too() -> None:
    verdicts = deque([None, Gone("own Lease is older"), None])

    async def verify() -> None:
        verdict = verdicts.popleft()
        if verdict is not None:
            raise verdict

    server = a_server(
        a_page(7, an_object("a", 3)),
        a_page(9, an_object("b", 8)),
        watches=(Watch([ApiError("reset")]), Watch([]), Watch([])),
    )

    run = follow(server, verify=verify)

    assert run.sink.held == {"b": 8}
    assert not verdicts


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"null",
        a_line("ADDED", {"metadata": {"name": "a"}}),
        a_line("ADDED", {"metadata": {"name": "a", "resourceVersion": "x"}}),
        a_line("RENAMED", an_object("a", 9)),
        a_line("MODIFIED", an_object("a", 7)),
        a_bookmark(6),
    ],
    ids=["cut", "null", "no version", "no number", "unknown type", "not newer", "backwards"],
)
def test_a_line_that_cannot_be_placed_in_order_ends_the_prefix(line: bytes) -> None:
    server = a_server(a_page(7), a_page(10, an_object("a", 9)), watches=(Watch([line]), Watch([])))

    run = follow(server)

    assert run.sink.held == {"a": 9}
    assert run.watch.position == 10


def test_an_unreadable_object_is_handed_on_for_the_sink_to_judge() -> None:
    odd = an_object("odd", 8, spec={"resources": {"cpu": ["?"]}}, status="what")
    server = a_server(
        a_page(7, an_object("listed", 3, status=17)), watches=(Watch([a_line("ADDED", odd)]),)
    )

    run = follow(server)

    assert run.sink.held == {"listed": 3, "odd": 8}
    assert run.restarts == []


def test_a_page_that_cannot_be_split_is_an_error_and_is_asked_for_again() -> None:
    cut = Response(200, b'{"metadata":{"resourceVersion":"7"},"items":[{')
    server = a_server(cut, a_page(7, an_object("a", 3)))

    run = follow(server)

    assert run.sink.held == {"a": 3}
    assert len(run.restarts) == 1


def test_the_age_grows_while_the_server_is_silent() -> None:
    assert follow(a_server(a_page(7)), for_seconds=50).age_seconds == pytest.approx(50)


def test_a_bookmark_makes_it_young_again() -> None:
    server = a_server(a_page(7), watches=(Watch([40.0, a_bookmark(8)]),))

    assert follow(server, for_seconds=50).age_seconds == pytest.approx(10)


def test_a_flood_of_events_lets_others_have_their_turn() -> None:
    turn = 0
    events_in_turn: Counter[int] = Counter()

    class CountingSink(NotingSink):
        @override
        def event(self, kind: str, raw: bytes, version: int) -> None:
            events_in_turn[turn] += 1

    async def main() -> None:
        nonlocal turn
        flood = [a_line("ADDED", an_object(f"r{n}", 8 + n)) for n in range(1_000)]
        server = a_server(a_page(7), watches=(Watch(flood),))
        watch = ListWatch(server, PATH, CountingSink(), rng=lambda: 0.5)
        task = asyncio.create_task(watch.run())
        while watch.position != 1_007:
            turn += 1
            await asyncio.sleep(0)
        task.cancel()

    run_virtual(main)

    assert sum(events_in_turn.values()) == 1_000
    assert max(events_in_turn.values()) <= 50


def test_many_clients_spread_their_lists() -> None:
    server = a_server(a_page(7))

    follow(server, spread_seconds=2.0)

    assert server.lists()[0].at == pytest.approx(1.0)


def test_an_error_of_the_sink_is_not_taken_for_one_of_the_server() -> None:
    class Broken(NotingSink):
        @override
        def complete(self, version: int) -> None:
            raise RuntimeError("a defect")

    watch = ListWatch(a_server(a_page(7)), PATH, Broken(), rng=lambda: 0.5)

    with pytest.raises(RuntimeError, match="a defect"):
        run_virtual(watch.run)


def test_stopping_closes_the_watch() -> None:
    run = follow(a_server(a_page(7), watches=(Watch([]),)))

    assert run.transport.open_watches == 0
