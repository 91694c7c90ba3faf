"""Lists and watches as the scheduler relies on them; see `semantics`."""

from __future__ import annotations

import pytest
from tests.model.http import Http, a_request, placed, version_of

from cubesched.core.errors import ApiError


async def pages_are_of_one_version_whatever_is_written_meanwhile(http: Http, name: str) -> None:
    for number in range(3):
        await http.create(a_request(f"{name}-{number}"))
    _, first = await http.list(limit="1", labelSelector="workload=test")
    _, last = await http.get(f"{name}-2")
    await http.put_status(last, placed("Reserved"))
    await http.create(a_request(f"{name}-3"))

    code, rest = await http.list(limit="500", **{"continue": first["metadata"]["continue"]})

    assert code == 200
    assert version_of(rest) == version_of(first)
    names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
    assert names == [f"{name}-{number}" for number in range(3)]
    assert rest["items"][-1]["status"]["phase"] == "Pending"


async def a_list_from_the_cache_ignores_its_limit(http: Http, name: str) -> None:
    for number in range(6):
        await http.create(a_request(f"{name}-{number}"))

    _, page = await http.list(resourceVersion="0", limit="1")

    assert page["metadata"].get("continue", "") == ""
    assert len(page["items"]) > 1


async def a_list_at_a_version_of_the_future_is_refused(http: Http, name: str) -> None:
    _, now = await http.list()

    code, status = await http.list(resourceVersion=str(int(version_of(now)) + 1_000_000))

    assert code == 504
    assert "Too large resource version" in status["message"]


async def a_broken_continue_token_is_refused(http: Http, name: str) -> None:
    code, _ = await http.list(limit="1", **{"continue": "nonsense"})

    assert code == 400


async def a_watch_tells_every_later_change_in_order(http: Http, name: str) -> None:
    _, before = await http.list()
    async with http.watch(resourceVersion=version_of(before)) as events:
        _, created = await http.create(a_request(name))
        _, reserved = await http.put_status(created, placed("Reserved"))
        await http.delete(name)

        told = await events.take(3)

    assert [kind for kind, _, _ in told] == ["ADDED", "MODIFIED", "DELETED"]
    assert [version for _, _, version in told[:2]] == [version_of(created), version_of(reserved)]
    versions = [int(version) for _, _, version in told]
    assert versions == sorted(set(versions)), "the deletion has a version of its own"


async def a_deletion_carries_the_last_object(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    _, reserved = await http.put_status(created, placed("Reserved"))
    async with http.watch(resourceVersion=version_of(reserved)) as events:
        await http.delete(name)

        event = await events.next()

    assert event is not None
    assert event["type"] == "DELETED"
    assert event["object"]["status"]["phase"] == "Reserved"
    assert int(version_of(event["object"])) > int(version_of(reserved))


async def a_watch_at_a_version_of_the_future_skips_in_silence(http: Http, name: str) -> None:
    _, obj = await http.create(a_request(name))
    future = int(version_of(obj)) + 40
    async with http.watch(resourceVersion=str(future)) as events:
        versions: list[int] = []
        while max(versions, default=0) <= future:
            _, obj = await http.put_status(obj, {"attempts": len(versions) + 1})
            versions.append(int(version_of(obj)))

        told = await events.take(1)

    assert [int(version) for _, _, version in told] == versions[-1:]
    assert len(versions) > 1, "earlier changes happened and were not told"


async def a_watch_without_version_starts_with_what_is_there(http: Http, name: str) -> None:
    await http.create(a_request(name))
    async with http.watch() as events:
        told = await events.take(1)

        assert told[0][:2] == ("ADDED", name)
        assert await events.next(within_seconds=0.5) is None, "and nothing marks the end"
        await events.close()


async def initial_events_end_with_a_bookmark(http: Http, name: str) -> None:
    await http.create(a_request(name))
    params = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with http.watch(**params) as events:
        first, second = await events.next(), await events.next()

    assert first is not None
    assert second is not None
    assert (first["type"], second["type"]) == ("ADDED", "BOOKMARK")
    annotations = second["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def a_write_that_changes_nothing_has_no_version_and_no_event(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    _, reserved = await http.put_status(created, placed("Reserved"))
    async with http.watch(resourceVersion=version_of(reserved)) as events:
        code, same = await http.put_status(reserved, placed("Reserved"))
        await http.delete(name)

        told = await events.take(1)

    assert (code, version_of(same)) == (200, version_of(reserved))
    assert told[0][0] == "DELETED"


async def a_selected_watch_sees_enter_as_added_and_leave_as_deleted(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    selection = {"fieldSelector": f"status.nodeName={name}", "resourceVersion": version_of(created)}
    async with http.watch(**selection) as events:
        _, here = await http.put_status(created, placed("Reserved", name))
        _, bound = await http.put_status(here, placed("Bound", name))
        _, gone = await http.put_status(bound, {"phase": "Pending"})
        await http.put_status(gone, placed("Reserved", "elsewhere"))

        told = [await events.next() for _ in range(3)]
        assert await events.next(within_seconds=0.5) is None
        await events.close()

    assert [event and event["type"] for event in told] == ["ADDED", "MODIFIED", "DELETED"]
    left = told[2]
    assert left is not None
    assert left["object"]["status"]["phase"] == "Bound", "the old object"
    assert version_of(left["object"]) == version_of(gone), "with the new version"


async def a_field_that_is_not_selectable_is_refused(http: Http, name: str) -> None:
    code, _ = await http.list(fieldSelector="status.attempts=0")

    assert code == 400


async def what_is_not_served_is_not_found(http: Http, name: str) -> None:
    assert (await http.get(name))[0] == 404
    with pytest.raises(ApiError) as refused:
        async with http.transport.stream(
            "/apis/cubesched.io/v1alpha1/nosuchkind", params={"watch": "1"}, idle_seconds=5
        ):
            pass
    assert refused.value.status == 404
