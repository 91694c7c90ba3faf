"""What `cubesched lint` prints: lines for people, data for programs, annotations for GitHub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from cubesched.cli.output import print_data
from cubesched.manifests.findings import CLUSTER, Finding, Report
from cubesched.policy.objects import printable

FORMATS: Final = ("human", "json", "yaml", "github")


def print_report(report: Report, output: str, *, over_cluster: bool) -> None:
    """Print everything that was found, the sum of it last."""
    if output == "human":
        _print_lines(report, over_cluster=over_cluster)
    elif output == "github":
        for finding in report.findings:
            print(_annotation(finding))
        print(_sum(report))
    else:
        print_data(_as_data(report), output)


def _print_lines(report: Report, *, over_cluster: bool) -> None:
    for finding in report.findings:
        word = "warning: " if finding.severity == "warning" else ""
        print(f"{_where(finding)}: {word}{finding.text}")
    for (source, kind), number in _skipped(report).items():
        what = f"{number} x {kind}" if kind else f"{number} that Kubernetes does not know"
        print(f"{source}: skipped: {what}")
    if over_cluster:
        held = [judged.title for judged in report.objects if judged.source == CLUSTER]
        print(f"from the cluster: {', '.join(held) or 'nothing that no file replaces'}")
    print(_sum(report))


def _skipped(report: Report) -> Counter[tuple[str, str]]:
    return Counter((printable(s.source), printable(s.kind)) for s in report.skipped)


def _where(finding: Finding) -> str:
    source = printable(finding.source) or "cluster"
    return f"{source}:{finding.place.line}" if finding.place else source


def _sum(report: Report) -> str:
    files = sum(judged.source != CLUSTER for judged in report.objects)
    held = len(report.objects) - files
    beside = f" beside {held} of the cluster" if held else ""
    found = [
        _counted(number, severity)
        for severity in ("error", "warning")
        if (number := report.number(severity))
    ]
    return f"{_counted(files, 'object')} checked{beside}: {', '.join(found) or 'nothing wrong'}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _as_data(report: Report) -> dict[str, Any]:
    return {
        "errors": report.number("error"),
        "warnings": report.number("warning"),
        "findings": [_finding(finding) for finding in report.findings],
        "objects": [
            {"object": judged.title, **_origin(judged.source)} for judged in report.objects
        ],
        "skipped": [
            {"file": source, "kind": kind or None, "documents": number}
            for (source, kind), number in _skipped(report).items()
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    data = {
        "severity": finding.severity,
        **_origin(finding.source),
        "line": finding.place and finding.place.line,
        "column": finding.place and finding.place.column,
        "object": finding.title,
        "path": finding.path,
        "lint": finding.lint,
        "message": finding.message,
    }
    return {key: value for key, value in data.items() if value not in (None, "")}


def _origin(source: str) -> dict[str, str]:
    if source == CLUSTER:
        return {"from": "cluster"}
    return {"from": "file", "file": printable(source)}


def _annotation(finding: Finding) -> str:
    """Return GitHub's workflow command; its log shows it as an annotation of the line."""
    properties = [("title", finding.title or "cubesched lint")]
    if finding.source != CLUSTER:
        properties.insert(0, ("file", printable(finding.source)))
        if finding.place:
            line, column = finding.place
            properties[1:1] = [("line", str(line)), ("col", str(column))]
    listed = ",".join(f"{name}={_escaped(value, _IN_PROPERTY)}" for name, value in properties)
    return f"::{finding.severity} {listed}::{_escaped(finding.detail, _IN_MESSAGE)}"


_IN_MESSAGE: Final = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTY: Final = (*_IN_MESSAGE, (":", "%3A"), (",", "%2C"))


def _escaped(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    for letter, written in pairs:
        text = text.replace(letter, written)
    return text
