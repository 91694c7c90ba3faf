"""How an explanation reads in a terminal of 80 columns."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from tests.unit.app.test_explanation import found, objects
from tests.unit.fleet.objects import a_node_object, a_request_object

from cubesched.api.timestamps import timestamp
from cubesched.cli import explain, main
from cubesched.cli.explain_tables import print_explanation

READ = {"nodes": 2, "requests": 1, "seconds": 0.25}


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed(capsys: pytest.CaptureFixture[str], data: dict[str, Any]) -> str:
    print_explanation({**data, "read": READ})
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    return out


def test_one_that_waits_reads_from_what_it_asks_to_what_would_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {
        "type": "Scheduled",
        "status": "False",
        "reason": "NeverFits",
        "message": "0/2 nodes are available: even an empty node is too small.",
    }
    waits = a_request_object(
        cpu="12",
        conditions=[told],
        attempts=3,
        nextAttemptTime=timestamp(time.time() + 45.9),
    )

    # A busy machine takes seconds from the stamp to the print.
    out = re.sub("within [34][0-9]s", "within 45s", printed(capsys, found(objects(waits))))

    assert (
        out
        == """\
Request   default/r1 is Pending, 3 attempts, tried again within 45s
Asks for  cpu 12000m, memory 1Gi, instanceType cubebox
Was told  NeverFits: 0/2 nodes are available: even an empty node is too small.
Profile   main, the only Profile
Policy    revision {revision} (custom)
Now       0 of 2 nodes fit (NeverFits)

What would help, each line by itself:
  1 node would fit with cpu <= 8000m: n1

STAGE   PLUGIN   REJECTS   WHY
guard   cpu      2         insufficient cpu; nearest n1: needs 12000m, 8000m
                           free

NODE   FITS   SCORE   WHY
n1     no     -       cpu: needs 12000m, 8000m free
n2     no     -       cpu: needs 12000m, 4000m free

2 nodes and 1 requests read in 0.25 s
""".format(revision=found(objects(waits))["policy"]["revision"])
    )


def test_one_that_fits_is_told_where_and_by_which_scores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(capsys, found(objects(a_request_object(cpu="2"))))

    assert "Now       2 of 2 nodes fit; a decision would take n1\n" in out
    assert "n1     yes    84.38   least_allocated 84.38\n" in out
    assert "help" not in out


def test_one_that_is_placed_tells_what_was_recorded_and_how_its_node_looks_now(
    capsys: pytest.CaptureFixture[str],
) -> None:
    running = a_request_object(
        cpu="2",
        phase="Running",
        node="n2",
        reservation={},
        explanation="score 71.88 (least_allocated 71.88); 1 of 2 nodes feasible",
        policyRevision="0123456789ab",
    )

    out = printed(capsys, found(objects(running)))

    assert "Request   default/r1 is Running on n2, 0 attempts\n" in out
    assert "Chosen by score 71.88 (least_allocated 71.88); 1 of 2 nodes feasible\n" in out
    assert "what was recorded was decided by\n          0123456789ab\n" in out
    assert "without it, 2 of 2 nodes fit; n2 would take it again with score 71.88," in out


@pytest.mark.parametrize("node", ["", "n1"])
def test_one_that_cannot_be_resumed_says_what_is_missing_and_advises_no_other_node(
    capsys: pytest.CaptureFixture[str], node: str
) -> None:
    told = {
        "type": "ResumeBlocked",
        "status": "True",
        "reason": "InsufficientCapacity",
        "message": "n1: needs 4000m more cpu, 0m free",
    }
    paused = a_request_object(cpu="12", phase="Paused", node="n1", conditions=[told])

    out = printed(capsys, found(objects(paused), node=node))

    assert "Resuming  blocked, InsufficientCapacity: n1: needs 4000m more cpu, 0m free\n" in out
    assert "Paused    it can be resumed on n1 only, when that has the room\n" in out
    assert "would fit" not in out
    assert "would help" not in out


def test_long_names_are_cut_in_the_middle_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"ip-10-0-0-{number}.eu-central-1.compute.internal" for number in range(9)]
    nodes = [a_node_object(name) for name in names]

    out = printed(capsys, found(objects(a_request_object(cpu="12"), nodes=nodes), most=3))

    assert "\nip-10-0-0-0.e..pute.internal   no     -       cpu: needs 12000m, 8000m" in out
    assert "\nand 6 more; --all shows them\n" in out


def test_one_node_has_every_stage_and_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    node = a_node_object("n1", labels={"zone": "a"}, templates=["t1"])
    stored = objects(a_request_object(cpu="12", template="t2"), nodes=[node])

    out = printed(capsys, found(stored, node="n1", cpu_util_percent=12.0))

    assert "Node      n1: cpu 0m of 8000m taken, memory 0 of 16Gi, 0 of 3000 sandboxes," in out
    assert "guard        cpu                   NO: needs 12000m, 8000m free\n" in out
    assert "guard        mem                   passes\n" in out
    assert "guard        template_locality     NO: no local template\n" in out
    assert "No change of one thing alone would make a node fit." in out


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"schedulingGates": [{"name": "q"}]}, "Gated: held back by schedulingGates: q. But for"),
        ({"resources": {"cpu": "lots", "memory": "1Gi"}}, "InvalidSpec: spec.resources.cpu:"),
    ],
)
def test_what_stands_before_all_nodes_comes_first(
    capsys: pytest.CaptureFixture[str], spec: dict[str, Any], text: str
) -> None:
    out = printed(capsys, found(objects(a_request_object(spec=spec))))

    assert f"Now {text}" in " ".join(out.split())


def test_unknown_metrics_are_shouted(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(objects(a_request_object()))

    out = printed(capsys, {**data, "metricsUnknown": "Redis: no route, tried redis://r:1/0"})

    assert "Metrics   UNKNOWN: Redis: no route, tried redis://r:1/0. Nodes count as" in out


def test_what_does_not_exist_is_told_with_what_does() -> None:
    few, many = ["a", "b"], [f"node-{number:03}" for number in range(100)]

    assert explain._no_such("SandboxNode", "c", "", few) == (
        "there is no SandboxNode c; there are: a, b"
    )
    assert explain._no_such("SandboxNode", "nide-042", "", many) == (
        'there is no SandboxNode nide-042; did you mean "node-042"? There are 100'
    )
    assert explain._no_such("SandboxNode", "zzz", "", many).endswith("node-007 and 92 more")
    assert explain._no_such("SandboxRequest", "a/b", " in namespace a", []) == (
        "there is no SandboxRequest a/b: there is none in namespace a at all"
    )


@pytest.mark.parametrize("name", ["a/b/c", "/b", "a/", ""])
def test_a_name_of_another_form_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["explain", name]) == 2
    assert "is not of the form NAMESPACE/NAME" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_told_with_its_address(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}"
    )

    assert main(["explain", "r1", "--kubeconfig", str(config)]) == 2
    assert "cannot reach http://127.0.0.1:1" in capsys.readouterr().err
