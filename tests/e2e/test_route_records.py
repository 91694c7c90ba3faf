"""Routing records on a real Redis: written, removed, and made good after anything."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import pytest
from redis.asyncio import Redis
from tests.e2e.realredis import RealRedis
from tests.unit.fleet.objects import a_node_object, a_request_object

from cubesched.adapters.routes import publisher
from cubesched.adapters.routes.publisher import KEY, RoutePublisher
from cubesched.fleet.fleet import Fleet
from cubesched.scheduling.routing import Routing

HEALED_WITHIN_SECONDS = 15.0
LONGEST_STALL_SECONDS = 0.02


@dataclass
class Records:
    """What should stand; every name is this replica's but those that begin with `other`."""

    wanted: dict[str, bytes] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    must_compare: bool = True
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_known: bool = True

    def put(self, name: str, record: bytes | None) -> None:
        if record is None:
            del self.wanted[name]
        else:
            self.wanted[name] = record
        self.changed.add(name)
        self.woken.set()

    def take_changed(self, most: int) -> list[str]:
        return [self.changed.pop() for _ in range(min(most, len(self.changed)))]

    def decides(self, sandbox: str) -> bool:
        return not sandbox.startswith("other")

    def record(self, sandbox: str) -> bytes | None:
        return self.wanted.get(sandbox)

    def sandboxes(self, at_once: int) -> Iterator[list[str]]:
        names = list(self.wanted)
        for first in range(0, len(names), at_once):
            yield names[first : first + at_once]


@asynccontextmanager
async def publishing(url: str, records: publisher.Source) -> AsyncIterator[None]:
    task = asyncio.create_task(RoutePublisher(url, records, rng=lambda: 0.5).run())
    try:
        yield
    finally:
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def stored(url: str) -> Mapping[bytes, bytes]:
    async with Redis.from_url(url) as redis:
        return cast("Mapping[bytes, bytes]", await redis.hgetall(KEY))


async def until_stored(
    url: str, wanted: Mapping[bytes, bytes], *, seconds: float = HEALED_WITHIN_SECONDS
) -> None:
    async with asyncio.timeout(seconds):
        while await stored(url) != wanted:  # noqa: ASYNC110 - the state belongs to a server
            await asyncio.sleep(0.02)


async def test_a_record_is_written_and_removed_at_once(redis_server: RealRedis) -> None:
    records = Records()
    async with publishing(redis_server.url, records):
        records.put("a", b"1")
        await until_stored(redis_server.url, {b"a": b"1"}, seconds=2)
        records.put("a", b"2")
        records.put("b", b"3")
        await until_stored(redis_server.url, {b"a": b"2", b"b": b"3"}, seconds=2)
        records.put("a", None)
        await until_stored(redis_server.url, {b"b": b"3"}, seconds=2)


async def test_what_is_missing_wrong_or_stale_at_the_start_is_made_good(
    redis_server: RealRedis,
) -> None:
    async with Redis.from_url(redis_server.url) as redis:
        found = {"right": b"1", "wrong": b"?", "stale": b"2", "other": b"3", b"\xff\x00": b"4"}
        await redis.hset(KEY, mapping=found)  # type: ignore[arg-type]
    records = Records({"right": b"1", "wrong": b"5", "missing": b"6"})

    async with publishing(redis_server.url, records):
        wanted = {b"right": b"1", b"wrong": b"5", b"missing": b"6", b"other": b"3"}
        await until_stored(redis_server.url, {**wanted, b"\xff\x00": b"4"}, seconds=5)


async def test_nothing_is_called_stale_while_the_requests_are_not_known(
    redis_server: RealRedis,
) -> None:
    async with Redis.from_url(redis_server.url) as redis:
        await redis.hset(KEY, "standing", b"1")
    records = Records(is_known=False)

    async with publishing(redis_server.url, records):
        await asyncio.sleep(0.5)
        assert await stored(redis_server.url) == {b"standing": b"1"}
        records.is_known = True
        records.woken.set()
        await until_stored(redis_server.url, {}, seconds=10)


async def test_what_changes_during_an_outage_is_written_after_it(redis_server: RealRedis) -> None:
    records = Records({"a": b"1", "b": b"1"})
    async with publishing(redis_server.url, records):
        await until_stored(redis_server.url, {b"a": b"1", b"b": b"1"})
        redis_server.kill()
        records.put("c", b"2")
        records.put("a", None)
        await asyncio.sleep(1.0)
        redis_server.start()

        await until_stored(redis_server.url, {b"b": b"1", b"c": b"2"})
        assert not records.changed


