"""The in-memory API server behaves as a real one where the scheduler depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from tests.model.apiserver import ADMIN, ApiServer
from tests.model.faults import Faults
from tests.model.http import Http, a_request, placed, version_of
from tests.model.semantics import SCENARIOS, Scenario
from tests.model.virtualtime import run_virtual

from cubesched.core.errors import ApiError, Gone, OutcomeUnknown

Test = Callable[[ApiServer, Http], Awaitable[None]]


def on_a_server(test: Test, *, seed: int = 1, faults: Faults | None = None) -> None:
    """Run `test` with a fresh server and its admin's client."""

    async def main() -> None:
        server = ApiServer(rng=Random(seed), faults=faults)
        await test(server, Http(server.client(ADMIN)))

    run_virtual(main)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_a_real_server_does(scenario: Scenario, seed: int) -> None:
    async def test(server: ApiServer, http: Http) -> None:
        await scenario(http, "a")

    on_a_server(test, seed=seed)


async def expired_pages(server: ApiServer, http: Http) -> tuple[str, dict[str, object]]:
    """Return the version of a first page and the 410 that its token was answered with."""
    for number in range(4):
        await http.create(a_request(f"q-{number}"))
    _, first = await http.list(limit="2")
    await http.delete("q-0")
    server.compact()
    code, status = await http.list(limit="2", **{"continue": first["metadata"]["continue"]})
    assert code == 410
    return version_of(first), status


def test_an_expired_token_is_refused_with_an_inconsistent_one() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        version, status = await expired_pages(server, http)
        offered = status["metadata"]["continue"]  # type: ignore[index]

        code, rest = await http.list(limit="2", **{"continue": offered})

        assert status["reason"] == "Expired"
        assert code == 200
        assert [item["metadata"]["name"] for item in rest["items"]] == ["q-2", "q-3"]
        assert int(version_of(rest)) > int(version), "so a watch from here misses the deletion"

    on_a_server(test)


def test_compaction_takes_nothing_from_an_open_watch() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        async with http.watch(resourceVersion=version_of(created)) as events:
            await http.put_status(created, placed("Reserved"))
            server.compact(in_cache_too=True)
            assert (await events.take(1))[0][0] == "MODIFIED"

    on_a_server(test)


def test_a_watch_from_a_forgotten_version_ends_with_a_410_line() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        await http.delete("q")
        server.compact(in_cache_too=True)
        async with http.watch(resourceVersion=version_of(created)) as events:
            event = await events.next()
            assert event is not None
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)

    on_a_server(test)


def test_a_watch_from_a_forgotten_version_may_be_refused_as_a_whole() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        await http.delete("q")
        server.compact(in_cache_too=True)
        with pytest.raises(Gone):
            async with http.watch(resourceVersion=version_of(created)):
                pass

    on_a_server(test, faults=Faults(gone_as_http=1.0))


def test_a_restart_breaks_watches_and_forgets_older_positions() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, old = await http.create(a_request("q"))
        _, new = await http.put_status(old, placed("Reserved"))
        async with http.watch(resourceVersion=version_of(new)) as events:
            server.restart()
            with pytest.raises(ApiError):
                await events.next()
        async with http.watch(resourceVersion=version_of(old)) as events:
            event = await events.next()
            assert event is not None
            assert event["object"]["code"] == 410
        async with http.watch(resourceVersion=version_of(new)) as events:
            await http.delete("q")
            assert (await events.take(1))[0][0] == "DELETED"

    on_a_server(test)


def test_a_restarting_server_refuses_connections_then_is_cold() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        server.restart(down_seconds=5, cold_seconds=5)
        with pytest.raises(ApiError) as refused:
            await http.get("q")
        assert not isinstance(refused.value, OutcomeUnknown)
        await asyncio.sleep(6)
        with pytest.raises(ApiError) as cold:
            async with http.watch(resourceVersion=version_of(created)):
                pass
        assert cold.value.status == 429
        await asyncio.sleep(6)
        async with http.watch(resourceVersion=version_of(created)) as events:
            await http.delete("q")
            assert (await events.take(1))[0][0] == "DELETED"

    on_a_server(test)


