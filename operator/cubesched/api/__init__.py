"""The API group as other layers name it; the models are in `v1alpha1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROUP: Final = "cubesched.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
SYSTEM_NAMESPACE: Final = "cubesched-system"
"""Where replicas keep their Leases unless settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: how it is spelled in objects, paths and on the command line."""

    kind: str
    plural: str
    short_name: str
    namespaced: bool

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, or of one object."""
        parts = ["", "apis", GROUP, VERSION]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PROFILES: Final = Resource("SchedulerProfile", "schedulerprofiles", "sprof", namespaced=False)
CONFIGS: Final = Resource("SchedulerConfig", "schedulerconfigs", "sconf", namespaced=False)
NODES: Final = Resource("SandboxNode", "sandboxnodes", "sbn", namespaced=False)
REQUESTS: Final = Resource("SandboxRequest", "sandboxrequests", "sbr", namespaced=True)
RESOURCES: Final = (PROFILES, CONFIGS, NODES, REQUESTS)
