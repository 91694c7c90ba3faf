"""`cubesched plugins`: what a Profile can list, and what stands in every pipeline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cubesched.cli import Subparsers, add_command
from cubesched.cli.output import (
    add_output_option,
    print_data,
    print_table,
    print_wrapped,
    terminal_width,
)
from cubesched.core.errors import UsageError
from cubesched.plugins.catalogue import Argument, PluginEntry, catalogue, packaged
from cubesched.plugins.python.installed import Installed
from cubesched.plugins.spelling import did_you_mean

_DETAILS = """
Guards and constraints are in every pipeline; filters and scores are what a SchedulerProfile lists
by name: the built-in ones, as in docs/reference/plugins.md, and those in Python that packages
offer which are installed beside this command. Of type expr and grpc there is no list: a Profile
holds the expression, or the socket of the server."""

_EXAMPLES = """\
  cubesched plugins                               all of them, a line each
  cubesched plugins real_time_weighted_average    its text, and every argument
  cubesched plugins -o json                       all of them as data
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "plugins", details=_DETAILS, examples=_EXAMPLES)
    parser.add_argument("name", nargs="?", metavar="NAME", help="one plugin, in full")
    add_output_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print all plugins or one."""
    entries = [*catalogue(), *_packaged()]
    if args.name is not None:
        entries = _named(args.name, entries)
    if args.output != "table":
        data = [_as_data(entry) for entry in entries]
        print_data(data[0] if args.name is not None else data, args.output)
    elif args.name is not None:
        _print_entry(entries[0])
    else:
        rows = [(entry.kind, entry.name, _what(entry)) for entry in entries]
        print_table(("KIND", "NAME", "WHAT"), rows, width=terminal_width())
    return 0


def _packaged() -> Iterator[PluginEntry]:
    """Yield what installed packages offer; say on stderr what is of no use."""
    for entry in packaged(Installed()):
        if isinstance(entry, str):
            print(f"warning: {entry}", file=sys.stderr)
        else:
            yield entry


def _named(name: str, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
    found = [entry for entry in entries if entry.name == name]
    if not found:
        hint = did_you_mean(name, [entry.name for entry in entries])
        raise UsageError(f'there is no plugin "{name}"; {hint}')
    return found


def _what(entry: PluginEntry) -> str:
    return f"{entry.summary} ({entry.package})" if entry.package else entry.summary


def _as_data(entry: PluginEntry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": entry.name,
        **({"package": entry.package} if entry.package else {}),
        "text": "\n".join(entry.lines),
        "arguments": [_argument_data(argument) for argument in entry.arguments],
    }


def _argument_data(argument: Argument) -> dict[str, Any]:
    data = asdict(argument)
    data["required"] = data.pop("is_required")
    return {key: value for key, value in data.items() if value not in (None, "")}


def _print_entry(entry: PluginEntry) -> None:
    width = terminal_width()
    source = f" in Python, from {entry.package}" if entry.package else ""
    print(f"{entry.name}: a {entry.kind}{source}\n")
    for line in _paragraphs(entry.lines):
        text = line.lstrip()
        print_wrapped(line[: len(line) - len(text)], text, width=width)
    if entry.arguments:
        print("\nArguments:")
    for argument in entry.arguments:
        print()
        print_wrapped("  ", f"{argument.name}: {_facts(argument)}", width=width)
        print_wrapped("      ", argument.text, width=width)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines that belong together as one, rows of tables and empty lines by themselves."""
    words: list[str] = []
    for line in lines:
        if not line or line.startswith("|"):
            yield from filter(None, (" ".join(words),))
            words = []
            if not line.startswith("|--"):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                yield f"  {': '.join(cells)}" if line else ""
        else:
            words.append(line)
    yield from filter(None, (" ".join(words),))


def _facts(argument: Argument) -> str:
    default = "required" if argument.is_required else f"default {_shown(argument.default)}"
    return ", ".join(filter(None, (argument.type, default, argument.bounds)))


def _shown(default: Any) -> str:
    """Write a default as a Profile spells it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, Mapping):
        return ", ".join(f"{key}: {value:g}" for key, value in default.items())
    if isinstance(default, list | tuple):
        return f"[{', '.join(map(str, default))}]"
    return f"{default:g}" if isinstance(default, int | float) else str(default)
