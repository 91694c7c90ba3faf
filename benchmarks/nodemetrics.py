"""Time one pass over all nodes' reports: `python benchmarks/nodemetrics.py`, on a real Redis.

For each layout and size of fleet one JSON object a line. read_ms: from the first byte sent to the
decoded reports, in a thread; take_ms: what the event loop pays for taking them over, and
take_cpu_ms without what others took of the machine meanwhile; stall_ms: how long a callback of the
loop had to wait for its turn while passes went on, and quiet_stall_max_ms the same with no pass, on
this machine as it is; cpu_ms: what a pass costs this process in all. Medians but for the stalls.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

import uvloop  # noqa: E402
from redis import Redis  # noqa: E402
from tests.unit.fleet.objects import a_node_object  # noqa: E402

from cubesched.adapters.nodemetrics.keys import CUBEMASTER_PREFIX, key_of  # noqa: E402
from cubesched.adapters.nodemetrics.layouts import open_sources  # noqa: E402
from cubesched.fleet.fleet import Fleet  # noqa: E402
from cubesched.fleet.metrics_layout import NodeReport, encode  # noqa: E402
from cubesched.local.binaries import find_redis_server  # noqa: E402
from cubesched.settings import NODE_METRICS_LAYOUTS  # noqa: E402

SIZES = (100, 500, 1_000, 2_000, 5_000)
QUIET_SECONDS = 1.0
TARGET_TAKE_MS, TARGET_STALL_MS = 10.0, 20.0


@contextmanager
def a_redis() -> Iterator[str]:
    """Run a redis-server on a free port; yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_redis_server()), "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()
            server.wait()


def a_fleet(uids: dict[str, str]) -> Fleet:
    """Return a fleet that knows these nodes, and that there are no requests."""
    fleet = Fleet(monotonic=time.monotonic, wall=time.time)
    fleet.reset()
    for name, uid in uids.items():
        fleet.seen(a_node_object(name, uid=uid))
    fleet.complete(1)
    fleet.ledger.reset()
    fleet.ledger.complete(1)
    return fleet


def publish(redis: Redis, uids: dict[str, str]) -> None:
    """Write every node's report in both layouts."""
    stamp_ms = int(time.time() * 1000)
    pipeline = redis.pipeline(transaction=False)
    pipeline.flushdb()
    for name, uid in uids.items():
        report = NodeReport(
            node_uid=uid, stamp_ms=stamp_ms, sandboxes=12, creating=1, cpu_util_percent=12.5,
            cpu_load=3.25, memory_used_bytes=10 << 30, data_disk_percent=33.0,
            storage_disk_percent=12.0, system_disk_percent=45.0, foreign_cpu_millis=0,
            foreign_memory_bytes=0, foreign_disk_bytes=0,
        )  # fmt: skip
        pipeline.hset(key_of(0), name, encode(report))
        pipeline.hset(
            f"{CUBEMASTER_PREFIX}{name}",
            mapping={
                "ins_id": name, "update_at": "2026-11-30T10:00:00.123456789+08:00",
                "quota_cpu_usage": "12000", "quota_mem_mb_usage": "20480", "cpu_util": "12.5",
                "cpu_load_usage": "3.25", "mem_load_mb_usage": "10240",
                "data_disk_usage_per": "33", "storage_disk_usage_per": "12",
                "sys_disk_usage_per": "45", "mvm_num": "12", "realtime_create_num": "1",
            },
        )  # fmt: skip
    pipeline.execute()


class Waiting:
    """Measures how long a callback of the loop has to wait for its turn."""

    def __init__(self) -> None:
        self.waits_ms: list[float] = []

    async def run(self) -> None:
        """Ask for a turn every millisecond."""
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(0.001)
            self.waits_ms.append((time.perf_counter() - asked) * 1000 - 1.0)


async def measured(url: str, layout: str, fleet: Fleet, passes: int) -> dict[str, object]:
    """Return one line: `passes` passes over the whole fleet, after two that do not count."""
    sources, names = open_sources(url, layout), fleet.columns.names
    read_ms, take_ms, take_cpu_ms, cpu_ms = [], [], [], []
    waiting = Waiting()
    ticker = asyncio.create_task(waiting.run())
    await asyncio.sleep(QUIET_SECONDS)
    quiet_ms = max(waiting.waits_ms)
    for number in range(passes + 2):
        if number == 2:
            waiting.waits_ms.clear()
        cpu, begun = time.process_time(), time.perf_counter()
        readings = await asyncio.to_thread(lambda: [source.read(names) for source in sources])
        read, read_cpu = time.perf_counter(), time.thread_time()
        fleet.take_reports(*readings)
        taken = time.perf_counter()
        if number >= 2:
            read_ms.append((read - begun) * 1000)
            take_ms.append((taken - read) * 1000)
            take_cpu_ms.append((time.thread_time() - read_cpu) * 1000)
            cpu_ms.append((time.process_time() - cpu) * 1000)
        assert sum(len(reading.names) for reading in readings) >= len(names)
        await asyncio.sleep(0.02)
    ticker.cancel()
    for source in sources:
        source.close()
    return {
        "layout": layout,
        "nodes": len(names),
        "read_ms": round(statistics.median(read_ms), 2),
        "take_ms": round(statistics.median(take_ms), 2),
        "take_cpu_ms": round(statistics.median(take_cpu_ms), 2),
        "cpu_ms": round(statistics.median(cpu_ms), 2),
        "stall_p99_ms": round(statistics.quantiles(waiting.waits_ms, n=100)[98], 2),
        "stall_max_ms": round(max(waiting.waits_ms), 2),
        "quiet_stall_max_ms": round(quiet_ms, 2),
        "target_take_ms": TARGET_TAKE_MS,
        "target_stall_ms": TARGET_STALL_MS,
    }


def main() -> None:
    """Print every line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--passes", type=int, default=20, help="for each line; default: 20")
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, help="sizes of the fleet")
    args = parser.parse_args()
    with a_redis() as url:
        redis = Redis.from_url(url)
        for size in args.nodes:
            uids = {f"node-{number:05}": str(uuid.uuid4()) for number in range(size)}
            publish(redis, uids)
            for layout in NODE_METRICS_LAYOUTS:
                fleet = a_fleet(uids)
                gc.collect()
                gc.freeze()
                line = uvloop.run(measured(url, layout, fleet, args.passes))
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
