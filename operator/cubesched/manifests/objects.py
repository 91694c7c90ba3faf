"""The objects of our kinds in a file: found in its documents, whatever else is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cubesched.api import GROUP, RESOURCES
from cubesched.manifests.findings import Finding, Severity, Skipped, finding_of
from cubesched.manifests.nodes import Document, Flaw, Node, Place
from cubesched.manifests.places import place_of
from cubesched.manifests.sources import Source
from cubesched.manifests.tree import read_documents
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.objects import PolicyObject, Problem, printable

KINDS: Final = tuple(resource.kind for resource in RESOURCES)
UNNAMED: Final = "(unnamed)"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of ours as a file holds it; nothing in it is believed yet."""

    source: str
    root: Node

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return str(self.root.value["kind"])

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata, empty where there is none that can be read."""
        found = self.root.value.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def has_name(self) -> bool:
        """Tell whether there is a name to know it by."""
        name = self.metadata.get("name")
        return isinstance(name, str) and name != ""

    @property
    def name(self) -> str:
        """Its name, with its namespace where it has one; UNNAMED where it has no name."""
        if not self.has_name:
            return UNNAMED
        name, namespace = self.metadata["name"], self.metadata.get("namespace")
        is_namespaced = any(r.namespaced for r in RESOURCES if r.kind == self.kind)
        return f"{namespace}/{name}" if is_namespaced and isinstance(namespace, str) else str(name)

    @property
    def title(self) -> str:
        """The object as messages name it: `SchedulerProfile/burst`."""
        return f"{self.kind}/{printable(self.name)}"

    def subject(self) -> PolicyObject:
        """Return it as the policy compiler takes it."""
        spec = self.root.value.get("spec", {})
        return PolicyObject(self.kind, printable(self.name), "", 0, "", spec)

    def place_of(self, path: str) -> Place:
        """Return where a field stands, or its block where it is missing."""
        return place_of(self.root, path)

    def finding(self, problem: Problem, severity: Severity = "error") -> Finding:
        """Return a problem of this object with its place."""
        return finding_of(problem, self.source, self.place_of(problem.path), severity)


def read_objects(source: Source) -> Iterator[Manifest | Skipped | Finding]:
    """Yield the objects of ours, what was passed over, and what cannot be read; never raises."""
    if source.problem:
        yield Finding("error", source.name, None, "", "", source.problem)
    for document in read_documents(source.text):
        if isinstance(document, Flaw):
            yield _error(source.name, document)
        else:
            yield from _of_document(source.name, document)


def _of_document(source: str, document: Document) -> Iterator[Manifest | Skipped | Finding]:
    is_ours = False
    for found in _objects(source, document.root, ""):
        is_ours = is_ours or isinstance(found, Manifest)
        yield found
    if is_ours:
        yield from (_error(source, flaw) for flaw in document.flaws)


def _objects(source: str, node: Node, within: str) -> Iterator[Manifest | Skipped | Finding]:
    """Yield the object, or those of a list of objects."""
    body = node.value
    if body is None:
        return
    if not isinstance(body, dict):
        yield _error(
            source, Flaw(node.place, f"{within}must be an object, with apiVersion and kind")
        )
        return
    kind, version = body.get("kind"), body.get("apiVersion")
    if kind in KINDS:
        yield Manifest(source, node)
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(body.get("items"), list):
        for index, item in node.below["items"].below.items():
            yield from _objects(source, item, f"items[{index}]: ")
    elif isinstance(version, str) and version.partition("/")[0] == GROUP:
        message = f"kind: unknown {kind!r}" if kind else "kind: missing"
        hint = did_you_mean(str(kind), KINDS)
        yield _error(source, Flaw(place_of(node, "kind"), printable(f"{message}; {hint}")))
    else:
        yield Skipped(source, kind if isinstance(kind, str) else "")


def _error(source: str, flaw: Flaw) -> Finding:
    return Finding("error", source, flaw.place, "", "", printable(flaw.message))
