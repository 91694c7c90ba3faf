"""Every error of the client is one of ours, also while connections are dropped."""

from __future__ import annotations

import pytest
from redis.exceptions import TimeoutError as RedisTimeout

from cubesched.adapters.nodemetrics.client import drop_connections, open_redis
from cubesched.adapters.nodemetrics.writer import MetricsWriter
from cubesched.core.errors import StoreUnavailable

NOBODY = "redis://127.0.0.1:1/0"


class Stuck:
    """A pool whose connections cannot be closed in time."""

    def __init__(self) -> None:
        self.asked = 0

    async def disconnect(self) -> None:
        """Fail as the client does when the machine has no time for it."""
        self.asked += 1
        raise RedisTimeout("Timed out closing connection after 2.0")


async def test_connections_that_do_not_close_are_let_go() -> None:
    redis, pool = open_redis(NOBODY), Stuck()
    redis.connection_pool = pool  # type: ignore[assignment]

    await drop_connections(redis)

    assert pool.asked == 1


async def test_a_report_that_fails_says_so_however_its_connection_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = MetricsWriter(NOBODY)
    monkeypatch.setattr(writer._redis.connection_pool, "disconnect", Stuck().disconnect)

    with pytest.raises(StoreUnavailable, match="Redis"):
        await writer.publish({"node-1": b"report"})
