"""Probes are shared, and never older than whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.adapters.scripted import ScriptedTransport, a_page, a_refusal
from typing_extensions import override

from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import Freshness
from cubesched.relay.refusals import Refusal
from cubesched.relay.window import Window


class ByHand(ScriptedTransport):
    """Answers each probe when, and as, the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[Response]] = []

    @override
    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 15.0,
    ) -> Response:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]

    async def asked(self, number: int) -> asyncio.Future[Response]:
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(self.waiting) == number
        return self.waiting[-1]


def a_freshness(transport: Any) -> Freshness:
    return Freshness(transport, "/path", Fanout(Window(most_bytes=1)))


async def test_who_asks_while_a_probe_is_under_way_gets_the_next_one() -> None:
    """The first may have been answered before what the second asker already knows of."""
    server = ByHand()
    freshness = a_freshness(server)
    first = asyncio.create_task(freshness.newest())
    probe = await server.asked(1)
    later = [asyncio.create_task(freshness.newest()) for _ in range(3)]
    assert await server.asked(1) is probe

    probe.set_result(a_page(10))
    assert await first == 10
    (await server.asked(2)).set_result(a_page(12))

    assert await asyncio.gather(*later) == [12, 12, 12]


async def test_one_who_gives_up_takes_nothing_from_the_others() -> None:
    server = ByHand()
    freshness = a_freshness(server)
    hasty, patient = (asyncio.create_task(freshness.newest()) for _ in range(2))
    probe = await server.asked(1)
    hasty.cancel()
    await asyncio.gather(hasty, return_exceptions=True)

    probe.set_result(a_page(10))

    assert await patient == 10


@pytest.mark.parametrize("answer", [a_refusal(429), a_refusal(500), ApiError("cannot reach it")])
async def test_a_probe_that_fails_is_a_refusal_for_now(answer: Response | ApiError) -> None:
    server = ByHand()
    freshness = a_freshness(server)
    asking = asyncio.create_task(freshness.newest())
    probe = await server.asked(1)
    if isinstance(answer, ApiError):
        probe.set_exception(answer)
    else:
        probe.set_result(answer)

    with pytest.raises(Refusal, match="no answer from the API server") as refused:
        await asking
    assert refused.value.code == 503
    again = asyncio.create_task(freshness.newest())
    (await server.asked(2)).set_result(a_page(7))
    assert await again == 7


async def test_a_probe_that_fails_when_nobody_waits_any_more_is_no_error() -> None:
    server = ByHand()
    asking = asyncio.create_task(a_freshness(server).newest())
    probe = await server.asked(1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    probe.set_exception(ApiError("cannot reach it"))
    assert await server.asked(1) is probe
