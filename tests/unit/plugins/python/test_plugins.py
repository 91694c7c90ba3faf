"""Plugins in Python within a decision: what they are asked, and what becomes of their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_node, a_pipeline, a_request, a_snapshot
from tests.unit.plugins.python.samples import Scripted, ScriptedNode, an_offer, installed
from tests.unit.policy.builders import a_profile

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import NOT_APPLICABLE, Judged, Pipeline
from cubesched.core.snapshot import Snapshot
from cubesched.plugins.hosts import waiting
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python import Node
from cubesched.plugins.python.plugins import PythonFilter, PythonScore, build_filter, build_score
from cubesched.policy.compiler import compile_set

ZONE = "topology.kubernetes.io/zone"
UNKNOWN = float("nan")
AROUND = Surroundings(
    installed=installed(
        an_offer("zone", "InZone"),
        an_offer("zone-of-node", "ZoneOfNode"),
        an_offer("idle", "Idle"),
        an_offer("idle-node", "IdleNode"),
        an_offer("any", "Scripted"),
        an_offer("any-node", "ScriptedNode"),
    )
)
PATIENT = {"timeout_seconds": 5.0, "circuit_breaker_failures": 1000}


@pytest.fixture(autouse=True)
def _unscripted() -> Iterator[None]:
    before = Scripted.answer, ScriptedNode.answer
    yield
    Scripted.answer, ScriptedNode.answer = before


def a_filter(name: str, **args: Any) -> PythonFilter:
    return build_filter(Listing(name, "python", args, **PATIENT), AROUND)  # type: ignore[arg-type]


def a_score(name: str) -> PythonScore:
    return build_score(Listing(name, "python", **PATIENT), AROUND)  # type: ignore[arg-type]


def the_fleet() -> Snapshot:
    return a_snapshot(
        [
            a_node("n1", labels={ZONE: "a"}, cpu_util_percent=10.0),
            a_node("n2", cpu_util_percent=20.0),
            a_node("n3", labels={ZONE: "b"}, cpu_util_percent=UNKNOWN),
            a_node("n4", labels={ZONE: "a"}, cpu_util_percent=40.0),
        ]
    )


ROWS = np.array([0, 1, 3])


async def message_of(plugin: PythonFilter | PythonScore) -> str:
    ask = plugin.keep if isinstance(plugin, PythonFilter) else plugin.score
    with pytest.raises(PluginError) as caught:
        await ask(the_fleet(), a_request(labels={"team": "x"}), ROWS)
    return caught.value.message


async def test_a_column_filter_answers_for_the_rows_it_is_asked_about() -> None:
    kept = await a_filter("zone", zone="a").keep(the_fleet(), a_request(), ROWS)

    assert isinstance(kept, np.ndarray)
    assert kept.tolist() == [True, False, True]


async def test_an_exception_about_one_node_is_an_error_on_that_node_alone() -> None:
    judged = await a_filter("zone-of-node", zone="a").keep(the_fleet(), a_request(), ROWS)

    assert isinstance(judged, Judged)
    assert judged.failed.tolist() == [False, True, False]
    assert judged.keep.tolist() == [True, False, True]
    assert judged.error == f"KeyError: '{ZONE}'"


async def test_a_node_filter_is_asked_about_the_rows_that_are_left_and_no_others() -> None:
    seen = list[str]()

    def note(node: Node, _: object) -> bool:
        seen.append(node.id)
        return True

    ScriptedNode.answer = note

    kept = await a_filter("any-node").keep(the_fleet(), a_request(), ROWS)

    assert seen == ["n1", "n2", "n4"]
    assert isinstance(kept, np.ndarray)
    assert kept.tolist() == [True] * 3


@pytest.mark.parametrize("answer", [None, 1, "yes"])
async def test_an_answer_that_is_neither_yes_nor_no_is_an_error_on_the_node(answer: object) -> None:
    ScriptedNode.answer = staticmethod(lambda *_: answer)

    judged = await a_filter("any-node").keep(the_fleet(), a_request(), ROWS)

    assert isinstance(judged, Judged)
    assert judged.failed.all()
    assert judged.error.startswith(f"TypeError: keep_node answered {type(answer).__name__}")


@pytest.mark.parametrize("name", ["idle", "idle-node"])
async def test_a_score_answers_for_the_rows_it_is_asked_about(name: str) -> None:
    scores = await a_score(name).score(the_fleet(), a_request(labels={"team": "x"}), ROWS)

    assert isinstance(scores, np.ndarray)
    assert scores.tolist() == [90.0, 80.0, 60.0]
    assert scores.dtype == np.float64


@pytest.mark.parametrize("name", ["idle", "idle-node"])
async def test_a_score_without_anything_to_say_is_not_applicable(name: str) -> None:
    assert await a_score(name).score(the_fleet(), a_request(), ROWS) is NOT_APPLICABLE


async def test_scores_may_be_any_kind_of_number() -> None:
    for dtype in (np.int64, np.uint8, np.float32):
        Scripted.answer = staticmethod(lambda fleet, _, d=dtype: np.full(len(fleet), 50, d))
        scores = await a_score("any").score(the_fleet(), a_request(), ROWS)
        assert isinstance(scores, np.ndarray)
        assert scores.dtype == np.float64
        assert scores.tolist() == [50.0] * 3


WRONG_MASKS: list[tuple[Callable[[int], Any], str]] = [
    (lambda _: None, "answered NoneType, not a NumPy array"),
    (lambda n: [True] * n, "answered list, not a NumPy array"),
    (lambda _: np.array([], bool), "answered 0 values for 4 nodes"),
    (lambda n: np.ones(n - 1, bool), "answered 3 values for 4 nodes"),
    (lambda n: np.ones((n, 2), bool), "answered 4x2 values for 4 nodes"),
    (lambda _: np.array(1.0), "answered a single values for 4 nodes"),
    (lambda n: np.array(["yes"] * n), "answered <U3 values, not bools"),
    (lambda n: np.array([None] * n), "answered object values, not bools"),
]


@pytest.mark.parametrize(("answer", "message"), WRONG_MASKS)
async def test_a_mask_of_the_wrong_shape_or_type_fails_the_call(
    answer: Callable[[int], Any], message: str
) -> None:
    Scripted.answer = staticmethod(lambda fleet, _: answer(len(fleet)))

    assert await message_of(a_filter("any")) == message
    assert await message_of(a_score("any")) == message.replace("bools", "numbers")


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (UNKNOWN, "score nan is not within 0-100"),
        (-1, "score -1 is not within 0-100"),
        (100.1, "score 100.1 is not within 0-100"),
        (float("inf"), "score inf is not within 0-100"),
        (float("-inf"), "score -inf is not within 0-100"),
    ],
)
async def test_a_score_out_of_range_on_any_row_asked_about_fails_the_call(
    score: float, message: str
) -> None:
    wrong = np.array([50.0, score, 50.0, 50.0])
    Scripted.answer = staticmethod(lambda *_: wrong)
    ScriptedNode.answer = staticmethod(lambda node, _: wrong[node.row])

    assert await message_of(a_score("any")) == message
    assert await message_of(a_score("any-node")) == message


async def test_a_score_of_a_row_that_is_out_already_does_not_matter() -> None:
    Scripted.answer = staticmethod(lambda *_: np.array([50.0, 50.0, UNKNOWN, 50.0]))

    scores = await a_score("any").score(the_fleet(), a_request(), ROWS)

    assert isinstance(scores, np.ndarray)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda *_: None, "on n1: NoneType, no score"),
        (lambda *_: True, "on n1: bool, no score"),
        (lambda *_: "50", "on n1: str, no score"),
        (lambda node, _: node.labels[ZONE] and 50, f"on n2: KeyError: '{ZONE}'"),
    ],
)
async def test_a_score_that_fails_on_one_node_fails_the_call_and_names_the_node(
    answer: Any, message: str
) -> None:
    ScriptedNode.answer = answer

    assert await message_of(a_score("any-node")) == message


async def test_what_a_plugin_changes_of_its_own_answer_later_changes_nothing() -> None:
    mine = np.full(4, 50.0)
    Scripted.answer = staticmethod(lambda *_: mine)

    scores = await a_score("any").score(the_fleet(), a_request(), np.arange(4))
    mine[:] = -1

    assert isinstance(scores, np.ndarray)
    assert scores.tolist() == [50.0] * 4


async def test_a_division_by_zero_is_judged_by_its_answer() -> None:
    Scripted.answer = staticmethod(lambda fleet, _: fleet.cpu_util / (fleet.creating * 1.0))

    assert await message_of(a_score("any")) == "score inf is not within 0-100"


async def test_a_plugin_cannot_change_the_fleet() -> None:
    def meddle(fleet: Any, _: object) -> object:
        fleet.cpu_util[:] = 0
        return fleet.healthy

    Scripted.answer = meddle

    assert await message_of(a_filter("any")) == "ValueError: assignment destination is read-only"


async def test_a_node_loop_stops_once_nobody_waits_for_it() -> None:
    seen = list[int]()
    fleet = a_snapshot([a_node(f"n{number:04}") for number in range(2000)])
    question = build_score(
        Listing("any-node", "python", timeout_seconds=0.02, circuit_breaker_failures=1000), AROUND
    )

    def linger(node: Node, _: object) -> float:
        seen.append(node.row)
        time.sleep(0.001)
        return 1.0

    ScriptedNode.answer = linger

    with pytest.raises(PluginError, match="no answer within 20 ms"):
        await question.score(fleet, a_request(), np.arange(2000))
    question.host._worker.submit(lambda _: None).done.result(5)

    assert len(seen) < 2000


def entries(pipeline: Pipeline) -> list[object]:
    return [plugin.host for plugin in waiting(pipeline)]


def test_all_entries_of_one_plugin_share_its_host_and_others_do_not() -> None:
    one = a_filter("zone", zone="a")
    two = a_filter("zone", zone="b")

    assert one.host is two.host
    assert one.plugin is not two.plugin
    assert a_score("idle").host is not one.host


def test_a_profile_with_python_plugins_compiles_and_asks_them() -> None:
    profile = a_profile(
        filters=[{"name": "zone", "type": "python", "args": {"zone": "a"}, "timeout": "2s"}],
        scores=[{"name": "idle", "type": "python", "weight": 2}],
    )
    result = compile_set([profile], None, AROUND)
    assert result.policy is not None, result.problems

    pipeline = result.policy.profiles[0].pipeline
    assert [type(plugin) for plugin in waiting(pipeline)] == [PythonFilter, PythonScore]
    [listed] = pipeline.filters
    assert isinstance(listed, PythonFilter)
    assert listed.terms.limits.timeout_seconds == 2.0


def test_a_wrong_python_entry_makes_its_profile_invalid_with_the_path() -> None:
    profile = a_profile(
        filters=[
            {"name": "zone", "type": "python", "args": {"zone": "a"}},
            {"name": "zon", "type": "python"},
        ],
        scores=[
            {"name": "idle", "type": "python", "args": {"x": 1}},
            {"name": "zone", "type": "python", "args": {"zone": "a"}},
        ],
    )

    result = compile_set([profile], None, AROUND)

    assert result.policy is None
    assert [(p.path, p.message) for p in result.problems] == [
        (
            "spec.filters[1].name",
            'no installed package offers the python filter "zon"; did you mean "zone"?',
        ),
        ("spec.scores[0].args.x", "unknown argument; there are none"),
        ("spec.scores[1].name", '"zone" is a filter, not a score'),
    ]


def test_a_pipeline_of_builtins_waits_for_nothing() -> None:
    assert entries(a_pipeline(("least_allocated", {}, 1.0))) == []
