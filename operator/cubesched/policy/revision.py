"""The revision: a short hash that is equal on every replica which runs the same specs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

REVISION_HEX_DIGITS = 12


def revision_of(
    *, source: str, config: Mapping[str, Any], profiles: Sequence[tuple[str, Mapping[str, Any]]]
) -> str:
    """Hash names and specs with their defaults filled in; generations and order take no part."""
    content = {"source": source, "config": config, "profiles": dict(profiles)}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return blake2b(text.encode(), digest_size=REVISION_HEX_DIGITS // 2).hexdigest()
