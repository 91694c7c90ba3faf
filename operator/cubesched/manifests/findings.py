"""What a look at manifests brings to light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cubesched.manifests.nodes import Place
from cubesched.policy.objects import Problem, printable

Severity = Literal["error", "warning"]

CLUSTER: Final = ""
"""The source of what no file holds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning, and where it stands."""

    severity: Severity
    source: str
    """The file's name; CLUSTER for an object that only the cluster holds."""
    place: Place | None
    """Unset where there is no one place."""
    title: str
    """The object, as `SchedulerProfile/burst`; empty where there is none."""
    path: str
    message: str
    lint: str = ""
    """Name of the warning."""

    @property
    def text(self) -> str:
        """Object, field and message in one line."""
        return ": ".join(filter(None, (self.title, self.detail)))

    @property
    def detail(self) -> str:
        """What stands behind the object's name."""
        return ": ".join(filter(None, (self.lint, self.path, self.message)))


def finding_of(
    problem: Problem, source: str, place: Place | None, severity: Severity = "error"
) -> Finding:
    """Return a problem of an object as a finding."""
    return Finding(
        severity,
        source,
        place,
        printable(problem.title),
        problem.path,
        problem.message,
        problem.lint,
    )


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that is none of ours."""

    source: str
    kind: str
    """Empty where it is no Kubernetes object at all."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An object that was looked at, and where it comes from."""

    title: str
    source: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one look found."""

    findings: Sequence[Finding]
    objects: Sequence[Judged]
    skipped: Sequence[Skipped] = ()

    def number(self, severity: Severity) -> int:
        """Return how many findings there are of one severity."""
        return sum(finding.severity == severity for finding in self.findings)
