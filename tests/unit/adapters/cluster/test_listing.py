from __future__ import annotations

from typing import Any

import pytest
from tests.unit.handlers.fakes import Cluster, a_body

from cubesched.adapters.cluster.listing import list_objects
from cubesched.adapters.cluster.transport import Response
from cubesched.api import PROFILES
from cubesched.core.errors import ApiError


def a_cluster(number: int) -> Cluster:
    cluster = Cluster(page_size=2)
    for index in range(number):
        cluster.put(PROFILES, a_body(f"p{index}", {}))
    return cluster


async def test_pages_are_joined() -> None:
    bodies = await list_objects(a_cluster(5), PROFILES)

    assert [body["metadata"]["name"] for body in bodies] == ["p0", "p1", "p2", "p3", "p4"]


async def test_an_expired_page_starts_the_list_over() -> None:
    cluster = a_cluster(5)
    cluster.expire_pages = 2

    assert len(await list_objects(cluster, PROFILES)) == 5


async def test_a_list_that_expires_again_and_again_is_an_error() -> None:
    cluster = a_cluster(5)
    cluster.expire_pages = 100

    with pytest.raises(ApiError, match="schedulerprofiles"):
        await list_objects(cluster, PROFILES)


async def test_an_outage_is_an_error() -> None:
    with pytest.raises(ApiError, match="cannot reach"):
        await list_objects(Cluster(is_down=True), PROFILES)


async def test_an_object_that_is_nested_too_deeply_is_an_error() -> None:
    cluster = a_cluster(1)
    deep: object = 1
    for _ in range(100):
        deep = {"a": deep}
    cluster.put(PROFILES, a_body("deep", {"args": deep}))
    whole = cluster.request

    async def deeper(*args: Any, **options: Any) -> Response:
        answer = await whole(*args, **options)
        return Response(200, answer.body.replace(b'{"a":' * 100, b'{"a":' * 5_000)
                        .replace(b"}" * 100, b"}" * 5_000))  # fmt: skip

    cluster.request = deeper  # type: ignore[method-assign]

    with pytest.raises(ApiError, match="nested too deeply"):
        await list_objects(cluster, PROFILES)
