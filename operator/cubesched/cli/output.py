"""Answers on stdout: an aligned table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import yaml

from cubesched.cli import Parser

FORMATS = ("table", "json", "yaml")


def add_output_option(parser: Parser) -> None:
    """Add `-o table|json|yaml`."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")


def print_data(data: object, output: str) -> None:
    """Print plain data as JSON or YAML."""
    if output == "json":
        print(json.dumps(data, indent=2))
    else:
        print(yaml.safe_dump(data, sort_keys=False), end="")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, columns aligned left and three spaces apart, as kubectl does."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("   ".join(cells).rstrip())


def age(seconds: float) -> str:
    """Write an age as kubectl does: `12s`, `7m`, `3h`, `2d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(max(seconds, 0))}s"
