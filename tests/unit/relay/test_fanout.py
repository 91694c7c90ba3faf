"""The fan-out against a model: what each agent sees is a filter of the truth, at every version."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from random import Random

import pytest
from tests.unit.relay.truth import NODES, Client, Truth, stored

from cubesched.relay.fanout import MOST_WATCHES_PER_NODE, Fanout
from cubesched.relay.refusals import Refusal
from cubesched.relay.watches import MOST_PENDING_BYTES, Watch
from cubesched.relay.window import Window


def a_fanout(*objects: bytes, version: int = 10, most_bytes: int = 1 << 20) -> Fanout:
    fanout = Fanout(Window(most_bytes=most_bytes))
    fanout.reset()
    for raw in objects:
        fanout.seen(raw)
    fanout.complete(version)
    return fanout


def names_on(fanout: Fanout, node: str) -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(fanout.list_of(node))["items"]]


async def said(watch: Watch) -> list[tuple[str, str, int]]:
    """Return kind, name and version of all lines."""
    lines = (await watch.take(wait_seconds=0)).splitlines()
    events = [json.loads(line) for line in lines]
    return [
        (
            event["type"],
            event["object"]["metadata"].get("name", ""),
            int(event["object"]["metadata"].get("resourceVersion", 0)),
        )
        for event in events
    ]


def test_a_list_holds_the_nodes_requests_in_the_order_of_their_names() -> None:
    fanout = a_fanout(stored("b", "n1"), stored("c", "n2"), stored("a", "n1"), stored("d"))

    assert names_on(fanout, "n1") == ["a", "b"]
    assert names_on(fanout, "n3") == []
    assert len(fanout) == 3


async def test_entering_is_added_staying_modified_leaving_deleted() -> None:
    fanout = a_fanout(stored("q", version=5))
    first = fanout.open("n1", 10, wants_bookmarks=False)
    second = fanout.open("n2", 10, wants_bookmarks=False)

    fanout.event("MODIFIED", stored("q", "n1", version=11), 11)
    fanout.event("MODIFIED", stored("q", "n1", version=12), 12)
    fanout.event("MODIFIED", stored("q", "n2", version=13), 13)
    fanout.event("MODIFIED", stored("q", version=14), 14)

    assert await said(first) == [("ADDED", "q", 11), ("MODIFIED", "q", 12), ("DELETED", "q", 13)]
    assert await said(second) == [("ADDED", "q", 13), ("DELETED", "q", 14)]


async def test_what_leaves_is_shown_as_it_was_at_the_version_it_left() -> None:
    fanout = a_fanout(stored("q", "n1", version=7, labels={"as": "before"}))
    watch = fanout.open("n1", 10, wants_bookmarks=False)

    fanout.event("MODIFIED", stored("q", "n2", version=11, labels={"as": "after"}), 11)

    line = json.loads(await watch.take(wait_seconds=0))
    assert line["object"]["status"]["nodeName"] == "n1"
    assert line["object"]["metadata"]["labels"] == {"as": "before"}
    assert line["object"]["metadata"]["resourceVersion"] == "11"
    assert line["object"]["metadata"]["annotations"] == {"resourceVersion": "1"}


async def test_a_deleted_request_is_passed_on_as_the_server_shows_it() -> None:
    fanout = a_fanout(stored("q", "n1", version=7))
    watch = fanout.open("n1", 10, wants_bookmarks=False)
    raw = stored("q", "n1", version=11)

    fanout.event("DELETED", raw, 11)

    assert raw in await watch.take(wait_seconds=0)
    assert names_on(fanout, "n1") == []


@pytest.mark.parametrize("seed", range(60))
async def test_every_agents_view_is_a_filter_of_the_truth_at_every_version(seed: int) -> None:
    """Agents that open anywhere, break off, come back late, list again: none sees a wrong state."""
    rng = Random(seed)
    truth = Truth(rng)
    for _ in range(rng.randrange(20)):
        truth.change()
    fanout = Fanout(Window(most_bytes=rng.choice((2_000, 20_000, 1 << 20))))
    truth.tell_list(fanout)
    agents = [Agent(fanout, truth, node) for node in (*NODES, *NODES)]
    applied = truth.store.revision
    met: Counter[str] = Counter()
    for _ in range(150):
        draw = rng.random()
        if draw < 0.6:
            truth.change()
        elif draw < 0.65:
            fanout.progress(applied)
        elif draw < 0.67:
            truth.tell_list(fanout)
            applied = truth.store.revision
        for change in truth.store.since(applied)[: rng.randrange(3)]:
            truth.tell(fanout, change)
            applied = change.revision
        met += await rng.choice(agents).step(rng)
    for agent in agents:
        met += await agent.catch_up()
        assert agent.client.view == truth.view(agent.client.node, applied)
    assert not {"ADDED", "DELETED", "BOOKMARK", "list"} - met.keys()


class Agent:
    """One agent on the fan-out; every line it takes is held against the truth."""

    def __init__(self, fanout: Fanout, truth: Truth, node: str) -> None:
        self.fanout, self.truth = fanout, truth
        self.client = Client(node)
        self.watch: Watch | None = None
        self.has_list = False

    async def step(self, rng: Random) -> Counter[str]:
        draw = rng.random()
        if self.watch is not None and draw < 0.1:
            self.fanout.close(self.watch)  # the connection broke; what was queued is lost
            self.watch = None
        elif self.watch is not None and draw < 0.2:
            self.fanout.remind(self.watch)
        elif draw < 0.7:
            return await self.catch_up()
        return Counter()

    async def catch_up(self) -> Counter[str]:
        met: Counter[str] = Counter()
        while self.watch is None:
            met += self._open()
        lines = (await self.watch.take(wait_seconds=0)).splitlines()
        for line in lines:
            kind = self.client.take_line(line)["type"]
            met[kind] += 1
            if kind == "ERROR":
                self.watch, self.has_list = None, False
                return met + await self.catch_up()
            self._check()
        return met

    def _open(self) -> Counter[str]:
        client = self.client
        if not self.has_list:
            client.take_list(self.fanout.list_of(client.node))
            self.has_list = True
            self._check()
            return Counter(list=1)
        if client.version < self.fanout.window.floor:
            with pytest.raises(Refusal, match="too old"):
                self.fanout.open(client.node, client.version, wants_bookmarks=True)
            self.has_list = False
            return Counter(expired=1)
        self.watch = self.fanout.open(client.node, client.version, wants_bookmarks=True)
        return Counter(opened=1)

    def _check(self) -> None:
        assert self.client.view == self.truth.view(self.client.node, self.client.version)


# Where a watch may begin


def test_a_watch_from_before_what_is_remembered_is_expired() -> None:
    fanout = a_fanout(version=10)

    with pytest.raises(Refusal, match="too old resource version: 9 \\(10\\)") as refused:
        fanout.open("n1", 9, wants_bookmarks=True)

    assert refused.value.code == 410
    assert fanout.number_of_watches == 0


def test_a_full_window_expires_only_those_who_would_miss_something() -> None:
    fanout = a_fanout(version=10, most_bytes=1)
    fanout.event("ADDED", stored("q", "n1", version=11), 11)

    with pytest.raises(Refusal, match="too old"):
        fanout.open("n1", 10, wants_bookmarks=True)
    fanout.open("n1", 11, wants_bookmarks=True)


def test_a_watch_from_the_future_is_refused_and_never_silent() -> None:
    fanout = a_fanout(version=10)

    with pytest.raises(Refusal, match="Too large resource version: 11, current: 10") as refused:
        fanout.open("n1", 11, wants_bookmarks=True)

    assert refused.value.code == 504


async def test_a_watch_begins_with_what_came_since() -> None:
    fanout = a_fanout(version=10)
    for version in (11, 12, 13):
        fanout.event("MODIFIED", stored("q", "n1", version=version), version)

    watch = fanout.open("n1", 11, wants_bookmarks=False)

    assert await said(watch) == [("MODIFIED", "q", 12), ("MODIFIED", "q", 13)]


def test_one_node_cannot_take_all_watches() -> None:
    fanout = a_fanout()
    watches = [fanout.open("n1", 10, wants_bookmarks=True) for _ in range(MOST_WATCHES_PER_NODE)]

    with pytest.raises(Refusal) as refused:
        fanout.open("n1", 10, wants_bookmarks=True)

    assert refused.value.code == 429
    fanout.close(watches[0])
    fanout.open("n1", 10, wants_bookmarks=True)
    fanout.open("n2", 10, wants_bookmarks=True)


# Where a prefix ends


async def test_the_end_of_the_prefix_is_told_to_all_and_nothing_is_answered_until_the_next() -> (
    None
):
    fanout = a_fanout(stored("q", "n1"), version=10)
    watches = [fanout.open(node, 10, wants_bookmarks=True) for node in ("n1", "n2")]

    fanout.reset()

    for watch in watches:
        (line,) = (await watch.take(wait_seconds=0)).splitlines()
        assert json.loads(line)["object"]["code"] == 410
        assert watch.is_over
    assert fanout.applied is None
    assert fanout.number_of_watches == 0
    with pytest.raises(Refusal, match="current: none"):
        fanout.open("n1", 10, wants_bookmarks=True)


def test_a_restored_server_starts_over_at_its_lower_version() -> None:
    fanout = a_fanout(stored("gone", "n1", version=95), version=100)
    fanout.reset()
    fanout.seen(stored("back", "n1", version=40))
    fanout.complete(50)

    assert names_on(fanout, "n1") == ["back"]
    with pytest.raises(Refusal) as refused:
        fanout.open("n1", 100, wants_bookmarks=True)
    assert refused.value.code == 504
    with pytest.raises(Refusal) as refused:
        fanout.open("n1", 49, wants_bookmarks=True)
    assert refused.value.code == 410


def test_a_list_that_breaks_off_leaves_nothing_behind() -> None:
    fanout = a_fanout(version=10)
    fanout.reset()
    fanout.seen(stored("half", "n1"))
    fanout.reset()
    fanout.complete(20)

    assert names_on(fanout, "n1") == []


# Slow agents, bookmarks


async def test_a_slow_agent_is_cut_off_and_comes_back_without_a_gap() -> None:
    lost = []
    fanout = Fanout(Window(most_bytes=1 << 30), lost=lambda: lost.append(1))
    fanout.reset()
    fanout.complete(10)
    watch = fanout.open("n1", 10, wants_bookmarks=True)
    padding = {"pad": "x" * (MOST_PENDING_BYTES // 4)}
    for version in range(11, 17):
        fanout.event("MODIFIED", stored("q", "n1", version=version, labels=padding), version)

    assert watch.is_too_slow
    assert await watch.take(wait_seconds=0) == b""
    assert lost == [1]
    again = fanout.open("n1", 10, wants_bookmarks=True)
    assert [version for _, _, version in await said(again)] == list(range(11, 17))


async def test_bookmarks_come_only_when_the_server_was_heard() -> None:
    fanout = a_fanout(version=10)
    watch = fanout.open("n1", 10, wants_bookmarks=True)

    fanout.remind(watch)
    assert await said(watch) == [("BOOKMARK", "", 10)]
    fanout.remind(watch)
    assert await said(watch) == []
    fanout.progress(10)
    fanout.remind(watch)
    assert await said(watch) == [("BOOKMARK", "", 10)]
    fanout.event("ADDED", stored("q", "n2", version=15), 15)
    fanout.remind(watch)
    assert await said(watch) == [("BOOKMARK", "", 15)]


async def test_who_did_not_ask_for_bookmarks_gets_none() -> None:
    fanout = a_fanout()
    watch = fanout.open("n1", 10, wants_bookmarks=False)

    fanout.remind(watch)

    assert await said(watch) == []


async def test_a_watch_whose_time_is_up_ends_with_a_bookmark_and_says_nothing_later() -> None:
    fanout = a_fanout(version=10)
    watch = fanout.open("n1", 10, wants_bookmarks=True)
    fanout.finish(watch)
    fanout.event("ADDED", stored("q", "n1", version=11), 11)
    fanout.finish(watch)

    assert await said(watch) == [("BOOKMARK", "", 10)]
    assert watch.is_over


async def test_a_version_is_waited_for() -> None:
    fanout = a_fanout(version=10)
    waiting = asyncio.create_task(fanout.reached(12))
    for version in (11, 12):
        await asyncio.sleep(0)
        assert not waiting.done()
        fanout.progress(version)

    async with asyncio.timeout(1):
        await waiting
