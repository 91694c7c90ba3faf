"""The pages agree with the code they speak of, and every link leads somewhere."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from cubesched.adapters.routes import publisher
from cubesched.adapters.telemetry.table import METRICS
from cubesched.api.quantity import MAX_CHARS
from cubesched.api.v1alpha1 import GUARDS
from cubesched.api.v1alpha1.request import SandboxRequestSpec
from cubesched.app import health
from cubesched.cli import Parser, lint, main, relay, run
from cubesched.core.decision import Reason, ResumeReason
from cubesched.core.selection import OWN_NODES_WINDOW
from cubesched.fleet.metrics import SKEW_SECONDS
from cubesched.fleet.metrics_layout import DTYPE
from cubesched.generate.agent_rules import AGENT_TRANSITIONS
from cubesched.handlers import node_statuses
from cubesched.handlers.node_conditions import CONDITIONS
from cubesched.handlers.node_status import SCHEDULABLE
from cubesched.manifests.judging import PLUGIN_NOT_INSTALLED
from cubesched.plugins.registry import FILTERS, SCORES
from cubesched.policy.lints import DOMINATING_SHARE, LINTS
from cubesched.relay import fanout, freshness, server, watches
from cubesched.relay import process as relay_process
from cubesched.scheduling import (
    attempts,
    draining,
    membership,
    pace,
    quarantines,
    queue,
    reporter,
    reservations,
    resuming,
)
from cubesched.settings import OperatorSettings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
METRIC = re.compile(r"\b((?:cubesched|scheduler|sandbox)_[a-z]+_[a-z_]+)\b")


NUMBERS = [
    ("how-it-works", f"Lease of {membership.LEASE_SECONDS} seconds"),
    ("how-it-works", f"at most {pace.MOST_UNRESOLVED} unresolved reservations"),
    ("how-it-works", f"more than {pace.SLOW_STREAM_SECONDS * 1000:g} ms behind"),
    ("how-it-works", f"at more than {pace.STUCK_STREAM_SECONDS:g} seconds"),
    ("how-it-works", f"leaves unresolved for {reservations.OVERDUE_SECONDS:g} seconds"),
    ("how-it-works", f"{reservations.OVERDUE_PER_RANK_SECONDS:g} second a rank"),
    ("how-it-works", {3: "at most three times"}[reservations.MAX_MOVES]),
    ("node-agents", f"for {attempts.REFUSAL_SECONDS / 60:g} minutes"),
    ("node-agents", f"more than {SKEW_SECONDS:g} seconds ahead"),
    ("node-agents", f"is {DTYPE.itemsize} bytes"),
    ("operate", f"[{DTYPE.itemsize} bytes]"),
    ("operate", f"for {membership.LEASE_SECONDS} seconds"),
    ("operate", f"reserved after {reservations.OVERDUE_SECONDS:g} seconds"),
    ("operate", f"at most {OperatorSettings().stop_seconds:g} seconds for what became"),
    ("operate", f"for {health.SILENT_SECONDS:g} seconds"),
    ("operate", f"no turn for {health.BEAT_SECONDS:g} seconds"),
    ("runbook", f"less than {reporter.FIRST_SECONDS:g} seconds shows none"),
    ("runbook", f"more than {SKEW_SECONDS:g} seconds ahead"),
    ("relay", f"for at most {freshness.PATIENCE_SECONDS:g} seconds; then"),
    ("relay", f"takes nothing for {server.WRITE_SECONDS:g} seconds"),
    ("relay", {1 << 20: "when a MiB waits"}[watches.MOST_PENDING_BYTES]),
    ("relay", f"`/readyz` red within {relay_process.BEHIND_SECONDS:g} seconds"),
    ("relay", f"at most {fanout.MOST_WATCHES_PER_NODE} watches of one node"),
    ("runbook", f"held for {queue.CONFLICT_FIRST_SECONDS * 1000:g} ms, doubled"),
    ("runbook", f"up to {queue.CONFLICT_LAST_SECONDS:g} s"),
    ("runbook", {3: "up to three others"}[reservations.MAX_MOVES]),
    ("nodes", f"request for {attempts.REFUSAL_SECONDS / 60:g} minutes"),
    ("nodes", f"At most {draining.EVICTIONS_PER_NODE} sandboxes are being stopped"),
    ("nodes", f"and {draining.EVICTIONS_IN_ALL} in all"),
    ("nodes", f"longer than {draining.EVICTION_SECONDS:g} seconds no longer"),
    ("operate", f"every {publisher.COMPARE_SECONDS / 60:g} minutes, a replica compares"),
    ("operate", f"hash `{publisher.KEY}`, one field a sandbox"),
    ("nodes", f"has refused {quarantines.LEAST_REFUSALS} times within"),
    ("nodes", f"within {quarantines.WINDOW_SECONDS / 60:g} minutes, by at least"),
    ("nodes", f"at least {quarantines.LEAST_REQUESTS} different requests"),
    ("nodes", f"nothing new for {quarantines.FIRST_SECONDS:g} seconds"),
    ("nodes", f"up to {quarantines.LONGEST_SECONDS / 60:g} minutes"),
    ("nodes", f"one node in {quarantines.MOST_SHARE} (and always one)"),
    ("nodes", f"most {node_statuses.VERDICTS_PER_SECOND:g} times a second"),
    ("nodes", f"{node_statuses.ALLOCATED_PER_SECOND:g} for changes of what is allocated"),
    ("nodes", f"{node_statuses.DATES_PER_SECOND:g} for the times of reports"),
    ("requests", f"hash `{publisher.KEY}` in Redis"),
    ("runbook", f"at the latest after {resuming.FLUSHES} times `flushInterval`"),
    ("runbook", f"at most once in {resuming.TOLD_AGAIN_SECONDS:g} seconds."),
    ("requests", {1.0: "at most once a second"}[resuming.LEAST_SECONDS]),
    ("requests", f"at most {MAX_CHARS} characters"),
    ("requests", f"after {reporter.FIRST_SECONDS:g} seconds of waiting"),
    ("requests", f"once in {reporter.AGAIN_SECONDS:g} seconds"),
    ("write-policy", f"last {attempts.REFUSAL_SECONDS / 60:g} minutes"),
    ("write-policy", f"more than {DOMINATING_SHARE * 100:g} % of all weight"),
    ("write-policy", f"`max(topN, {OWN_NODES_WINDOW})`"),
]
"""What a page says of a number, made from the constant that it is."""


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


def test_the_runbook_has_a_section_for_each_reason_not_to_run() -> None:
    anchors = _anchors(ROOT / "docs" / "runbook.md")

    for reason in {*Reason, *ResumeReason} - {Reason.NO_CANDIDATE}:
        assert reason.lower() in anchors


def test_the_page_on_requests_names_every_reason() -> None:
    text = (ROOT / "docs" / "requests.md").read_text()

    reasons = {*Reason, *ResumeReason}
    assert {reason for reason in reasons if f"`{reason}`" not in text} == set()


def test_the_page_on_policy_names_every_guard_filter_and_score() -> None:
    text = (ROOT / "docs" / "write-policy.md").read_text()

    missing = {name for name in (*GUARDS, *FILTERS, *SCORES) if f"`{name}`" not in text}
    assert missing == set()


def test_the_page_on_plugins_shows_the_code_that_is_tested() -> None:
    text = (ROOT / "docs" / "write-plugins.md").read_text()
    files = [*EXAMPLES.rglob("*.py"), *EXAMPLES.rglob("pyproject.toml")]
    tested = "".join(file.read_text() for file in files)

    shown = re.findall(r"^```(?:python|toml)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert len(shown) >= 5
    assert [code for code in shown if code not in tested] == []


def test_the_tests_of_the_example_of_plugins_pass() -> None:
    folder = EXAMPLES / "python-plugin"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]

    answer = subprocess.run(
        [*command, "-c", os.devnull, f"--rootdir={folder}"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_runbook_has_a_row_for_each_word_and_reason_of_a_node() -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| `"))

    shrinks = {"CapacityShrunk", "LimitsChanged"}
    silences = {"NeverReported", "Stale", "ClockSkew", "FieldsMissing", "RepeatedRefusals"}
    words = {*SCHEDULABLE.values(), "Draining", *shrinks, *silences} - {"True"}
    assert {word for word in words if f"`{word}`" not in rows} == set()


def test_the_page_on_nodes_names_every_condition() -> None:
    text = (ROOT / "docs" / "nodes.md").read_text()

    assert {kind for kind in CONDITIONS if f"| `{kind}`" not in text} == set()


@pytest.mark.parametrize(
    ("command", "page"),
    [(run, "operate"), (relay, "relay"), (lint, "write-policy")],
    ids=["run", "relay", "lint"],
)
def test_a_page_names_every_flag_of(command: ModuleType, page: str) -> None:
    parser = Parser()
    command.register(parser.add_subparsers())
    text = (ROOT / "docs" / f"{page}.md").read_text()

    name = command.__name__.rpartition(".")[2]
    actions = parser._subparsers._group_actions[0].choices[name]._actions  # type: ignore[union-attr,index]
    options = [a.option_strings for a in actions if not isinstance(a, argparse._HelpAction)]
    flags = {option[-1] for option in options if option}
    assert {flag for flag in flags if f"`{flag}`" not in text} == set()


def test_the_page_on_policy_names_every_warning() -> None:
    text = (ROOT / "docs" / "write-policy.md").read_text()

    assert {name for name in (*LINTS, PLUGIN_NOT_INSTALLED) if f"| `{name}` |" not in text} == set()


def test_lint_prints_what_the_page_on_policy_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (ROOT / "docs" / "write-policy.md").read_text().partition("Check policy before it")[2]
    manifest, _, rest = section.partition("```yml\n")[2].partition("```")
    shown = rest.partition("$ cubesched lint policy/\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("policy").mkdir()
    Path("policy/agents.yaml").write_text(manifest)

    assert main(["lint", "policy/"]) == 1
    assert capsys.readouterr().out == shown


def test_the_agent_that_the_page_shows_is_the_one_that_is_tested() -> None:
    example = (ROOT / "deploy" / "examples" / "agent" / "agent.py").read_text()

    assert len(example.splitlines()) <= 60
    assert f"```python\n{example}```" in (ROOT / "docs" / "node-agents.md").read_text()


def test_the_page_for_agents_has_every_change_of_phase_that_an_agent_may_write() -> None:
    lines = (ROOT / "docs" / "node-agents.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith(("| `", "| any other"))]
    changes = [(_phases(row[1]), _phases(row[2])) for row in rows if len(row) > 5]

    shown = {(before, after) for here, there in changes for before in here for after in there}
    allowed = {
        (before, after)
        for before, afters in AGENT_TRANSITIONS.items()
        for after in afters
        if before != after
    }
    assert shown == allowed


def _phases(cell: str) -> set[str]:
    return {phase for phase in AGENT_TRANSITIONS.keys() | {"Pending"} if f"`{phase}`" in cell}


def test_the_full_example_of_a_request_has_every_field() -> None:
    text = (ROOT / "deploy" / "examples" / "request-full.yaml").read_text()

    fields = {field.alias for field in SandboxRequestSpec.model_fields.values()}
    assert fields == set(yaml.safe_load(text)["spec"])


@pytest.mark.parametrize(("page", "words"), NUMBERS)
def test_a_number_on_a_page_is_the_one_in_the_code(page: str, words: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()

    assert words in " ".join(text.split())
