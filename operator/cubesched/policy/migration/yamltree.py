"""YAML as blocks that remember their lines and note what cannot be read.

The file is composed, never constructed: no tag builds an object, and no value can raise. What is
read is bounded in size, depth and number of values, aliases counted as often as they are used.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from cubesched.core.errors import UsageError
from cubesched.policy.migration.notes import Fate, Notes

MAX_BYTES: Final = 1 << 18
"""No configuration is larger; a caller reads no more."""
MAX_DEPTH: Final = 40
MAX_VALUES: Final = 20_000

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})
_FLOAT: Final = re.compile(r"[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as it is spelled: a version `1.10` is no number, a name `on` no boolean."""

    text: str
    kind: str
    """What YAML takes it for: str, int, float or bool."""


@dataclass(slots=True)
class Block:
    """One mapping of the file. A value that is null counts as left out."""

    path: str
    notes: Notes
    values: dict[str, Any] = field(default_factory=dict)
    """Blocks, lists and scalars, by key."""
    lines: dict[str, int] = field(default_factory=dict)
    line: int = 0
    taken: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        """Tell whether the key has a value."""
        return self.values.get(key) is not None

    def at(self, key: str) -> str:
        """Return the whole path of a key."""
        return ".".join(filter(None, (self.path, key)))

    def note(self, key: str, fate: Fate, why: str) -> None:
        """Note what became of a key."""
        self.taken.add(key)
        self.notes.add(fate, self.lines.get(key, self.line), self.at(key), why)

    def take(self, key: str) -> Any:
        """Return the value and count the key as carried over; None where it is left out."""
        if key not in self:
            return None
        self.taken.add(key)
        self.notes.read.add(self.at(key))
        return self.values[key]

    def block(self, key: str) -> Block | None:
        """Return the mapping of a key, None where it is left out or something else."""
        value = self.values.get(key)
        if isinstance(value, Block) or value is None:
            self.taken.add(key)
            return value
        self._mistyped(key, value, "a mapping")
        return None

    def blocks(self, key: str) -> list[Block]:
        """Return the mappings of a list."""
        found = []
        for index, value in enumerate(self._list(key)):
            if isinstance(value, Block):
                found.append(value)
            else:
                self._mistyped(f"{key}[{index}]", value, "a mapping")
        self.taken.add(key)
        return found

    def names(self, key: str) -> list[str]:
        """Return the texts of a list, without repetitions."""
        found: dict[str, None] = {}
        for index, value in enumerate(self._list(key)):
            if isinstance(value, Scalar):
                found[value.text] = None
            else:
                self._mistyped(f"{key}[{index}]", value, "a text")
        if key in self:
            self.take(key)
        return list(found)

    def number(self, key: str) -> float | int | None:
        """Return a finite number, however it is quoted."""
        scalar = self._scalar(key, "a number")
        number = number_of(scalar.text) if scalar else None
        if scalar and number is None:
            self.note(key, Fate.LOST, "must be a number")
        return number

    def flag(self, key: str) -> bool | None:
        """Return true or false."""
        scalar = self._scalar(key, "true or false")
        if scalar is None:
            return None
        if scalar.text.lower() in _TRUE | _FALSE:
            return scalar.text.lower() in _TRUE
        self.note(key, Fate.LOST, "must be true or false")
        return None

    def text(self, key: str) -> str | None:
        """Return a text as it is spelled."""
        scalar = self._scalar(key, "a text")
        return scalar.text if scalar else None

    def _scalar(self, key: str, wanted: str) -> Scalar | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, Scalar):
            self._mistyped(key, value, wanted)
            return None
        found: Scalar | None = self.take(key)
        return found

    def plain(self, key: str) -> Any:
        """Return whatever stands there as plain dicts, lists and values."""
        return _plain(self.take(key))

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if isinstance(value, list) or value is None:
            return value or []
        self._mistyped(key, value, "a list")
        return []

    def _mistyped(self, key: str, value: Any, wanted: str) -> None:
        self.note(key, Fate.LOST, f"must be {wanted}, not {_kind(value)}")


def read_tree(text: str, notes: Notes) -> Block:
    """Return the file's mapping; raises UsageError where it is none or is out of bounds."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        found = _Reader(notes).value(root, "", 0) if root is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise UsageError(f"is not YAML: {where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UsageError("is not YAML that can be read: nested too deeply") from None
    if not isinstance(found, Block):
        raise UsageError("holds no mapping: it is no configuration of CubeMaster")
    return found


class _Reader:
    """Turns nodes into values, within the bounds."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._left = MAX_VALUES

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise UsageError(f"holds more than {MAX_VALUES} values, aliases counted")
        if depth > MAX_DEPTH:
            raise UsageError(f"is nested more than {MAX_DEPTH} levels deep")
        if isinstance(node, yaml.MappingNode):
            return self._block(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, f"{path}[{index}]", depth + 1)
                for index, item in enumerate(node.value)
            ]
        kind = node.tag.removeprefix(_TAG)
        return None if kind == "null" else Scalar(str(node.value), kind)

    def _block(self, node: yaml.MappingNode, path: str, depth: int) -> Block:
        block = Block(path, self._notes, line=node.start_mark.line + 1)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                block.note("?", Fate.LOST, "a key must be a text")
                continue
            key = str(key_node.value)
            value = self.value(value_node, block.at(key), depth + 1)
            if key_node.tag == f"{_TAG}merge":
                self._merge(block, value)
            else:
                block.values[key] = value
                block.lines[key] = key_node.start_mark.line + 1
        return block

    def _merge(self, block: Block, value: Any) -> None:
        """Take what `<<` brings: the first to bring a key wins, the mapping's own before all."""
        for other in value if isinstance(value, list) else [value]:
            if isinstance(other, Block):
                block.values = {**other.values, **block.values}
                block.lines = {**other.lines, **block.lines}


def number_of(text: str) -> float | int | None:
    """Return a finite number, whole where it is written so; None where it is none."""
    digits = text.replace("_", "")
    if re.fullmatch(r"[-+]?[0-9]{1,18}", digits, re.ASCII):
        return int(digits)
    if len(digits) > 40 or not _FLOAT.fullmatch(digits):
        return None
    number = float(digits)
    return number if math.isfinite(number) else None


def _kind(value: Any) -> str:
    """Name what was found without repeating it: a file may hold secrets."""
    if isinstance(value, Block):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"


def _plain(value: Any) -> Any:
    if isinstance(value, Block):
        value.taken.update(value.values)
        return {key: _plain(item) for key, item in value.values.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, Scalar):
        return value
    if value.kind == "bool":
        return value.text.lower() in _TRUE
    number = number_of(value.text) if value.kind in ("int", "float") else None
    return value.text if number is None else number
