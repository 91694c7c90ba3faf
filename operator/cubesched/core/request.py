"""What a decision needs to know of one SandboxRequest: integers and interned facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_INSTANCE_TYPE = "cubebox"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A Kubernetes toleration; empty `key` with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the pipeline sees it; sizes are exact, rounded up from its quantities."""

    uid: str
    namespace: str
    name: str
    cpu_millis: int
    memory_bytes: int
    disk_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    instance_type: str = DEFAULT_INSTANCE_TYPE
    template_id: str = ""
    template_node_scope: tuple[str, ...] = ()
    allow_non_local_template: bool = False
    images: tuple[str, ...] = ()
    """Images it starts from, each once; asked for in scores only."""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0
    attempt: int = 0
    """Counts decisions for this request; seeds ties and the random selection together with uid."""
    refused_nodes: tuple[str, ...] = ()
    """Nodes whose agent refused this request lately; a constraint of its own."""
