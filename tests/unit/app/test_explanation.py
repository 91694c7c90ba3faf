"""A request explained from the objects and reports that stand in the servers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from tests.unit.fleet.objects import a_node_object, a_request_object, reports

from cubesched.adapters.cluster.listing import Listed
from cubesched.api import CONFIGS, PROFILES
from cubesched.api.timestamps import timestamp
from cubesched.app.explanation import explain
from cubesched.app.explanation_data import Data, as_data, as_data_of_node
from cubesched.app.livestate import LiveState, Objects, read_reports, state_of
from cubesched.policy.objects import PolicyObject


def stamp_ms() -> int:
    """Return the time of a report made now: one made at import is stale in a long run."""
    return int(time.time() * 1000)


def a_profile(name: str = "main", **spec: Any) -> PolicyObject:
    spec = {"scores": [{"name": "least_allocated"}], **spec}
    return PolicyObject(PROFILES.kind, name, f"uid-{name}", 1, "1", spec)


def a_config(**spec: Any) -> PolicyObject:
    return PolicyObject(CONFIGS.kind, "default", "uid-config", 1, "1", spec)


def objects(
    *requests: bytes,
    nodes: Sequence[bytes] = (a_node_object("n1"), a_node_object("n2", cpu="4")),
    profiles: Sequence[PolicyObject] = (a_profile(default=True),),
    config: PolicyObject | None = None,
) -> Objects:
    return Objects(Listed(7, list(nodes)), Listed(9, list(requests)), profiles, config)


def found(
    stored: Objects, name: str = "r1", *, node: str = "", most: int | None = None, **report: Any
) -> Data:
    entry = stored.request("default", name)
    assert entry is not None
    state = state_of(stored, without=entry if entry.node else None)
    state.take_reports([reports(stamp_ms(), *state.node_names, **report)])
    explained = explain(state, entry)
    data = as_data_of_node(explained, node) if node else as_data(explained, most_nodes=most)
    assert yaml.safe_load(yaml.safe_dump(data)) == json.loads(json.dumps(data)) == data
    return data


def test_a_request_that_fits_is_told_where_and_every_score() -> None:
    data = found(objects(a_request_object(cpu="2")))

    assert data["now"] == {"feasible": 2, "total": 2, "wouldTake": "n1"}
    assert [node["name"] for node in data["nodes"]] == ["n1", "n2"]
    assert data["nodes"][0]["parts"] == [
        {"plugin": "least_allocated", "weight": 1.0, "score": 84.38}
    ]
    assert data["policy"]["profile"] == "main"
    assert data["policy"]["why"] == "the only Profile"
    assert data["whatWouldHelp"] == []


def test_a_request_that_fits_nowhere_is_told_why_and_what_would_help() -> None:
    data = found(objects(a_request_object(cpu="12")))

    assert data["now"]["reason"] == "NeverFits"
    assert data["stages"] == [
        {
            "kind": "guard",
            "plugin": "cpu",
            "rejected": 2,
            "reasons": {"insufficient cpu": 2},
            "nearest": {"node": "n1", "why": "needs 12000m, 8000m free"},
        }
    ]
    assert [each["text"] for each in data["whatWouldHelp"]] == [
        "1 node would fit with cpu <= 8000m: n1"
    ]
    assert data["nodes"][1] == {
        "name": "n2",
        "fits": False,
        "kind": "guard",
        "plugin": "cpu",
        "why": "needs 12000m, 4000m free",
    }


def test_other_requests_and_reports_count_as_they_do_for_an_operator() -> None:
    others = a_request_object("r2", phase="Running", node="n1", reservation={"cpuMillis": 6000})

    data = found(objects(a_request_object(cpu="3"), others), foreign_cpu_millis=2000)

    whys = {node["name"]: node["why"] for node in data["nodes"]}
    assert whys == {"n1": "needs 3000m, 0m free", "n2": "needs 3000m, 2000m free"}


def test_a_placed_request_is_looked_at_as_if_it_were_not() -> None:
    line = "score 81.25 (least_allocated 81.25); 2 of 2 nodes feasible"
    running = a_request_object(
        cpu="8", phase="Running", node="n1", reservation={"cpuMillis": 8000}, explanation=line
    )

    data = found(objects(running))

    assert data["request"]["nodeName"] == "n1"
    assert data["request"]["explanation"] == line
    assert data["now"]["itsNode"]["fits"] is True
    assert data["now"]["itsNode"]["place"] == 1
    assert data["now"]["feasible"] == 1


def test_a_node_that_would_not_take_its_request_again_says_why() -> None:
    running = a_request_object(cpu="8", phase="Running", node="n2", reservation={})

    data = found(objects(running))

    assert data["now"]["itsNode"] == {
        "name": "n2",
        "fits": False,
        "kind": "guard",
        "plugin": "cpu",
        "why": "needs 8000m, 4000m free",
    }


def test_one_node_is_told_by_every_stage_with_what_would_help_there() -> None:
    tainted = a_node_object("n1", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    stored = objects(a_request_object(cpu="2"), nodes=[tainted])

    node = found(stored, node="n1")["node"]

    assert node["fits"] is False
    verdicts = {stage["plugin"]: stage["passes"] for stage in node["stages"]}
    assert [plugin for plugin, passes in verdicts.items() if not passes] == ["taints"]
    assert node["stages"][-1]["why"] == "taint gpu:NoSchedule"
    assert [each["text"] for each in node["whatWouldHelp"]] == [
        "it would fit with a toleration of gpu:NoSchedule"
    ]
    assert node["facts"]["cpuMillis"] == [0, 8000]
    assert node["facts"]["reportAgeSeconds"] >= 0


def test_a_node_that_fits_has_its_score_and_nothing_to_help() -> None:
    node = found(objects(a_request_object(cpu="2")), node="n2")["node"]

    assert node["fits"] is True
    assert node["score"] == pytest.approx(71.88)
    assert node["whatWouldHelp"] == []


def test_only_so_many_nodes_are_told_as_are_wanted() -> None:
    data = found(objects(a_request_object()), most=1)

    assert len(data["nodes"]) == 1
    assert data["nodesLeftOut"] == 1


# Which Profile, and what stands before all nodes


def test_the_profile_is_named_with_the_part_of_its_route_that_matched() -> None:
    profiles = [
        a_profile("large", route={"instanceTypes": ["large-.*"]}, order=1),
        a_profile("batch", route={"labels": {"workload": "batch"}}, order=2),
        a_profile("main", default=True),
    ]
    batch = a_request_object("r1", labels={"workload": "batch"})
    large = a_request_object("r2", spec={"instanceType": "large-4"})
    other = a_request_object("r3")
    stored = objects(batch, large, other, profiles=profiles)

    whys = {name: found(stored, name)["policy"]["why"] for name in ("r1", "r2", "r3")}
    assert whys == {
        "r1": "its route matches: label workload=batch; 1 tried before it do not match",
        "r2": "its route matches: instanceType",
        "r3": "the default: no other Profile's route matches",
    }


def test_without_a_profile_guards_and_constraints_are_told_alone() -> None:
    only_batch = [a_profile(route={"labels": {"workload": "batch"}})]

    data = found(objects(a_request_object(), profiles=only_batch))

    assert data["now"]["reason"] == "NoProfile"
    assert data["now"]["feasible"] == 2
    assert "wouldTake" not in data["now"]
    assert "profile" not in data["policy"]


def test_a_set_that_does_not_compile_is_named_with_its_first_problem() -> None:
    broken = [a_profile(default=True, scores=[{"name": "leest_allocated"}])]
    config = a_config(overcommit={"cpu": 2})

    data = found(objects(a_request_object(cpu="12"), profiles=broken, config=config))

    assert data["now"]["reason"] == "NoActivePolicy"
    assert "leest_allocated" in data["policy"]["problems"][0]
    assert data["now"]["feasible"] == 1, "the config holds, with its over-commit"


def test_a_spec_that_cannot_be_used_is_told_and_nothing_else() -> None:
    data = found(objects(a_request_object(cpu="lots")))

    assert data["now"]["reason"] == "InvalidSpec"
    assert "spec.resources.cpu" in data["now"]["message"]
    assert "nodes" not in data
    assert "node" not in found(objects(a_request_object(cpu="lots")), node="n1")


def test_a_gated_request_is_told_so_and_how_the_nodes_look() -> None:
    gated = a_request_object(spec={"schedulingGates": [{"name": "quota"}]})

    data = found(objects(gated))

    assert data["now"]["reason"] == "Gated"
    assert data["now"]["feasible"] == 2


def test_refusals_are_told_and_the_nodes_that_refused_are_out() -> None:
    refusal = {"node": "n1", "reason": "NoRoom", "time": timestamp(time.time())}

    data = found(objects(a_request_object(refusals=[refusal])))

    assert data["request"]["refusals"] == [refusal]
    assert data["nodes"][1]["why"] == "refused this request lately"


# What was found


def test_a_request_is_found_by_namespace_and_name() -> None:
    stored = objects(
        a_request_object("r1"), a_request_object("r10"), a_request_object("r1", namespace="b")
    )

    found_one = stored.request("b", "r1")
    assert found_one is not None
    assert (found_one.namespace, found_one.name) == ("b", "r1")
    assert stored.request("default", "r2") is None
    assert stored.request_names("default") == ["r1", "r10"]


def test_nodes_that_never_reported_or_are_stale_are_out() -> None:
    stored = objects(a_request_object())
    entry = stored.request("default", "r1")
    assert entry is not None
    state = state_of(stored)
    state.take_reports([reports(stamp_ms() - 1_000_000, "n1")])

    data = as_data(explain(state, entry))

    assert data["now"]["reason"] == "StaleMetrics"
    assert {node["why"] for node in data["nodes"]} == {"metrics never reported", "stale metrics"}


def test_a_node_that_others_refused_lately_is_quarantined_here_too() -> None:
    now = timestamp(stamp_ms() / 1000)
    refused = [
        a_request_object(f"old{n}", phase="Succeeded", refusals=[{"node": "n1", "time": now}])
        for n in range(5)
    ]

    data = found(objects(a_request_object(), *refused))

    assert data["now"]["wouldTake"] == "n2"
    assert [node.get("why") for node in data["nodes"]] == [None, "quarantined after refusals"]


async def test_without_redis_every_node_counts_as_alive_and_it_is_said() -> None:
    stored = objects(a_request_object())
    entry = stored.request("default", "r1")
    assert entry is not None
    state: LiveState = state_of(stored)

    await read_reports("redis://:secret@127.0.0.1:1/0", "both", state)
    data = as_data(explain(state, entry))

    assert data["now"]["feasible"] == 2
    assert "127.0.0.1:1/0" in data["metricsUnknown"]
    assert "secret" not in data["metricsUnknown"]
    assert "reportAgeSeconds" not in as_data_of_node(explain(state, entry), "n1")["node"]["facts"]


def test_plugins_that_only_the_operator_can_ask_are_named_and_left_out() -> None:
    mine = a_profile(default=True, filters=[{"name": "licence", "type": "python"}])

    data = found(objects(a_request_object(cpu="6"), profiles=(mine,)))

    assert data["notAsked"] == ["licence"]
    assert data["now"]["feasible"] == 1
    assert "problems" not in data["policy"]
