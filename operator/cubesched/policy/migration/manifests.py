"""The objects as YAML, each with comments for what did not carry over as it stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import yaml
from typing_extensions import override

from cubesched.policy.migration.migrate import Manifest
from cubesched.policy.migration.notes import Fate, Note

_WIDTH = 100


def document(manifest: Manifest) -> str:
    """Return one object with its comments, most important first."""
    lines = [*_comments(manifest.notes)]
    text = yaml.dump(
        manifest.body, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True
    )
    return "".join(f"{line}\n" for line in lines) + text


def file_name(manifest: Manifest) -> str:
    """Return the name of the object's own file."""
    return f"{manifest.kind.lower()}-{manifest.name}.yaml"


def _comments(notes: Iterable[Note]) -> Iterator[str]:
    order = list(Fate)
    for note in sorted(notes, key=lambda note: (order.index(note.fate), note)):
        yield f"# {note.text}"


class _Dumper(yaml.SafeDumper):
    """Writes every value out, however often it occurs."""

    @override
    def ignore_aliases(self, data: object) -> bool:
        return True
