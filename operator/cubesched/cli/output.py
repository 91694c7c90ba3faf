"""Answers on stdout: an aligned table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

import yaml

from cubesched.cli import Parser

FORMATS = ("table", "json", "yaml")
UNBOUNDED = 1 << 16
"""The width of what is no terminal: nothing is wrapped."""
_NARROWEST = 20
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C, where it was built: 10 x faster


def add_output_option(parser: Parser) -> None:
    """Add `-o table|json|yaml`."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")


def print_data(data: object, output: str) -> None:
    """Print plain data as JSON or YAML."""
    if output == "json":
        print(json.dumps(data, indent=2))
    else:
        print(yaml.dump(data, Dumper=_DUMPER, sort_keys=False), end="")


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = UNBOUNDED
) -> None:
    """Print rows under a header, columns aligned left and three spaces apart, as kubectl does.

    What does not fit into `width` is wrapped in the last column.
    """
    lines = [header, *rows]
    *widths, _ = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (cell.ljust(column) for cell, column in zip(line[:-1], widths, strict=True))
        print_wrapped("".join(f"{cell}   " for cell in cells), line[-1], width=width)


def print_wrapped(label: str, text: str, *, width: int) -> None:
    """Print a text beside a label, every line of it in the column where it begins."""
    room = max(_NARROWEST, width - len(label))
    first, *others = textwrap.wrap(text, room) or [""]
    print(f"{label}{first}".rstrip())
    for line in others:
        print(f"{' ' * len(label)}{line}")


def terminal_width() -> int:
    """Return how many columns there are: $COLUMNS, else the terminal's; UNBOUNDED in a pipe."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return UNBOUNDED
    return shutil.get_terminal_size().columns


def shortened_name(name: str, most: int) -> str:
    """Cut the middle out of a long name: the beginning and the end tell names apart."""
    if len(name) <= most:
        return name
    head = (most - 2) // 2
    return f"{name[:head]}..{name[len(name) - (most - 2 - head) :]}"


def age(seconds: float) -> str:
    """Write an age as kubectl does: `12s`, `7m`, `3h`, `2d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(max(seconds, 0))}s"