async def test_a_redis_that_lost_everything_unnoticed_is_filled_again(
    redis_server: RealRedis,
) -> None:
    records = Records({"a": b"1"})
    async with publishing(redis_server.url, records):
        await until_stored(redis_server.url, {b"a": b"1"})
        redis_server.kill()
        redis_server.start()  # faster than anybody looks

        await until_stored(redis_server.url, {b"a": b"1"})


async def test_it_ends_when_it_is_told_to_at_any_moment(redis_server: RealRedis) -> None:
    records = Records({f"a{number}": b"1" * 300 for number in range(2_000)})
    for step in range(100):
        records.must_compare = True
        async with publishing(redis_server.url, records):
            await asyncio.sleep(0.0005 * (step % 20))


async def test_a_redis_that_may_not_be_asked_who_it_is_still_gets_the_records(
    redis_server: RealRedis,
) -> None:
    async with Redis.from_url(redis_server.url) as redis:
        await redis.execute_command(  # type: ignore[no-untyped-call]
            "ACL", "SETUSER", "routes", "on", ">secret", "~cubesched:*",
            "+hset", "+hdel", "+hscan", "+hgetall", "+client",
        )  # fmt: skip
    url = redis_server.url.replace("redis://", "redis://routes:secret@")

    async with publishing(url, Records({"a": b"1"})):
        await until_stored(redis_server.url, {b"a": b"1"}, seconds=5)


def a_fleet(requests: int) -> Fleet:
    """Return a fleet of 50 nodes that runs this many sandboxes."""
    loop = asyncio.get_running_loop()
    fleet = Fleet(monotonic=loop.time, wall=loop.time)
    fleet.reset()
    for number in range(50):
        addresses = [("InternalIP", f"10.0.0.{number}")]
        fleet.seen(a_node_object(f"n{number}", cpu="1k", memory="1Ti", addresses=addresses))
    fleet.complete(1)
    fleet.ledger.reset()
    for number in range(requests):
        reservation = {"id": uuid.uuid4().hex, "nodeUID": f"uid-n{number % 50}"}
        fleet.ledger.seen(
            a_request_object(
                f"r{number}",
                uid=str(uuid.uuid4()),
                phase="Running",
                node=f"n{number % 50}",
                reservation=reservation,
                endpoint=f"10.0.0.{number % 50}:{20000 + number}",
            )
        )
    fleet.ledger.complete(requests + 2)
    return fleet


async def longest_stall(*, seconds: float) -> float:
    """Return the most of this thread's own time that passed between two turns of the loop."""
    loop, longest = asyncio.get_running_loop(), 0.0
    until = loop.time() + seconds
    while loop.time() < until:
        before = time.thread_time()
        await asyncio.sleep(0.001)
        longest = max(longest, time.thread_time() - before)
    return longest


@pytest.mark.parametrize("stands", ["nothing", "all of it", "all of it, wrong", "as much, stale"])
async def test_five_thousand_records_are_compared_without_a_stall(
    redis_server: RealRedis, stands: str
) -> None:
    fleet = a_fleet(5_000)
    routing = Routing(fleet, lambda _: True, members=lambda: ("a",))
    wanted = {name: routing.record(name) for some in routing.sandboxes(1_000) for name in some}
    assert len(wanted) == 5_000
    async with Redis.from_url(redis_server.url) as redis:
        before = {
            "nothing": {},
            "all of it": wanted,
            "all of it, wrong": dict.fromkeys(wanted, b"?"),
            "as much, stale": {f"sbr-{uuid.uuid4()}.x": b"?" for _ in wanted},
        }[stands]
        if before:
            await redis.hset(KEY, mapping=before)  # type: ignore[arg-type]

        async with publishing(redis_server.url, routing):
            stall = await longest_stall(seconds=1.5)
            wanted_now = {name.encode(): record for name, record in wanted.items() if record}
            await until_stored(redis_server.url, wanted_now)
    print(f"\n  {stands}: longest stall {stall * 1000:.1f} ms", end="")  # noqa: T201 - the result
    assert stall < LONGEST_STALL_SECONDS
