"""`cubesched import`: CubeMaster's configuration file as manifests that place as it did."""  # noqa: N999

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from cubesched.cli import Subparsers, add_command
from cubesched.core.errors import UsageError
from cubesched.plugins.listing import Surroundings
from cubesched.policy.migration.manifests import document, file_name
from cubesched.policy.migration.migrate import Migration, migrate
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.yamltree import MAX_BYTES
from cubesched.policy.objects import PROFILE_KIND
from cubesched.settings import from_environment

_DETAILS = """
Reads the whole file or only its scheduler part, with Profiles or with the filter, score and
postscore blocks, and writes one SchedulerConfig and a SchedulerProfile for each Profile. A key that
is not carried over as it stands becomes a comment in the manifest that says why; what is most
important of it is said on stderr as well. The manifests are compiled before they are written: where
the compiler refuses them nothing is written. No cluster is needed, and the same file becomes the
same manifests."""

_EXAMPLES = """\
  cubesched import cubemaster.yaml                    print the manifests
  cubesched import cubemaster.yaml -o policy/         one file an object, in a directory
  cubesched import cubemaster.yaml | kubectl apply --dry-run=server -f -

exit codes: 0 written, 1 the compiler refuses what the file says, 2 wrong use or unreadable file
"""

_TOLD: Final = (Fate.LOST, Fate.CHANGED)


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "import", details=_DETAILS, examples=_EXAMPLES)
    parser.add_argument("conf", metavar="CONF.yaml", help="CubeMaster's file; - reads stdin")
    parser.add_argument(
        "-o", "--output", default="-", metavar="DIR|-", help="where to write; default: -, stdout"
    )
    parser.add_argument(
        "--plugin-directory",
        metavar="DIR",
        help="where the operator has the sockets of grpc plugins (env CUBESCHED_PLUGIN_DIRECTORY)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Translate, compile, write, and say what became of the keys."""
    name, text = _read(args.conf)
    try:
        directory = args.plugin_directory or from_environment(os.environ).plugin_directory
        migration = migrate(text, Surroundings(plugin_directory=directory))
    except UsageError as error:
        raise UsageError(f"{name} {error}") from None
    if migration.compiled.problems:
        _tell([f"{name}: the compiler refuses what it becomes, nothing is written:"])
        _tell(f"  {problem.text}" for problem in migration.compiled.problems)
        return 1
    _write(migration, args.output)
    _tell(_summary(name, migration))
    return 0


def _read(path: str) -> tuple[str, str]:
    """Return what to call the file, and its text."""
    name = "stdin" if path == "-" else path
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else _head(Path(path))
        if len(data) > MAX_BYTES:
            raise UsageError(f"{name} is larger than {MAX_BYTES >> 10} KiB: no configuration is")
        return name, data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _head(path: Path) -> bytes:
    """Return no more of a file than can be a configuration, and one byte."""
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _write(migration: Migration, output: str) -> None:
    if output == "-":
        sys.stdout.write("---\n".join(map(document, migration.manifests)))
        return
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for manifest in migration.manifests:
            (folder / file_name(manifest)).write_text(document(manifest), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None


def _summary(name: str, migration: Migration) -> Iterator[str]:
    notes = migration.notes
    profiles = [m.name for m in migration.manifests if m.kind == PROFILE_KIND]
    yield f"{name} becomes SchedulerConfig default and {_named(profiles)}"
    yield f"  {notes.carried} keys: carried over as they stand"
    for fate in Fate:
        found = list(notes.of(fate))
        if found:
            yield f"  {len(found)}: {fate.value}"
        if fate in _TOLD:
            yield from (f"    {note.short}" for note in found)
    yield from (f"  warning: {warning.text}" for warning in migration.compiled.warnings)


def _named(profiles: Sequence[str]) -> str:
    if not profiles:
        return "no SchedulerProfile"
    kind = PROFILE_KIND if len(profiles) == 1 else f"{PROFILE_KIND}s"
    return f"{kind} {', '.join(profiles)}"


def _tell(lines: Iterable[str]) -> None:
    sys.stderr.writelines(f"{line}\n" for line in lines)
