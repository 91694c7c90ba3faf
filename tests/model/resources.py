"""What the in-memory API server serves: kinds, paths, selectors, and how it says no."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from tests.model.store import Key, Object

from cubesched.adapters.cluster.transport import Response
from cubesched.api import API_VERSION, RESOURCES


@dataclass(frozen=True, slots=True)
class Kind:
    """One served resource and where its strategy differs."""

    kind: str
    group_version: str
    plural: str
    namespaced: bool
    has_status: bool
    """/status exists, and neither a create nor a PUT of the object itself touches status."""
    create_on_update: bool = False
    """A PUT to a name that does not exist creates it."""
    selectable: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        return f"{self.group_version}/{self.plural}"


LEASES = Kind(
    "Lease",
    "coordination.k8s.io/v1",
    "leases",
    namespaced=True,
    has_status=False,
    create_on_update=True,
)
EVENTS = Kind("Event", "events.k8s.io/v1", "events", namespaced=True, has_status=False)
KINDS: Mapping[str, Kind] = {
    kind.resource: kind
    for kind in (
        *(
            Kind(
                resource.kind,
                API_VERSION,
                resource.plural,
                resource.namespaced,
                has_status=True,
                selectable=("status.nodeName", "status.phase") if resource.namespaced else (),
            )
            for resource in RESOURCES
        ),
        LEASES,
        EVENTS,
    )
}


class Refusal(Exception):
    """An answer that is not 2xx, as a Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        continue_token: str = "",
        retry_after_seconds: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        metadata = {"continue": continue_token} if continue_token else {}
        details = {"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {}
        self.status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }

    def response(self) -> Response:
        """Return it as a whole answer; Retry-After only where the real server sends it."""
        headers = {}
        if self.code == 429 and self.retry_after_seconds:
            headers = {"retry-after": str(self.retry_after_seconds)}
        return Response(self.code, orjson.dumps(self.status), headers)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        return Key(self.kind.resource, self.namespace, self.name)

    def holds(self, key: Key) -> bool:
        """Tell whether a list or watch of this collection shows `key`."""
        return key.resource == self.kind.resource and self.namespace in {"", key.namespace}


def parse(path: str) -> Target:
    """Return what `path` names; refuse with 404 what is not served."""
    parts = path.strip("/").split("/")
    if len(parts) < 4 or parts[0] != "apis":
        raise Refusal(404, "NotFound", "the server could not find the requested resource")
    group_version, rest, namespace = "/".join(parts[1:3]), parts[3:], ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = KINDS.get(f"{group_version}/{rest[0]}")
    name, subresource = (*rest[1:], "", "")[:2]
    if (
        kind is None
        or len(rest) > 3
        or subresource not in ({"", "status"} if kind.has_status else {""})
        or (kind.namespaced != bool(namespace) and (name or namespace))
    ):
        raise Refusal(404, "NotFound", "the server could not find the requested resource")
    return Target(kind, namespace, name, subresource)


def discovery(group_version: str) -> Object | None:
    """Return the resource list of one group version; None when it is not served."""
    kinds = [kind for kind in KINDS.values() if kind.group_version == group_version]
    if not kinds:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": [
            {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced}
            for kind in kinds
        ],
    }


@dataclass(frozen=True, slots=True)
class Selector:
    """A field and label selector; each term is (read, wanted, negated)."""

    terms: tuple[tuple[Callable[[Object], str], str, bool], ...] = field(default=())

    def matches(self, obj: Object) -> bool:
        """Tell whether the object is selected."""
        return all((read(obj) == wanted) != negated for read, wanted, negated in self.terms)


def selector(kind: Kind, params: Mapping[str, str]) -> Selector:
    """Return the selector of a list or watch; 400 for a field that cannot be selected."""
    terms = []
    for term in filter(None, params.get("fieldSelector", "").split(",")):
        path, wanted, negated = _term(term)
        if path not in {"metadata.name", "metadata.namespace", *kind.selectable}:
            raise Refusal(400, "BadRequest", f"field label not supported: {path}")
        terms.append((_field(path), wanted, negated))
    for term in filter(None, params.get("labelSelector", "").split(",")):
        label, wanted, negated = _term(term)
        terms.append((_label(label), wanted, negated))
    return Selector(tuple(terms))


def _term(text: str) -> tuple[str, str, bool]:
    negated = "!=" in text
    left, _, right = text.partition("!=" if negated else "=")
    return left.strip(), right.removeprefix("=").strip(), negated


def _field(path: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        value: Any = obj
        for part in path.split("."):
            value = value.get(part, "") if isinstance(value, Mapping) else ""
        return str(value)

    return read


def _label(name: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        return str((obj["metadata"].get("labels") or {}).get(name, ""))

    return read
