from __future__ import annotations

import json
from pathlib import Path

import pytest

from cubesched.cli import main
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS, SCORES


def test_all_plugins_are_listed_with_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].split() == ["KIND", "NAME", "WHAT"]
    assert max(map(len, lines)) <= 80
    named = [line.split()[1] for line in lines[1:] if not line.startswith(" ")]
    assert named == [*(s.name for s in (*GUARDS, *CONSTRAINTS)), *FILTERS, *SCORES]


def test_one_plugin_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "resource_fit_score"]) == 0
    out = capsys.readouterr().out

    assert out.startswith("resource_fit_score: a score\n\nPack nodes tightly and evenly.\n")
    assert "\n  imbalance_penalty: number, default 0.5, 0 to 100\n      How many points" in out


def test_tables_in_a_text_become_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "real_time_weighted_average"]) == 0
    out = capsys.readouterr().out

    assert "\n  cpu_load: load / cpus\n" in out
    assert "|" not in out
    assert "default [mvm_num, local_create_num, cpu_util, quota_mem_usage]" in out


def test_the_same_comes_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "-o", "json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    assert main(["plugins", "scarce_resource", "-o", "json"]) == 0
    one = json.loads(capsys.readouterr().out)

    assert one in everything
    assert one["arguments"] == [
        {
            "name": "labels",
            "type": "list of strings",
            "default": ["gpu"],
            "bounds": "at least 1 entry",
            "text": "Label keys that mark a scarce node.",
            "required": False,
        }
    ]


def test_an_unknown_name_is_refused_with_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "image_scor"]) == 2

    assert capsys.readouterr().err == (
        'cubesched: there is no plugin "image_scor"; did you mean "image_score"?\n'
    )


PACKAGE = Path(__file__).parents[3] / "deploy" / "examples" / "python-plugin"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example package, as an installer would lay it out, and one that cannot be imported."""
    (tmp_path / "rack_plugins.py").write_text((PACKAGE / "rack_plugins.py").read_text())
    for name, entry in (("rack-plugins", "rack_pace = rack_plugins:RackPace"),
                        ("broken", "nothing = no_such_module:Thing")):  # fmt: skip
        info = tmp_path / f"{name.replace('-', '_')}-1.0.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        (info / "entry_points.txt").write_text(f"[cubesched.plugins]\n{entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_what_installed_packages_offer_is_listed_with_its_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plugins", "rack_pace"]) == 0
    told = capsys.readouterr()

    assert told.out.startswith("rack_pace: a filter in Python, from rack-plugins 1.0.0\n\nKeeps ")
    assert "\n  most: " in told.out
    assert told.err.startswith('warning: "nothing" (no_such_module:Thing of broken 1.0.0) cannot')
    assert told.err.count("\n") == 1

    assert main(["plugins", "rack_pace", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["package"] == "rack-plugins 1.0.0"
