"""What a machine stores from which sandboxes start fast, as its SandboxNode says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cubesched.agent.runtime import Runtime
from cubesched.api.v1alpha1 import MAX_IMAGES


@dataclass(frozen=True, slots=True)
class Stored:
    """Templates and images; equal where the machine stores the same."""

    templates: tuple[str, ...] = ()
    images: tuple[tuple[str, int], ...] = ()
    """Names with their bytes: the largest ones, in order of name."""

    def status(self) -> dict[str, Any]:
        """Return it as the fields of a SandboxNode's status."""
        return {
            "templates": list(self.templates),
            "images": [{"name": name, "sizeBytes": size} for name, size in self.images],
        }


def stored_on(runtime: Runtime) -> Stored:
    """Ask the machine; of more images than an object holds the smallest are left out."""
    largest = sorted(runtime.images().items(), key=lambda image: (-image[1], image[0]))
    return Stored(runtime.templates(), tuple(sorted(largest[:MAX_IMAGES])))
