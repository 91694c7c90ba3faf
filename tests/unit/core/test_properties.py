"""What holds for every fleet, request and pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import GIB, UNKNOWN, NodeFacts, a_node, a_pipeline, a_request, a_snapshot

from cubesched.core.answers import settled_mask
from cubesched.core.blending import Rating, blend
from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.explaining import rejects
from cubesched.core.pipeline import Pipeline, Selection, SelectionMethod, WeightedScore
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Safety, Snapshot, Taint
from cubesched.plugins import registry

percent = st.sampled_from([0.0, 40.0, 79.9, 80.0, 100.0, 250.0, UNKNOWN])
nodes = st.lists(
    st.fixed_dictionaries(
        {
            "cpu_limit_millis": st.sampled_from([0, 1000, 8000]),
            "cpu_used_millis": st.integers(0, 9000),
            "memory_limit_bytes": st.integers(0, 16).map(lambda gib: gib * GIB),
            "memory_used_bytes": st.integers(0, 17 * GIB),
            "sandboxes": st.integers(0, 5),
            "sandbox_limit": st.sampled_from([0, 4, 3000]),
            "creating": st.sampled_from([0, 1, 100]),
            "cpu_util_percent": percent,
            "cpu_load": percent,
            "data_disk_percent": percent,
            "memory_really_used_bytes": st.sampled_from([0.0, 127.0 * GIB, UNKNOWN]),
            "safety": st.sampled_from([*[Safety.OK] * 9, *Safety]),
            "taints": st.sampled_from([(), (), (Taint("t", "", "NoSchedule"),)]),
            "templates": st.sampled_from([(), ("t",)]),
            "labels": st.sampled_from([{}, {"zone": "a"}, {"zone": "b", "gpu": "1"}]),
            "own": st.booleans(),
        }
    ),
    max_size=12,
).map(lambda all_facts: [a_node(f"node-{n:02}", **facts) for n, facts in enumerate(all_facts)])
requests = st.builds(
    a_request,
    st.text(min_size=1, max_size=8),
    attempt=st.integers(0, 1000),
    cpu_millis=st.sampled_from([1, 1000, 8000, 9000]),
    memory_bytes=st.sampled_from([1, GIB, 16 * GIB]),
    template_id=st.sampled_from(["", "", "t"]),
    node_selector=st.sampled_from([(), (), (("zone", "a"),)]),
)
scores = st.lists(
    st.builds(
        lambda name, weight: WeightedScore(registry.build_score(name, {}), weight, 0.0),
        st.sampled_from(sorted(registry.SCORES)),
        st.floats(1e-6, 1e6),
    ),
    max_size=3,
)
filters = st.sampled_from(
    [{}, {"node_labels": {"matchLabels": {"zone": "a"}}}, {"scarce_resource": {}}]
)
pipelines = st.builds(
    lambda scores, filters, method, top_n: a_pipeline(
        *scores, filters=filters, method=method, top_n=top_n
    ),
    scores,
    filters,
    st.sampled_from(SelectionMethod),
    st.sampled_from([-1, 1, 2, 3, 5, 20]),
)


def feasible_names(fleet: Snapshot, request: Request, pipeline: Pipeline) -> set[str]:
    names = set(fleet.names)
    for part in rejects(fleet, request, pipeline):
        names -= {fleet.names[row] for row in part.rows.tolist()}
    return names


@given(nodes, requests, pipelines, st.booleans())
def test_counts_and_feasible_add_up_and_the_pick_is_feasible(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, prefer_own: bool
) -> None:
    fleet = a_snapshot(all_nodes)

    decision = decide(fleet, request, pipeline, prefer_own=prefer_own)

    feasible = feasible_names(fleet, request, pipeline)
    rejected = sum(count.rejected for count in decision.counts)
    assert rejected + len(feasible) == decision.total == len(all_nodes)
    if isinstance(decision, Placed):
        assert decision.node in feasible
        assert decision.feasible == len(feasible)
        assert fleet.names[decision.row] == decision.node
        assert 0.0 <= decision.score <= 100.0
        assert len({decision.node, *(name for name, _ in decision.runners_up)}) == min(
            3, len(feasible)
        )
    else:
        assert not feasible


@given(nodes, requests, pipelines, st.randoms(use_true_random=False))
def test_the_order_of_nodes_never_changes_the_feasible_set(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, rng: Any
) -> None:
    names = [node.name for node in all_nodes]
    shuffled = rng.sample(names, len(names))
    new_name = dict(zip(names, shuffled, strict=True))
    renamed = [replace(node, name=new_name[node.name]) for node in all_nodes]

    before = feasible_names(a_snapshot(all_nodes), request, pipeline)
    after = feasible_names(a_snapshot(renamed), request, pipeline)

    assert after == {new_name[name] for name in before}


@given(nodes, requests, pipelines, st.permutations(registry.GUARDS))
def test_the_order_of_guards_never_changes_the_feasible_set_or_the_choice(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, guards: Sequence[Any]
) -> None:
    fleet = a_snapshot(all_nodes)
    reordered = replace(pipeline, guards=tuple(guards))

    before, after = decide(fleet, request, pipeline), decide(fleet, request, reordered)

    assert feasible_names(fleet, request, pipeline) == feasible_names(fleet, request, reordered)
    assert replace(before, counts=()) == replace(after, counts=())


@dataclass(frozen=True)
class AnyFilter:
    """Keeps what the seed says: stands for whatever a Profile may list."""

    seed: int
    name: str = "any"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        return np.random.default_rng(self.seed).random(len(fleet)) < 0.8

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        return [("any", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> None:
        return None


@dataclass(frozen=True)
class AnyScore:
    """Scores what the seed says."""

    seed: int
    name: str = "any"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        return np.random.default_rng(self.seed).random(rows.size) * 100.0


@given(nodes, requests, pipelines, st.integers(0, 99))
def test_no_filter_or_score_brings_back_what_a_guard_rejects(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, seed: int
) -> None:
    fleet = a_snapshot(all_nodes)
    anything = replace(
        pipeline,
        filters=(AnyFilter(seed), *pipeline.filters),
        scores=(WeightedScore(AnyScore(seed), 1e9, 100.0), *pipeline.scores),
    )

    decision = decide(fleet, request, anything, prefer_own=True)

    if isinstance(decision, Placed):
        for stage in (*registry.GUARDS, *registry.CONSTRAINTS):
            mask = settled_mask(stage, fleet, request, keeps_failed=False)
            assert mask is None or mask[decision.row]


@given(nodes, requests, pipelines, st.booleans())
def test_the_same_input_gives_the_same_decision(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, prefer_own: bool
) -> None:
    first = decide(a_snapshot(all_nodes), request, pipeline, prefer_own=prefer_own)
    second = decide(a_snapshot(all_nodes), request, pipeline, prefer_own=prefer_own)

    assert first == second


@given(nodes, requests, pipelines, st.booleans())
def test_all_candidates_are_the_same_as_as_many_as_there_are_nodes(
    all_nodes: list[NodeFacts], request: Request, pipeline: Pipeline, prefer_own: bool
) -> None:
    def with_top_n(top_n: int) -> Pipeline:
        return replace(pipeline, selection=Selection(pipeline.selection.method, top_n))

    size = max(1, len(all_nodes))
    fleet = a_snapshot(all_nodes)
    everyone = decide(fleet, request, with_top_n(-1), prefer_own=prefer_own)

    assert everyone == decide(fleet, request, with_top_n(1000), prefer_own=prefer_own)
    if not prefer_own or size >= 8:
        assert everyone == decide(fleet, request, with_top_n(size), prefer_own=prefer_own)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.floats(min_value=0, exclude_min=True, allow_infinity=False),
            st.lists(st.floats(0, 100), min_size=4, max_size=4),
        ),
        max_size=5,
    )
)
def test_a_blend_lies_between_the_lowest_and_the_highest_score(
    weighted: list[tuple[float, list[float]]],
) -> None:
    ratings = [Rating("p", weight, np.array(values)) for weight, values in weighted]

    blended = blend(ratings, 4)

    assert ((blended >= 0.0) & (blended <= 100.0)).all()
    for place in range(4):
        values = [rating.scores[place] for rating in ratings] or [0.0]
        slack = 1e-9
        assert min(values) - slack <= blended[place] <= max(values) + slack


@given(nodes, requests, st.sampled_from(sorted(registry.SCORES)))
def test_every_built_in_score_stays_within_bounds_on_any_rows(
    all_nodes: list[NodeFacts], request: Request, name: str
) -> None:
    fleet = a_snapshot(all_nodes)
    score: Callable[..., Any] = registry.build_score(name, {}).score

    with np.errstate(all="ignore"):
        answer = score(fleet, request, np.arange(len(all_nodes)))

    if isinstance(answer, np.ndarray) and answer.size:
        assert answer.min() >= 0.0
        assert answer.max() <= 100.0
