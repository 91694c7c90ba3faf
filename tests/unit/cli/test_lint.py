from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.unit.manifests.looking import PROFILE, profile

from cubesched.cli import main

WRONG = f"{PROFILE}  order: 1,5\n"
WARNED = f"{PROFILE}  scores: []\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lint(*arguments: str, **files: str) -> int:
    """Write NAME=TEXT as NAME.yaml, and run the command."""
    for name, text in files.items():
        Path(f"{name}.yaml").write_text(text)
    return main(["lint", *arguments])


def test_what_is_right_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("a.yaml", a=PROFILE) == 0

    assert capsys.readouterr().out == "1 object checked: nothing wrong\n"


def test_every_error_is_a_line_with_its_place_and_the_last_line_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lint(".", a=f"{WRONG}---\nkind: ConfigMap\n", b=profile("b")) == 1

    assert capsys.readouterr().out.splitlines() == [
        "a.yaml:6: SchedulerProfile/burst: spec.order: input should be a valid integer, not '1,5'",
        "a.yaml: skipped: 1 x ConfigMap",
        "2 objects checked: 1 error",
    ]


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_warnings_fail_only_when_that_is_asked(
    capsys: pytest.CaptureFixture[str], strict: tuple[str, ...], code: int
) -> None:
    assert lint("a.yaml", *strict, a=WARNED) == code

    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("a.yaml:6: warning: SchedulerProfile/burst: ")
    assert last == "1 object checked: 1 warning"


def test_the_same_comes_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("a.yaml", "-o", "json", a=f"{WRONG}---\nkind: ConfigMap\n") == 1
    data = json.loads(capsys.readouterr().out)
    assert lint("a.yaml", "-o", "yaml") == 1

    assert yaml.safe_load(capsys.readouterr().out) == data
    assert data == {
        "errors": 1,
        "warnings": 0,
        "findings": [
            {
                "severity": "error",
                "from": "file",
                "file": "a.yaml",
                "line": 6,
                "column": 3,
                "object": "SchedulerProfile/burst",
                "path": "spec.order",
                "message": "input should be a valid integer, not '1,5'",
            }
        ],
        "objects": [{"object": "SchedulerProfile/burst", "from": "file", "file": "a.yaml"}],
        "skipped": [{"file": "a.yaml", "kind": "ConfigMap", "documents": 1}],
    }


def test_github_gets_annotations_of_which_nothing_breaks_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a,b:c%.yaml").write_text(f'{PROFILE}  "50%\\n::error::x": 1\n')
    Path("none.yaml").write_bytes(b"\xff")

    assert lint(".", "-o", "github") == 1
    assert capsys.readouterr().out.splitlines() == [
        (
            "::error file=a%2Cb%3Ac%25.yaml,line=6,col=3,title=SchedulerProfile/burst"
            "::spec.50%25?::error::x: unknown field; known are default, failure, filters, mode,"
            " order, route, scores, selection"
        ),
        "::error file=none.yaml,title=cubesched lint::not UTF-8: byte 0xff at 0",
        "1 object checked: 2 errors",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.yaml",), "cannot read nowhere.yaml: No such file or directory"),
        ((".",), ". holds no file that ends in .yaml or .yml"),
        ((), "the following arguments are required: FILE"),
        (("a", "-o", "xml"), "invalid choice: 'xml'"),
        (("a", "--context", "c"), "--context is for --cluster"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert lint(*arguments) == 2

    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    config = {"clusters": [server], "contexts": [context], "current-context": "c"}
    Path("config").write_text(json.dumps({**config, "users": [{"name": "c", "user": {}}]}))

    assert lint("a.yaml", "--cluster", "--kubeconfig", "config", a=PROFILE) == 2
    assert capsys.readouterr().err.count("\n") == 1


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    root = Path(__file__).parents[3] / "operator"
    return subprocess.run(
        [sys.executable, "-m", "cubesched", "lint", *arguments],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": "ascii"},
        input=given,
        capture_output=True,
        check=False,
    )


def test_standard_input_is_a_file_and_any_terminal_can_show_it() -> None:
    answer = run("-", given=f"{PROFILE}  ordré: 1\n".encode())

    assert answer.stderr == b""
    assert answer.stdout.startswith(b"stdin:6: SchedulerProfile/burst: spec.ordr\\xe9: unknown")
    assert answer.returncode == 1


def test_a_name_of_any_bytes_can_be_shown() -> None:
    Path(os.fsdecode(b"\xff\n.yaml")).write_text(WRONG)

    answer = run(".")
    assert answer.stderr == b""
    assert answer.stdout.startswith(b"??.yaml:6: SchedulerProfile/burst: ")


def test_no_file_raises_anything(capsys: pytest.CaptureFixture[str]) -> None:
    """Good manifests with bytes taken out, put in and moved."""
    chance = random.Random(5)
    good = "---\n".join(
        (
            profile(
                spec="  default: true\n  filters:\n  - {name: q, type: expr, expr: 'node.x < 1'}\n"
                "  scores:\n  - {name: image_score, weight: 2, args: {a: [1, {b: 2}]}}\n"
            ),
            profile("default", kind="SchedulerConfig", spec="  overcommit: {cpu: 1.5}\n"),
            profile("n", kind="SandboxNode", spec="  capacity: {cpu: 1, memory: &m 1Gi}\n"),
            profile("r", kind="SandboxRequest", spec="  resources: {cpu: 1, memory: 2Gi}\n"),
        )
    ).encode()
    words = [b"\xff", b"\x00", b"[", b"{", b": ", b"- ", b"*m", b"&m ", b"null", b"1e999", b".nan"]
    words += [b"\n", b"\n  ", b"'", b'"', b"!!int ", b"<<: ", b"true", b"-1", b"\xe2\x80\xa8"]
    for _ in range(300):
        text = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(8)] = chance.choice(words)
        Path("a.yaml").write_bytes(bytes(text))
        assert main(["lint", "a.yaml"]) in (0, 1)
    assert capsys.readouterr().err == ""
