from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from tests.unit.policy.migration.files import EVERYTHING, FACTORY, SHIPPED

from cubesched.cli import main
from cubesched.policy.migration.yamltree import MAX_BYTES

PAGE = Path(__file__).parents[3] / "docs" / "migrate-from-cubemaster.md"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "conf.yaml"
    path.write_text(EVERYTHING)
    return path


def test_manifests_go_to_stdout_and_what_is_missing_to_stderr(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(conf)]) == 0
    out, err = capsys.readouterr()

    assert [(obj["kind"], obj["metadata"]["name"]) for obj in yaml.safe_load_all(out)] == [
        ("SchedulerConfig", "default"),
        ("SchedulerProfile", "burst"),
        ("SchedulerProfile", "rest"),
    ]
    first, *rest = err.splitlines()
    assert first == f"{conf} becomes SchedulerConfig default and SchedulerProfiles burst, rest"
    assert "    line 17, scheduler.pre_select_num: all nodes are looked at" in rest


def test_a_directory_gets_one_file_an_object_and_the_same_ones_again(
    conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "policy"

    assert main(["import", str(conf), "-o", str(folder)]) == 0
    first = {path.name: path.read_text() for path in folder.iterdir()}
    assert main(["import", str(conf), "-o", str(folder)]) == 0

    assert sorted(first) == [
        "schedulerconfig-default.yaml",
        "schedulerprofile-burst.yaml",
        "schedulerprofile-rest.yaml",
    ]
    assert {path.name: path.read_text() for path in folder.iterdir()} == first
    assert capsys.readouterr().out == ""


def test_a_single_profile_and_none_are_named_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(SHIPPED)
    assert main(["import", str(path)]) == 0
    told = capsys.readouterr().err
    assert "default and no SchedulerProfile\n" in told
    assert "\n  warning: SchedulerConfig/default: GuardsAlwaysOn: " in told


def test_stdin_is_read_for_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FACTORY.encode())))

    assert main(["import", "-"]) == 0
    assert capsys.readouterr().err.startswith("stdin becomes SchedulerConfig default")


def test_what_the_compiler_refuses_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(
        "scheduler: {profiles: [{name: a}, {name: b, default: true, selection: {method: best}}]}"
    )

    assert main(["import", str(path), "-o", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()

    assert out == ""
    assert not (tmp_path / "out").exists()
    assert err.splitlines() == [
        f"{path}: the compiler refuses what it becomes, nothing is written:",
        "  SchedulerProfile/a: spec.route: needs instanceTypes or labels, unless default is true",
        (
            "  SchedulerProfile/b: spec.selection.method: input should be 'highest', 'spread' or"
            " 'random', not 'best'"
        ),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "is no text in UTF-8"),
        (b"#" * (MAX_BYTES + 1), "is larger than 256 KiB"),
        (b"a: [", "is not YAML: line 1: "),
        (b"a: 1", "is no configuration of CubeMaster"),
    ],
)
def test_an_unreadable_file_is_one_line(
    content: bytes | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    if content is not None:
        path.write_bytes(content)

    assert main(["import", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cubesched: {path} {why}")


def test_a_socket_must_be_where_the_operator_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    entry = "{name: p, type: grpc, socket_path: 'unix:///srv/plugins/p.sock'}"
    path.write_text(f"scheduler: {{profiles: [{{name: a, default: true, filters: [{entry}]}}]}}")

    assert main(["import", str(path)]) == 1
    assert "spec.filters[0].socketPath: " in capsys.readouterr().err
    assert main(["import", str(path), "--plugin-directory", "/srv/plugins"]) == 0


def test_a_directory_that_cannot_be_written_is_one_line(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(conf), "-o", str(conf)]) == 2
    assert "cannot be written: " in capsys.readouterr().err


def test_the_page_shows_what_its_example_becomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text()
    source, manifests = (
        page.partition(f"```{language}\n")[2].partition("```")[0] for language in ("yml", "yaml")
    )
    told = page.partition("-o policy/\n")[2].partition("$ ls")[0]
    monkeypatch.chdir(tmp_path)
    Path("cubemaster.yaml").write_text(source)

    assert main(["import", "cubemaster.yaml"]) == 0
    assert capsys.readouterr() == (manifests, told)
