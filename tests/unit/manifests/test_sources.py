from __future__ import annotations

import os
from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.manifests.sources import MAX_FILE_BYTES, Source, read_sources


def names(*paths: str) -> list[str]:
    return [source.name for source in read_sources(paths)]


def test_folders_are_read_in_order_with_all_below_but_what_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("p/b.yml", "p/a.yaml", "p/c.json", "p/q/d.yaml", "p/.git/e.yaml", "p/.f.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("a: 1\n")
    os.mkfifo("p/waits.yaml")

    assert names("./p") == ["p/a.yaml", "p/b.yml", "p/q/d.yaml"]


def test_a_file_that_is_named_twice_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("a: 1\n")

    assert names("a.yaml", ".", "./a.yaml") == ["a.yaml"]


def test_links_among_folders_do_not_go_round(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    (tmp_path / "again").symlink_to(tmp_path)

    assert names(str(tmp_path)) == [str(tmp_path / "a.yaml")]


def test_a_file_named_as_such_may_end_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_bytes(b"\xef\xbb\xbf{}")

    assert list(read_sources([str(path)])) == [Source(str(path), "{}")]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"a: \xff", "not UTF-8: byte 0xff at 3"),
        (b"a" * (MAX_FILE_BYTES + 1), "larger than 8 MiB: not read"),
    ],
    ids=["bytes", "size"],
)
def test_what_holds_no_text_is_told(tmp_path: Path, raw: bytes, problem: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(raw)

    assert list(read_sources([str(path)])) == [Source(str(path), "", problem)]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere.yaml", "cannot read nowhere.yaml: No such file or directory"),
        ("a\nb", "cannot read a?b: No such file or directory"),
        ("empty", "empty holds no file that ends in .yaml or .yml"),
    ],
)
def test_what_cannot_be_opened_is_told_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()

    with pytest.raises(UsageError) as caught:
        list(read_sources([path]))
    assert words in str(caught.value)
