"""What happened to the keys of the file that is migrated, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

MAX_CHARACTERS = 400


class Fate(StrEnum):
    """What became of a key."""

    LOST = "not carried over"
    """It has an effect there, and none here."""
    CHANGED = "carried over with a difference"
    DEFAULT = "left out, and the default differs"
    IGNORED = "means nothing here"
    """It has no effect on placement, there or here."""


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """One key whose meaning did not carry over as it stands."""

    line: int
    path: str
    fate: Fate
    why: str

    @property
    def text(self) -> str:
        """The whole note on one line: `line 12, scheduler.pre_select_num: not carried over: …`."""
        return _one_line(f"{self._where}: {self.fate.value}: {self.why}")

    @property
    def short(self) -> str:
        """The same without its fate: `line 12, scheduler.pre_select_num: …`."""
        return _one_line(f"{self._where}: {self.why}")

    @property
    def _where(self) -> str:
        return f"line {self.line}, {self.path}" if self.line else self.path


@dataclass(slots=True)
class Notes:
    """Collects the notes of one file, and what was read without any."""

    found: list[Note] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    """The paths of all keys that were translated."""

    @property
    def carried(self) -> int:
        """How many keys were carried over as they stand."""
        return len(self.read - {note.path for note in self.found})

    def add(self, fate: Fate, line: int, path: str, why: str) -> None:
        """Note what became of one key."""
        note = Note(line, path, fate, why)
        if note not in self.found:
            self.found.append(note)

    def below(self, path: str) -> list[Note]:
        """Return the notes about this key and those below it, in the order of the file."""
        return sorted(note for note in self.found if _is_below(note.path, path))

    def of(self, fate: Fate) -> Iterator[Note]:
        """Yield the notes of one fate, in the order of the file."""
        return (note for note in sorted(self.found) if note.fate is fate)


def _one_line(text: str) -> str:
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def _is_below(path: str, parent: str) -> bool:
    return path == parent or path.startswith((f"{parent}.", f"{parent}["))
