"""Files, folders and standard input: what there is to read, and its text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cubesched.core.errors import UsageError
from cubesched.policy.objects import printable

STDIN: Final = "-"
ENDINGS: Final = (".yaml", ".yml")
MAX_FILES: Final = 10_000
MAX_FILE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One file; `problem` says why it holds no text that can be read."""

    name: str
    """As messages name it: the shortest spelling of the path as it was given, or stdin."""
    text: str
    problem: str = ""


def read_sources(paths: Sequence[str]) -> Iterator[Source]:
    """Read all files, those of folders by name; raise UsageError where one cannot be opened."""
    for path in _files(paths):
        yield _read(path)


def _files(paths: Sequence[str]) -> list[str]:
    """Return every file once, in order."""
    found: dict[str, str] = {}
    for path in paths:
        for file in _below(path) if path != STDIN and os.path.isdir(path) else (path,):  # noqa: PTH112
            found.setdefault(file if file == STDIN else os.path.realpath(file), file)
            if len(found) > MAX_FILES:
                raise UsageError(f"more than {MAX_FILES} files; name fewer or smaller folders")
    return list(found.values())


def _below(folder: str) -> Iterator[str]:
    """Yield the YAML files of a folder and of all folders in it, but for hidden ones."""
    is_empty = True
    for where, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(where, name)  # noqa: PTH118 - names may hold any bytes
            if name.endswith(ENDINGS) and not name.startswith(".") and Path(path).is_file():
                is_empty = False
                yield path
    if is_empty:
        raise UsageError(f"{printable(folder)} holds no file that ends in {' or '.join(ENDINGS)}")


def _refuse(error: OSError) -> None:
    raise UsageError(_told(str(error.filename), error)) from error


def _read(path: str) -> Source:
    name = "stdin" if path == STDIN else os.path.normpath(path)
    try:
        # File 0 stays open for whoever reads it later.
        with open(0, "rb", closefd=False) if path == STDIN else Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(_told(path, error)) from error
    if len(raw) > MAX_FILE_BYTES:
        return Source(name, "", f"larger than {MAX_FILE_BYTES >> 20} MiB: not read")
    try:
        return Source(name, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Source(name, "", f"not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}")


def _told(path: str, error: OSError) -> str:
    return f"cannot read {printable(path)}: {error.strerror}"