def test_a_write_under_way_when_the_server_dies_has_an_unknown_outcome() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        sending = asyncio.ensure_future(http.create(a_request("q")))
        await asyncio.sleep(0.001)
        server.restart()
        with pytest.raises(OutcomeUnknown):
            await sending

    on_a_server(test, faults=Faults(latency_seconds=1.0))


def test_a_restore_gives_the_same_revisions_to_other_changes() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, kept = await http.create(a_request("kept"))
        _, lost = await http.create(a_request("lost"))
        server.restore(int(version_of(kept)))
        _, other = await http.create(a_request("other"))

        _, page = await http.list()
        names = [item["metadata"]["name"] for item in page["items"]]
        assert names == ["kept", "other"]
        assert version_of(other) == version_of(lost)
        assert [change.key.name for change in server.store.audit] == ["kept", "lost", "other"]

    on_a_server(test)


def test_after_a_restore_an_old_position_is_watched_in_silence() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, kept = await http.create(a_request("kept"))
        for number in range(3):
            await http.create(a_request(f"lost-{number}"))
        _, before = await http.list()
        server.restore(int(version_of(kept)))
        async with http.watch(resourceVersion=version_of(before)) as events:
            for number in range(5):
                await http.create(a_request(f"new-{number}"))
            told = await events.take(2)
        assert [name for _, name, _ in told] == ["new-3", "new-4"], "three were skipped"

    on_a_server(test)


def test_a_bumped_restore_sends_everyone_to_a_new_list() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, kept = await http.create(a_request("kept"))
        _, lost = await http.create(a_request("lost"))
        server.restore(int(version_of(kept)), bump=1_000)
        async with http.watch(resourceVersion=version_of(lost)) as events:
            event = await events.next()
            assert event is not None
            assert event["object"]["code"] == 410

    on_a_server(test)


def test_a_changed_crd_ends_streams_without_a_gap() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        async with http.watch(resourceVersion=version_of(created)) as events:
            server.end_streams()
            with pytest.raises(StopAsyncIteration):
                await events.next()
        await http.delete("q")
        async with http.watch(resourceVersion=version_of(created)) as events:
            assert (await events.take(1))[0][0] == "DELETED"

    on_a_server(test)


def test_bookmarks_move_an_idle_watch_past_others_changes() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, created = await http.create(a_request("q"))
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l", "namespace": "default"},
        }
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        server.bookmark_seconds = 5
        async with http.watch(
            resourceVersion=version_of(created), allowWatchBookmarks="true"
        ) as events:
            code, stored = await http.send("POST", path, lease)
            event = await events.next(within_seconds=10)
            assert code == 201
            assert event is not None
            assert event["type"] == "BOOKMARK"
            assert version_of(event["object"]) == version_of(stored)

    on_a_server(test)


def test_a_silent_watch_is_given_up_after_its_idle_time() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, page = await http.list()
        async with http.watch(resourceVersion=version_of(page)) as events:
            with pytest.raises(ApiError, match="nothing arrived"):
                await events.next(within_seconds=60)

    on_a_server(test)


def test_each_client_sees_the_one_order_with_its_own_lag() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        _, page = await http.list()

        async def follow(identity: str) -> list[tuple[str, str, str]]:
            client = Http(server.client(identity))
            async with client.watch(resourceVersion=version_of(page)) as events:
                return await events.take(40)

        following = [asyncio.ensure_future(follow(f"client-{number}")) for number in range(3)]
        await asyncio.sleep(1)
        for number in range(40):
            await http.create(a_request(f"q-{number}"))
        told = await asyncio.gather(*following)
        assert told[0] == told[1] == told[2]
        versions = [int(version) for _, _, version in told[0]]
        assert versions == sorted(versions)

    on_a_server(test, faults=Faults(watch_lag_seconds=0.05, chunk_size=7))


def test_an_operator_may_not_patch_a_request_status() -> None:
    async def test(server: ApiServer, http: Http) -> None:
        await http.create(a_request("q"))
        operator = Http(server.client("operator"))
        patch = {"status": {"phase": "Bound"}}
        for kind in ("merge", "apply"):
            code, _ = await operator.patch("q", patch, subresource="status", kind=kind)
            assert code == 403

    on_a_server(test)
