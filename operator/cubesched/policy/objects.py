"""Policy objects as they are stored, and what is wrong with them, each error with its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cubesched.api import CONFIGS, PROFILES

PROFILE_KIND = PROFILES.kind
CONFIG_KIND = CONFIGS.kind
CONFIG_NAME = "default"
"""SchedulerConfig is a singleton: only the object of this name counts."""
NOT_THE_CONFIG = f'must be "{CONFIG_NAME}": there is one {CONFIG_KIND}'


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """One stored SchedulerProfile or SchedulerConfig; nothing in `spec` is believed yet."""

    kind: str
    name: str
    uid: str
    generation: int
    resource_version: str
    spec: Any
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The object as problems name it: `SchedulerProfile/burst`."""
        return f"{self.kind}/{self.name}"

    @classmethod
    def from_body(cls, kind: str, body: Mapping[str, Any]) -> PolicyObject:
        """Read an object of the API; a missing or malformed spec stays for the compiler to name."""
        meta = body.get("metadata") or {}
        status = body.get("status")
        return cls(
            kind=kind,
            name=str(meta.get("name", "")),
            uid=str(meta.get("uid", "")),
            generation=int(meta.get("generation") or 0),
            resource_version=str(meta.get("resourceVersion", "")),
            spec=body.get("spec", {}),
            status=status if isinstance(status, Mapping) else {},
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """One error, tied to its object and field: `SchedulerProfile/burst: spec.order: …`."""

    kind: str
    name: str
    path: str
    message: str
    lint: str = ""
    """Name of the warning; empty for an error."""

    @property
    def title(self) -> str:
        """The object at fault: `SchedulerProfile/burst`."""
        return f"{self.kind}/{self.name}"

    @property
    def detail(self) -> str:
        """The problem as its own object's status shows it: path and message."""
        lint = f"{self.lint}: " if self.lint else ""
        return f"{lint}{self.path}: {self.message}"

    @property
    def text(self) -> str:
        """The whole line: object, path and message."""
        return f"{self.title}: {self.detail}"


@dataclass(frozen=True, slots=True)
class ProblemList:
    """Collects the problems of one object while it is checked."""

    subject: PolicyObject
    found: list[Problem] = field(default_factory=list)

    def add(self, path: str, message: str) -> None:
        """Note one problem at a field path such as `spec.scores[0].weight`."""
        kind, name = self.subject.kind, self.subject.name
        self.found.append(Problem(kind, name, printable(path), printable(message)))

    def covers(self, path: str) -> bool:
        """Tell whether a problem is already noted at this path, below it or within its text."""
        below = (f"{path}.", f"{path}[", f"{path} ")
        return any(p.path == path or p.path.startswith(below) for p in self.found)


def printable(text: str) -> str:
    """Return text that cannot break a line of a log: users name fields as they like."""
    return "".join(char if char.isprintable() else "?" for char in text)
