"""The pages agree with the code they speak of, and every link leads somewhere."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cubesched.adapters.telemetry.table import METRICS
from cubesched.api.v1alpha1 import GUARDS
from cubesched.cli import Parser, run
from cubesched.core.decision import Reason
from cubesched.plugins.registry import FILTERS, SCORES

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
METRIC = re.compile(r"\b((?:cubesched|scheduler|sandbox)_[a-z]+_[a-z_]+)\b")


def _prose(page: Path) -> str:
    """Return the page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings make, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), flags=re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.replace(" ", "-") for text in kept}


def _links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        yield from ((page, target) for target in LINK.findall(_prose(page)))


@pytest.mark.parametrize(
    ("page", "target"),
    [pytest.param(p, t, id=f"{p.relative_to(ROOT)}->{t}") for p, t in _links() if "://" not in t],
)
def test_a_link_leads_to_a_file_and_a_heading(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    found = (page.parent / path).resolve() if path else page

    assert found.exists()
    assert not anchor or anchor in _anchors(found)


def test_every_metric_that_a_page_names_exists() -> None:
    known = {metric.name for metric in METRICS}
    text = "\n".join(page.read_text() for page in PAGES)
    named = {re.sub("_(bucket|count|sum)$", "", name) for name in METRIC.findall(text)}

    assert {name for name in named - known if not name.endswith("_")} == set()


def test_the_runbook_has_a_section_for_each_reason_to_wait() -> None:
    anchors = _anchors(ROOT / "docs" / "operate.md")

    for reason in set(Reason) - {Reason.NO_CANDIDATE}:
        assert reason.lower() in anchors


def test_the_page_on_requests_names_every_reason() -> None:
    text = (ROOT / "docs" / "requests.md").read_text()

    assert {reason for reason in Reason if f"`{reason}`" not in text} == set()


def test_the_page_on_policy_names_every_guard_filter_and_score() -> None:
    text = (ROOT / "docs" / "write-policy.md").read_text()

    missing = {name for name in (*GUARDS, *FILTERS, *SCORES) if f"`{name}`" not in text}
    assert missing == set()


def test_the_page_on_operating_names_every_flag_of_run() -> None:
    parser = Parser()
    run.register(parser.add_subparsers())
    text = (ROOT / "docs" / "operate.md").read_text()

    actions = parser._subparsers._group_actions[0].choices["run"]._actions  # type: ignore[union-attr,index]
    flags = {a.option_strings[0] for a in actions if not isinstance(a, argparse._HelpAction)}
    assert {flag for flag in flags if f"`{flag}`" not in text} == set()


def test_the_agent_that_the_page_shows_is_the_one_that_is_tested() -> None:
    example = (ROOT / "deploy" / "examples" / "agent" / "agent.py").read_text()

    assert f"```python\n{example}```" in (ROOT / "docs" / "node-agents.md").read_text()
