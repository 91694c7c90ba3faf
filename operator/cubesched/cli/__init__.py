"""The command line: one module a command, imported only when it is the one that was called.

Each module has `register(subparsers)`, which adds its parser with a default `run(args) -> int`.
Exit codes: 0 fine, 1 a negative finding, 2 wrong use or something unreachable.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn, TypeAlias

from typing_extensions import override

from cubesched.adapters.version import program_version
from cubesched.core.errors import CubeschedError, UsageError

COMMANDS: Final[dict[str, str]] = {
    "demo": "place a thousand sandboxes on a real control plane on this machine",
    "run": "run one replica of the operator; start as many as you like",
    "explain": "say why a request waits, or why it went where it is",
    "plugins": "list every guard, constraint, filter and score, with their arguments",
    "lint": "check manifests of policy before they are applied, offline or over a cluster's",
    "import": "write what CubeMaster's configuration says as manifests",
    "drain": "empty a node: set its spec.drain and follow what the operator makes of it",
    "agent": "simulated nodes that register, report and run what is bound to them",
    "relay": "one watch of all requests for the agents of a large fleet",
    "local": "a real control plane on this machine: up, down, status, kubeconfig",
    "generate": "write what follows from the models: CRDs, roles, admission rules, reference",
}
"""Name and summary, in the order `--help` shows them; the module has the command's name."""

_EPILOG = """\
examples:
  cubesched local up               start etcd, kube-apiserver and Redis on this machine
  cubesched COMMAND --help         what a command does, with examples

exit codes: 0 fine, 1 a negative finding, 2 wrong use or something unreachable
"""


class _HelpLayout(argparse.RawDescriptionHelpFormatter):
    """Keeps our line breaks, and leaves room for the longest names beside their summaries."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, and which takes options only in full.

    A part of a name, as in `drain NODE --al`, may be another option than the one that was meant.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    @override
    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage and exiting."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - has no public name


def add_command(
    subparsers: Subparsers, name: str, *, summary: str = "", examples: str = "", details: str = ""
) -> Parser:
    """Add a command whose `--help` shows the summary, the details and then the examples.

    The summary of a command is the one in `COMMANDS`; an action of a command brings its own.
    """
    summary = summary or COMMANDS[name]
    return subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n{details}",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=_HelpLayout,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; anything raised on purpose becomes one line."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _replace_closed_streams()
    _let_any_text_be_shown()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except CubeschedError as error:
        sys.stderr.write(f"cubesched: {error}\n")
        return 2
    except BrokenPipeError:  # `cubesched ... | head`
        _discard_output()
        return 0
    except OSError as error:  # a full disk behind `cubesched ... > file`
        _discard_output()
        sys.stderr.write(f"cubesched: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("cubesched: interrupted\n")
        return 130


def _replace_closed_streams() -> None:
    """Give a program that was started with stdout or stderr closed somewhere to write to."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for good


def _let_any_text_be_shown() -> None:
    """Escape what the terminal's encoding does not have, instead of failing on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let what stdout still holds go nowhere, so that the interpreter's last flush succeeds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _dispatch(arguments: list[str]) -> int:
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        raise UsageError(_unknown(chosen))
    parser = _build_parser(chosen)
    try:
        args, unknown = parser.parse_known_args(arguments)
    except SystemExit as ending:  # --help and --version
        return int(ending.code or 0)
    if unknown:
        asked = " ".join(filter(None, (parser.prog, chosen)))
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}; see `{asked} --help`")
    if chosen is None:
        parser.print_help()
        return 0
    code: int = args.run(args)
    return code


def _build_parser(chosen: str | None) -> Parser:
    parser = Parser(
        prog=_program_name(),
        description="Places sandboxes on nodes by policies that are custom resources.",
        epilog=_EPILOG,
        formatter_class=_HelpLayout,
    )
    parser.add_argument("--version", action="version", version=f"cubesched {program_version()}")
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        if name == chosen:
            _load(name).register(subparsers)
        else:
            subparsers.add_parser(name, help=summary, add_help=False)
    return parser


def _load(command: str) -> ModuleType:
    try:
        return importlib.import_module(f"cubesched.cli.{command}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "cubesched":
            raise
        message = f"`cubesched {command}` needs the package {package!r}: install cubesched[local]"
        raise UsageError(message) from error


def _unknown(command: str) -> str:
    close = difflib.get_close_matches(command, COMMANDS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"unknown command {command!r}{hint} Commands: {', '.join(COMMANDS)}"


def _program_name() -> str:
    """Return what the person typed: kubectl calls its plugins as `kubectl-NAME`."""
    return "kubectl cubesched" if Path(sys.argv[0]).name == "kubectl-cubesched" else "cubesched"
