"""Node metrics through a real Redis: whole reads, hard weather, and back within seconds."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis
from tests.e2e.realredis import RealRedis, a_free_port

from cubesched.adapters.nodemetrics.client import BlockingClient
from cubesched.adapters.nodemetrics.keys import CUBEMASTER_PREFIX, key_of
from cubesched.adapters.nodemetrics.layouts import open_sources
from cubesched.adapters.nodemetrics.packed import PackedReports
from cubesched.adapters.nodemetrics.reader import MetricsReader
from cubesched.adapters.nodemetrics.writer import Field, MetricsWriter
from cubesched.adapters.telemetry.meter import Meter
from cubesched.core.errors import StoreUnavailable, UsageError
from cubesched.fleet.metrics_layout import Decoded, NodeReport, encode

HEALED_WITHIN_SECONDS = 15.0


@dataclass
class Reading:
    """A reader at work: what it handed on last, and what it says of itself."""

    reader: MetricsReader
    meter: Meter
    passes: list[tuple[Decoded, ...]] = field(default_factory=list)

    @property
    def is_up(self) -> bool:
        return b"cubesched_redis_up 1.0" in self.meter.exposition()

    def names(self) -> list[str]:
        return (
            [name for reading in self.passes[-1] for name in reading.names] if self.passes else []
        )


@asynccontextmanager
async def reading(
    url: str,
    *,
    layout: str = "cubesched",
    shards: int = 1,
    nodes: Sequence[str] = (),
    deadline_seconds: float = 2.0,
) -> AsyncIterator[Reading]:
    passes: list[tuple[Decoded, ...]] = []
    meter = Meter()
    sources = open_sources(url, layout, deadline_seconds=deadline_seconds)
    if shards > 1:
        sources = (PackedReports(BlockingClient(url), shards=shards),)
    reader = MetricsReader(
        sources,
        lambda *readings: passes.append(readings),
        meter,
        names=lambda: nodes,
        interval_seconds=0.05,
        deadline_seconds=deadline_seconds,
    )
    task = asyncio.create_task(reader.run())
    try:
        yield Reading(reader, meter, passes)
    finally:
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def writing(url: str, *, shards: int = 1) -> AsyncIterator[MetricsWriter]:
    writer = MetricsWriter(url, shards=shards)
    try:
        yield writer
    finally:
        await writer.close()


def a_report(stamp_ms: int = 1_700_000_000_000) -> bytes:
    return encode(NodeReport(node_uid=str(uuid.uuid4()), stamp_ms=stamp_ms, sandboxes=3))


async def until(holds: Callable[[], bool], *, seconds: float = HEALED_WITHIN_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - the state belongs to servers
            await asyncio.sleep(0.01)


async def test_what_agents_publish_is_read_and_what_they_remove_is_not(
    redis_server: RealRedis,
) -> None:
    async with writing(redis_server.url) as writer, reading(redis_server.url) as seen:
        await writer.publish({"n1": a_report(), "n2": a_report()})
        await until(lambda: sorted(seen.names()) == ["n1", "n2"])
        await writer.remove(["n1"])
        await until(lambda: seen.names() == ["n2"])

        assert seen.is_up
        assert seen.reader.why_down is None


async def test_shards_are_read_together(redis_server: RealRedis) -> None:
    reports = {f"n{number}": a_report() for number in range(40)}
    async with (
        writing(redis_server.url, shards=3) as writer,
        reading(redis_server.url, shards=3) as seen,
    ):
        await writer.publish(reports)
        await until(lambda: sorted(seen.names()) == sorted(reports))


async def test_five_thousand_nodes_are_read_without_holding_the_loop(
    redis_server: RealRedis,
) -> None:
    reports = {f"node-{number:05d}": a_report() for number in range(5_000)}
    held: list[float] = []

    async def watch_the_loop() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            held.append(time.thread_time() - before)

    async with writing(redis_server.url) as writer, reading(redis_server.url) as seen:
        await writer.publish(reports)
        await until(lambda: len(seen.names()) == 5_000)
        already = len(seen.passes)
        watcher = asyncio.create_task(watch_the_loop())
        await until(lambda: len(seen.passes) >= already + 10)
        watcher.cancel()

    # CPU time of this thread, so that a busy machine does not count against us.
    assert max(held) < 0.020


async def test_cubemasters_hashes_are_read_by_the_names_of_known_nodes(
    redis_server: RealRedis,
) -> None:
    client = Redis.from_url(redis_server.url)
    told: dict[Field, Field] = {
        "update_at": "2026-11-30T10:00:00.5+08:00",
        "quota_cpu_usage": "1500",
        "mvm_num": "3",
    }
    await client.hset(f"{CUBEMASTER_PREFIX}n1", mapping=told)
    await client.hset("n2", mapping=told | {"mvm_num": "abc"})
    await client.set(f"{CUBEMASTER_PREFIX}n3", "not a hash")
    await client.hset(f"{CUBEMASTER_PREFIX}unknown", mapping=told)
    async with reading(
        redis_server.url, layout="cubemaster", nodes=["n1", "n2", "n3", "n4"]
    ) as seen:
        await until(lambda: seen.names() == ["n1", "n2"])

        table = seen.passes[-1][0].table
        assert table["allocated_cpu_millis"].tolist() == [1500, 1500]
        assert table["sandboxes"].tolist() == [3, -1]
        metrics = seen.meter.exposition().decode()
        assert 'cubesched_node_reports_unusable{problem="type"} 1.0' in metrics
        assert 'cubesched_node_reports_unusable{problem="number"} 1.0' in metrics

        await client.hset("n1", mapping=told | {"mvm_num": "9"})
        await client.delete(f"{CUBEMASTER_PREFIX}n1")
        await until(lambda: seen.passes[-1][0].table["sandboxes"].tolist() == [9, -1])
    await client.aclose()


async def test_both_layouts_are_read_ours_first(redis_server: RealRedis) -> None:
    client = Redis.from_url(redis_server.url)
    await client.hset(f"{CUBEMASTER_PREFIX}n2", mapping={"update_at": "1800000000"})
    async with (
        writing(redis_server.url) as writer,
        reading(redis_server.url, layout="both", nodes=["n1", "n2"]) as seen,
    ):
        await writer.publish({"n1": a_report()})
        await until(lambda: [r.names for r in (seen.passes or [()])[-1]] == [["n1"], ["n2"]])
    await client.aclose()


async def test_a_right_that_lacks_is_an_outage_and_not_an_empty_fleet(
    redis_server: RealRedis,
) -> None:
    client = Redis.from_url(redis_server.url)
    await client.acl_setuser("reader", enabled=True, nopass=True, commands=["+hgetall"], keys=["*"])
    url = redis_server.url.replace("redis://", "redis://reader:any@")
    async with reading(url, layout="cubemaster", nodes=["n1"]) as seen:
        await until(lambda: "no permissions" in str(seen.reader.why_down))
        assert seen.passes == []
    await client.aclose()


async def test_garbage_hides_its_own_node_only_and_is_counted(redis_server: RealRedis) -> None:
    async with writing(redis_server.url) as writer, reading(redis_server.url) as seen:
        await writer.publish({"good": a_report(), "bad": b"NaN", "old": a_report(stamp_ms=-1)})
        await until(lambda: seen.names() == ["good"])

        metrics = seen.meter.exposition().decode()
        assert 'cubesched_node_reports_unusable{problem="version"} 1.0' in metrics
        assert 'cubesched_node_reports_unusable{problem="stamp"} 1.0' in metrics
        await writer.remove(["bad", "old"])
        await until(lambda: b"node_reports_unusable{" not in seen.meter.exposition())


async def test_a_killed_redis_is_noticed_and_found_again(redis_server: RealRedis) -> None:
    async with writing(redis_server.url) as writer, reading(redis_server.url) as seen:
        await writer.publish({"n1": a_report()})
        await until(lambda: seen.names() == ["n1"])

        redis_server.kill()
        await until(lambda: not seen.is_up)
        passes = len(seen.passes)
        with pytest.raises(StoreUnavailable):
            await writer.publish({"n1": a_report()})
        assert seen.reader.why_down
        assert len(seen.passes) == passes

        redis_server.start()
        await writer.publish({"n2": a_report()})
        await until(lambda: seen.names() == ["n2"])


async def test_a_redis_that_accepts_and_never_answers_is_given_up_in_time(
    redis_server: RealRedis,
) -> None:
    assert redis_server.process is not None
    async with reading(redis_server.url, deadline_seconds=0.3) as seen:
        await until(lambda: seen.is_up)
        redis_server.process.send_signal(19)
        began = time.monotonic()
        await until(lambda: not seen.is_up)
        assert time.monotonic() - began < 5
        assert "did not answer within 0.3 s" in str(seen.reader.why_down)

        redis_server.process.send_signal(18)
        await until(lambda: seen.is_up)


async def test_a_key_of_the_wrong_type_is_an_outage_and_not_an_empty_fleet(
    redis_server: RealRedis,
) -> None:
    client = Redis.from_url(redis_server.url)
    await client.set(key_of(0), "not a hash")
    async with reading(redis_server.url) as seen:
        await until(lambda: "WRONGTYPE" in str(seen.reader.why_down))
        assert seen.passes == []

        await client.delete(key_of(0))
        await until(lambda: seen.is_up)
    await client.aclose()


async def test_a_writer_meets_a_read_only_server_and_gets_through_later(
    redis_server: RealRedis,
) -> None:
    client = Redis.from_url(redis_server.url)
    async with writing(redis_server.url) as writer:
        await client.replicaof("127.0.0.1", str(a_free_port()))
        with pytest.raises(StoreUnavailable, match="read only"):
            await writer.publish({"n1": a_report()})

        await client.replicaof("NO", "ONE")
        await writer.publish({"n1": a_report()})
        assert await client.hexists(key_of(0), "n1")
    await client.aclose()


async def test_a_server_that_is_still_loading_is_waited_for() -> None:
    async def loading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(1_024):
                writer.write(b"-LOADING Redis is loading the dataset in memory\r\n")
                await writer.drain()
        writer.close()

    listener = await asyncio.start_server(loading, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with reading(f"redis://127.0.0.1:{port}/0") as seen:
        await until(lambda: "loading" in str(seen.reader.why_down))
        assert not seen.is_up
    listener.close()


def test_a_url_that_is_none_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="Redis URL 'localhost'"):
        MetricsWriter("localhost")
