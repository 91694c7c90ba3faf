"""Whole files: what they become compiles, places as before, and says what is missing."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import yaml
from tests.unit.builders import a_node, a_request, a_snapshot
from tests.unit.policy.migration.files import (
    DOCUMENTED,
    EVERYTHING,
    FACTORY,
    SHIPPED,
    config_of,
    manifests_of,
    notes_of,
)

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.errors import UsageError
from cubesched.policy.compiler import compile_set
from cubesched.policy.migration.keys import KEYS
from cubesched.policy.migration.manifests import document
from cubesched.policy.migration.migrate import migrate
from cubesched.policy.policyset import CompiledProfile

GRPC = ("socket_path", "timeout", "circuit_breaker_failures", "circuit_breaker_cooldown")


def test_the_shipped_file_fills_the_first_node_as_before() -> None:
    assert config_of(SHIPPED) == {
        "guards": {"metricsMaxAge": "300s", "createConcurrencyLimit": 100},
        "legacy": {
            "filter": {"enableFilters": ["cpu", "mem", "template_locality", "realtime_create_num"]},
            "prioritySelectNum": 1,
        },
    }
    fleet = a_snapshot([a_node("node-b"), a_node("node-a"), a_node("node-c")])
    assert {_pick(SHIPPED, fleet, f"uid-{n}") for n in range(20)} == {"node-a"}


def test_nothing_but_the_scheduler_is_copied() -> None:
    migration = migrate(SHIPPED)

    written = "".join(map(document, migration.manifests)) + "".join(notes_of(migration))
    assert "secret" not in written
    assert "6379" not in written


def test_the_documented_start_becomes_the_legacy_block() -> None:
    factors = ["mvm_num", "local_create_num", "quota_cpu_usage", "quota_mem_usage"]

    assert config_of(DOCUMENTED)["legacy"] == {
        "score": {
            "enableScorers": ["real_time_weighted_average"],
            "resourceWeights": dict(zip(factors, (2, 3, 1, 1), strict=True)),
            "pluginConf": {
                "real_time_weighted_average": {"weight": 1.0, "enableWeightFactors": factors}
            },
        },
        "prioritySelectNum": 3,
    }


def test_the_factory_file_behaves_as_our_factory_profiles() -> None:
    ours = compile_set((), None).policy
    theirs = migrate(FACTORY).compiled.policy
    assert ours is not None
    assert theirs is not None

    assert [p.name for p in theirs.profiles] == ["burst-balance", "template-reuse", "mixed-binpack"]
    by_name = {profile.name.replace("_", "-"): profile for profile in ours.profiles}
    for profile in theirs.profiles:
        assert _behaviour(profile) == _behaviour(by_name[profile.name])


def _behaviour(profile: CompiledProfile) -> tuple[object, ...]:
    pipeline = profile.pipeline
    return (
        profile.route,
        profile.is_default,
        pipeline.filters,
        pipeline.scores,
        pipeline.selection,
        pipeline.filter_failure,
        pipeline.score_failure,
        pipeline.no_candidate,
        pipeline.adjustments,
    )


def test_every_key_of_the_table_is_read_or_noted() -> None:
    migration = migrate(EVERYTHING)
    assert migration.compiled.problems == ()

    found = {_general(path) for path in migration.notes.read}
    found |= {_general(note.path) for note in migration.notes.found}
    missing = [
        key.path
        for key in KEYS
        if key.path not in found
        and not key.path.endswith(GRPC)
        and key.path != "scheduler.profiles[]"
    ]
    assert missing == []
    assert not any("unknown key" in note for note in notes_of(migration))


def _general(path: str) -> str:
    path = re.sub(r"\[[0-9]+\]", "[]", path)
    path = re.sub(r"(profiles\[\])\.(filters|scores)\[\]", r"\1.filters[], scores[]", path)
    path = re.sub(r"(plugin_conf)\.[a-z_]+", r"\1.*", path)
    path = re.sub(r"(route\.labels)\.[a-z_]+", r"\1.*", path)
    return re.sub(r"(resource_weights)\.[a-z_]+", r"\1.*", path)


def test_every_setting_of_the_guide_has_its_place() -> None:
    config, burst, rest = manifests_of(EVERYTHING)

    assert dict(config.spec) == {
        "profileRouteLabelKeys": ["workload", "team"],
        "disableFactoryProfiles": True,
        "ignoreRedisAllocation": True,
        "overcommit": {"cpu": 3.0, "memory": 2.0},
        "guards": {
            "maxCpuUtilPercent": 90,
            "diskUsageMaxPercent": 85.5,
            "memoryReserved": "2048Mi",
            "maxSandboxesPerNode": 501,
            "metricsMaxAge": "90s",
            "createConcurrencyLimit": 40,
        },
        "score": {
            "resourceWeights": {"mvm_num": 2, "req_cpu": 0.01, "cpu_util": 3},
            "plugins": {
                "real_time_weighted_average": {"factors": ["mvm_num", "req_cpu"]},
                "multi_factor_weighted_average": {"factors": ["cpu_util"]},
                "image_score": {"factors": ["template_id"], "disabled": True},
            },
        },
        "legacy": {
            "filter": {
                "enableFilters": [
                    "cpu",
                    "mem",
                    "disk",
                    "node_safety",
                    "template_locality",
                    "realtime_create_num",
                    "scarce_resource",
                ]
            },
            "score": {
                "enableScorers": [
                    "real_time_weighted_average",
                    "multi_factor_weighted_average",
                    "image_score",
                ],
                "resourceWeights": {"mvm_num": 2, "req_cpu": 1, "cpu_util": 3, "template_id": 1},
                "pluginConf": {
                    "real_time_weighted_average": {
                        "weight": 1,
                        "enableWeightFactors": ["mvm_num", "req_cpu"],
                    },
                    "multi_factor_weighted_average": {
                        "weight": 0.5,
                        "enableWeightFactors": ["cpu_util"],
                    },
                    "image_score": {
                        "weight": 2,
                        "enableWeightFactors": ["template_id"],
                        "disable": True,
                    },
                },
            },
            "postscore": {
                "paramFactor": 0.03,
                "resourceWeights": {"active_whitelist": 2, "negative_whitelist": 4},
                "activeWhiteList": ["node-1"],
                "negativeWhiteList": ["node-2", "node-3"],
            },
            "prioritySelectNum": 5,
            "leastSelectName": "rw",
        },
    }
    assert dict(burst.spec) == {
        "order": 10,
        "route": {"instanceTypes": ["cube.*"], "labels": {"workload": "burst"}},
        "filters": [
            {"name": "skip-high-create", "type": "expr", "expr": "node.creating < 8"},
            {"name": "scarce_resource", "args": {"labels": ["gpu"]}},
        ],
        "scores": [
            {
                "name": "prefer-idle",
                "type": "expr",
                "expr": "node.cpu_util < 60.0 ? 80.0 : 20.0",
                "weight": 2,
                "defaultScore": 10,
            },
            {
                "name": "resource_fit_score",
                "args": {"imbalance_penalty": 1.0},
                "enabled": False,
                "weight": 1,
            },
        ],
        "selection": {"topN": 5, "method": "spread"},
        "failure": {"filter": "fail-open", "score": "fail-closed", "noCandidate": "backoff"},
    }
    assert dict(rest.spec) == {
        "order": 20,
        "route": {"labels": {"team": "a"}},
        "filters": [{"name": "scarce_resource", "args": {"labels": ["gpu"]}}],
        "scores": [
            {"name": "real_time_weighted_average", "weight": 0.67},  # its divisor: 2.01, there 3
            {"name": "multi_factor_weighted_average", "weight": 0.5},
            {"name": "image_score", "weight": 3},
        ],
        "failure": {"noCandidate": "fail"},
    }


def test_what_is_not_carried_over_stands_as_a_comment_at_its_object() -> None:
    config, burst, _ = map(document, manifests_of(EVERYTHING))

    assert "# line 17, scheduler.pre_select_num: not carried over: all nodes are looked at\n" in (
        config
    )
    assert (
        "# line 46, scheduler.postscore.negative_white_list: not carried over: no SandboxNode can"
        " be named node_4\n" in config
    )
    assert "#" not in burst
    assert yaml.safe_load(config)["spec"] == config_of(EVERYTHING)


def test_the_same_file_becomes_the_same_manifests() -> None:
    first, second = (list(map(document, manifests_of(EVERYTHING))) for _ in range(2))

    assert first == second


def test_the_scheduler_part_alone_is_enough() -> None:
    part = yaml.safe_dump(yaml.safe_load(EVERYTHING)["scheduler"])
    whole = yaml.safe_dump({"scheduler": yaml.safe_load(EVERYTHING)["scheduler"]})

    assert [m.body for m in manifests_of(part)] == [m.body for m in manifests_of(whole)]
    assert {n.path for n in migrate(part).notes.found} == {
        n.path for n in migrate(whole).notes.found
    }


@pytest.mark.parametrize(
    ("scheduler", "legacy"),
    [
        ("{}", None),
        ("{priority_select_num: 1}", None),
        ("{disable_factory_profiles: true}", {}),
        ("{disable_factory_profiles: true, priority_select_num: 2}", {"prioritySelectNum": 2}),
        ("{filter: {}}", {}),
        ("{filter: null}", None),
        ("{profiles: [{name: a, default: true}], filter: {enable_filters: [cpu]}}", None),
        ("{profiles: [{name: a, route: {instance_types: [x]}}]}", {}),
    ],
)
def test_legacy_stands_where_it_was_the_last_resort(scheduler: str, legacy: Any) -> None:
    assert config_of(f"scheduler: {scheduler}").get("legacy") == legacy


def test_unused_parts_are_told_apart_by_why() -> None:
    factory = notes_of(migrate("scheduler: {priority_select_num: 1}"))
    unused = notes_of(
        migrate(
            "scheduler: {profiles: [{name: a, default: true}], filter: {enable_filters: [cpu]},"
            " score: {enable_scorers: [image_score]}, postscore: {param_factor: 1}}"
        )
    )

    assert any("the factory Profiles run, there as here" in note for note in factory)
    assert any("filter: means nothing here: a Profile is the default" in note for note in unused)
    assert any("score.enable_scorers: means nothing here" in note for note in unused)
    assert any("postscore: not carried over: adjusts only what legacy" in note for note in unused)


def test_an_unknown_key_is_noted_with_the_likeliest_one() -> None:
    notes = notes_of(migrate("scheduler:\n  node_max_cpu_utl: 50\n  colour: red\n"))

    assert (
        "line 2, scheduler.node_max_cpu_utl: not carried over: unknown key; did you mean"
        ' "node_max_cpu_util"?' in notes
    )
    assert "line 3, scheduler.colour: not carried over: unknown key" in notes


def test_what_the_compiler_refuses_is_a_problem() -> None:
    profile = (
        "{name: a, default: true, filters: [{name: f, type: expr, expr: 'node.reserved < 8'}]}"
    )
    migration = migrate(f"scheduler: {{profiles: [{profile}]}}")

    (problem,) = migration.compiled.problems
    assert problem.text.startswith("SchedulerProfile/a: spec.filters[0].expr 1:")
    assert "reserved" in problem.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no mapping"),
        ("[1, 2]", "holds no mapping"),
        ("just text", "holds no mapping"),
        ("a: 1", "neither scheduler nor any key of it"),
        ("a: [", "is not YAML: line 1:"),
        ("a: &x [*x]", "nested more than 40 levels deep"),
        ("\x00", "is not YAML"),
        ("--- a: 1\n--- b: 2", "is not YAML"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_configuration_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        migrate(text)


def test_aliases_cannot_blow_the_file_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 9)]

    with pytest.raises(UsageError, match="aliases counted"):
        migrate("\n".join(lines))


def test_merged_mappings_count() -> None:
    text = "base: &b {node_max_mvm_num: 7}\nscheduler: {<<: *b, filter: {}}"

    assert config_of(text)["guards"] == {"maxSandboxesPerNode": 7}


ODD = (
    *("~", "[]", "{}", "-1", "0", "1e400", ".nan", ".inf", "true", "''", "2001-99-99", "!!int x"),
    *("[~, {}, [1]]", "{a: {b: [c]}}", "!!python/object:os.system x", "0x10", "1:30", "\u00e9"),
    *("99999999999999999999999", "[{name: ~}]", "[{name: [1]}, 7]", "!!binary '??'", "? [k]"),
)


def test_no_value_anywhere_raises_anything_but_a_sentence() -> None:
    rng = random.Random("import")
    lines = EVERYTHING.splitlines()
    refused = 0
    for _ in range(150):
        broken = list(lines)
        for _ in range(rng.randint(1, 3)):
            index = rng.randrange(len(broken))
            head, colon, _ = broken[index].partition(": ")
            if colon:
                broken[index] = f"{head}: {rng.choice(ODD)}"
            elif rng.random() < 0.3:
                del broken[index]
        try:
            migration = migrate("\n".join(broken))
        except UsageError:
            refused += 1
        else:
            for manifest in migration.manifests:
                assert yaml.safe_load(document(manifest)) == manifest.body
    assert 5 < refused < 145


def _pick(text: str, fleet: Any, uid: str) -> str:
    policy = migrate(text).compiled.policy
    assert policy is not None
    request = a_request(uid)
    pipeline = policy.route(request)
    assert pipeline is not None
    decision = decide(fleet, request, pipeline)
    assert isinstance(decision, Placed)
    return decision.node
