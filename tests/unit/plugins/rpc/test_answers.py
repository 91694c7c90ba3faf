"""What servers answer, from real ones in another process: whatever is wrong with it is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.plugins.rpc.processes import ONE_LOOP, world, wrong_servers

from cubesched.core.pipeline import NOT_APPLICABLE

pytestmark = ONE_LOOP
SOUND = {"filter": [True, True, False], "score": [10.0, 20.0, 30.0]}
WRONG = {
    "error": "UNKNOWN: KeyError: 'zone' KeyError: 'zone' ",
    "garbage": "answered 4 bytes that are no ",
    "nothing": "answered from snapshot version 0, asked on 17",
    "older": "answered from snapshot version 16, asked on 17",
    "empty": "did not answer about n1 and 2 more",
    "missing": "did not answer about n1",
    "duplicate": "answered 2 times about n1",
    "instead": "answered 2 times about n1",
    "foreign": "answered about row 7, which it was not asked about",
    "unasked": "answered about n4, which it was not asked about",
    "short": "answered 2 values for 3 rows",
    "ragged": "answered 3 bytes of rows, 4 bytes each",
}
WRONG_FILTERS = {"two": "kept n1 by 2, not 0 or 1", "not-applicable": "did not answer about n1"}
WRONG_SCORES = {
    "nan": "score nan of n2 is not within 0-100",
    "inf": "score inf of n2 is not within 0-100",
    "negative": "score -1 of n2 is not within 0-100",
    "above": "score 100.1 of n2 is not within 0-100",
    "both": "answered scores and that they do not apply",
}


@pytest.fixture
def servers() -> Path:
    return wrong_servers()


@pytest.mark.parametrize("name", ["sound", "backwards", "whole"])
@pytest.mark.parametrize("kind", ["filter", "score"])
async def test_a_sound_answer_is_taken_in_the_order_of_the_rows(
    servers: Path, kind: str, name: str
) -> None:
    async with world(servers) as it:
        plugin = it.filter(name) if kind == "filter" else it.score(name)

        assert await it.asked(plugin) == SOUND[kind]
        assert await it.asked(plugin) == SOUND[kind]


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("kind", ["filter", "score"])
async def test_a_breach_of_contract_is_named(servers: Path, kind: str, name: str) -> None:
    async with world(servers) as it:
        plugin = it.filter(name) if kind == "filter" else it.score(name)
        answer = await it.asked(plugin)

    assert answer.startswith(WRONG[name])
    assert len(answer) <= 200


@pytest.mark.parametrize("name", WRONG_FILTERS)
async def test_what_is_no_mask_is_refused(servers: Path, name: str) -> None:
    async with world(servers) as it:
        assert (await it.asked(it.filter(name))).startswith(WRONG_FILTERS[name])


@pytest.mark.parametrize("name", WRONG_SCORES)
async def test_what_is_no_score_is_refused(servers: Path, name: str) -> None:
    async with world(servers) as it:
        assert await it.asked(it.score(name)) == WRONG_SCORES[name]


async def test_a_score_may_not_apply(servers: Path) -> None:
    async with world(servers) as it:
        assert await it.asked(it.score("not-applicable")) is NOT_APPLICABLE
