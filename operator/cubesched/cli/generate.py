"""`cubesched generate`: write the files that follow from the models, or check that they do."""

from __future__ import annotations

import argparse
from pathlib import Path

from cubesched.cli import Subparsers, add_command
from cubesched.core.errors import UsageError
from cubesched.generate import check, write

_DETAILS = """
The pydantic models and one table of permissions are the source; crds/, deploy/rbac.yaml,
deploy/admission.yaml and docs/reference/ follow from them and are committed. Works in a
checkout only."""

_EXAMPLES = """\
  cubesched generate             write them
  cubesched generate --check     exit 1 and name the files that differ; write nothing
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "generate", details=_DETAILS, examples=_EXAMPLES)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the files and name those that changed, or compare; exit 1 on a difference."""
    root = _checkout()
    if args.check:
        problems = check(root)
        for problem in problems:
            print(problem)
        return 1 if problems else 0
    for path in write(root):
        print(path.relative_to(root))
    return 0


def _checkout() -> Path:
    root = Path(__file__).parents[3]
    if not (root / "pyproject.toml").is_file():
        raise UsageError("`generate` works in a checkout of the project; this is an installed copy")
    return root
