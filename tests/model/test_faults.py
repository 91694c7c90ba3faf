"""Each fault does to a client what its name says, and a seed repeats it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest
from tests.model.apiserver import ApiServer
from tests.model.faults import Faults
from tests.model.http import Http, a_request, placed, version_of
from tests.model.test_apiserver import on_a_server
from tests.model.virtualtime import run_virtual

from cubesched.core.errors import ApiError, OutcomeUnknown


@pytest.mark.parametrize(
    ("faults", "code", "has_landed"),
    [
        (Faults(too_many=1), 429, False),
        (Faults(error=1), 500, False),
        (Faults(error_after=1), 500, True),
        (Faults(resent=1), 409, True),
    ],
    ids=["429", "500", "500 after commit", "sent twice"],
)
def test_a_fault_answers(faults: Faults, code: int, has_landed: bool) -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        server.faults = faults
        status, _ = await http.put_status(created, placed("Reserved"))
        server.faults = Faults()
        _, stored = await http.get("q")
        assert status == code
        assert ("nodeName" in stored["status"]) == has_landed

    on_a_server(test)


@pytest.mark.parametrize(
    ("faults", "at_once", "at_last"),
    [
        (Faults(resent_noticed=1), True, True),
        (Faults(lost=1), False, False),
        (Faults(lost_after=1), True, True),
        (Faults(silent=1), False, False),
        (Faults(silent_after=1), True, True),
        (replace(Faults(late=1), late_seconds=60), False, True),
    ],
    ids=[
        "sent twice",
        "reset before",
        "reset after",
        "timeout before",
        "timeout after",
        "lands later",
    ],
)
def test_a_fault_leaves_the_outcome_unknown(faults: Faults, at_once: bool, at_last: bool) -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        server.faults = faults
        with pytest.raises(OutcomeUnknown):
            await http.put_status(created, placed("Reserved"))
        server.faults = Faults()
        _, now = await http.get("q")
        await asyncio.sleep(600)
        _, later = await http.get("q")
        assert ("nodeName" in now["status"], "nodeName" in later["status"]) == (at_once, at_last)

    on_a_server(test)


def test_a_refused_connection_sent_nothing() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        server.faults = Faults(unreachable=1)
        with pytest.raises(ApiError) as refused:
            await http.create(a_request("q"))
        assert not isinstance(refused.value, OutcomeUnknown)
        assert refused.value.status == 0

    on_a_server(test)


@pytest.mark.parametrize("lands", [0.0, 1.0])
def test_a_write_of_a_dead_client_lands_or_is_lost(lands: float) -> None:
    async def test(server: ApiServer, http: Http) -> None:
        client = server.client("mortal")
        sending = asyncio.ensure_future(Http(client).create(a_request("q")))
        await asyncio.sleep(0.001)
        client.sever(lands=lands)
        sending.cancel()
        await asyncio.sleep(60)
        code, _ = await http.get("q")
        assert code == (200 if lands else 404)
        with pytest.raises(ApiError):
            await Http(client).get("q")

    on_a_server(test, faults=Faults(latency_seconds=1.0))


def test_a_breaking_watch_loses_and_repeats_nothing_when_reopened() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, page = await http.list()
        position = version_of(page)
        told: list[str] = []

        async def follow() -> None:
            nonlocal position
            while len(told) < 60:
                try:
                    async with http.watch(resourceVersion=position) as events:
                        while len(told) < 60:
                            told.append((await events.take(1))[0][1])
                            position = str(server.store.first + len(told))
                except (ApiError, StopAsyncIteration, AssertionError):
                    continue

        following = asyncio.ensure_future(follow())
        for number in range(60):
            await http.create(a_request(f"q-{number:02}"))
        await following
        assert told == [f"q-{number:02}" for number in range(60)]
        assert server.fired["watch_reset"] > 3

    on_a_server(test, faults=Faults(watch_drop=0.2, watch_close=0.2, watch_stall=0.02))


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[tuple[int, float, str, str]]:
        async def main() -> list[tuple[int, float, str, str]]:
            server = ApiServer(rng=Random(seed), faults=Faults(lost=0.1, late=0.2, resent=0.1))

            async def writer(identity: str) -> None:
                http = Http(server.client(identity))
                for number in range(10):
                    try:
                        await http.create(a_request(f"{identity}-{number}"))
                        await http.delete(f"{identity}-{number}")
                    except OutcomeUnknown:
                        continue

            await asyncio.gather(*(writer(f"w{number}") for number in range(4)))
            await asyncio.sleep(100)
            return [
                (change.revision, change.at_seconds, change.kind, change.key.name)
                for change in server.store.audit
            ]

        return run_virtual(main)

    assert history(3) == history(3)
    assert history(3) != history(4)
