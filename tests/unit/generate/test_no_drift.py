"""The committed files are what the models say now, byte for byte."""

from __future__ import annotations

from pathlib import Path

from cubesched.generate import check, write

ROOT = Path(__file__).parents[3]


def test_every_generated_file_is_up_to_date() -> None:
    assert check(ROOT) == []


def test_a_missing_file_an_old_one_and_a_stray_one_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "deploy" / "rbac.yaml").unlink()
    (tmp_path / "crds" / "stray.yaml").touch()
    page = tmp_path / "docs" / "reference" / "sandboxnode.md"
    page.write_text(page.read_text().replace("# SandboxNode", "# Node"))

    assert check(tmp_path) == [
        "docs/reference/sandboxnode.md:2 differs from the models: run `cubesched generate`",
        "deploy/rbac.yaml: missing: run `cubesched generate`",
        "crds/stray.yaml: no kind of this name exists: delete it",
    ]


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    assert len(write(tmp_path)) == 15
    assert write(tmp_path) == []
