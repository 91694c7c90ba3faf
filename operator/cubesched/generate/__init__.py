"""Everything that is made from models and tables: CRDs, roles, admission rules, reference pages.

The files are committed; `check` tells where they differ from what the models say now.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cubesched.generate.admission import admission
from cubesched.generate.cel import cel_page
from cubesched.generate.crds import crd
from cubesched.generate.kinds import KINDS
from cubesched.generate.metrics import metrics_page
from cubesched.generate.migration import migration_page
from cubesched.generate.nodereport import nodereport_page
from cubesched.generate.plugins import plugins_page
from cubesched.generate.rbac import rbac
from cubesched.generate.reference import page
from cubesched.generate.yamltext import documents


def write(root: Path) -> list[Path]:
    """Write every generated file below `root`; return those whose text changed."""
    changed = []
    for name, text in files():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def check(root: Path) -> list[str]:
    """Return one line for each generated file that is missing, old, or no longer generated."""
    expected = dict(files())
    problems = [
        problem for name, text in expected.items() if (problem := _problem(root, name, text))
    ]
    strays = sorted(path.relative_to(root) for path in (root / "crds").glob("*"))
    problems += [
        f"{path}: no kind of this name exists: delete it" for path in strays if path not in expected
    ]
    return problems


def files() -> Iterator[tuple[Path, str]]:
    """Return every generated file, relative to the project's root, with its text."""
    for kind in KINDS:
        yield Path("crds", f"{kind.resource.plural}.yaml"), documents([crd(kind)])
        yield Path("docs", "reference", f"{kind.resource.kind.lower()}.md"), page(kind)
    for name, text in (
        ("cel", cel_page()),
        ("cubemaster", migration_page()),
        ("metrics", metrics_page()),
        ("nodereport", nodereport_page()),
        ("plugins", plugins_page()),
    ):
        yield Path("docs", "reference", f"{name}.md"), text
    yield Path("deploy", "rbac.yaml"), documents(rbac())
    yield Path("deploy", "admission.yaml"), documents(admission())


def _problem(root: Path, name: Path, text: str) -> str:
    """Return what is wrong with one file, naming its first line that differs; empty if nothing."""
    path = root / name
    if not path.is_file():
        return f"{name}: missing: run `cubesched generate`"
    found = path.read_text(encoding="utf-8")
    if found == text:
        return ""
    pairs = zip(found.splitlines(), text.splitlines(), strict=False)
    line = next((n for n, (old, new) in enumerate(pairs, 1) if old != new), None)
    where = f"{name}:{line}" if line else f"{name}: its end"
    return f"{where} differs from the models: run `cubesched generate`"
