"""Where the local control planes live: binaries and instances under the user's cache directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cubesched.core.errors import UsageError

DEFAULT_NAME = "default"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def cache_root() -> Path:
    """Return `$XDG_CACHE_HOME/cubesched`, or `~/.cache/cubesched`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cubesched"


def instances_root() -> Path:
    """Return the directory that holds one directory for each instance."""
    return cache_root() / "local"


def instance_directory(name: str) -> Path:
    """Return the directory of the instance `name`; raises UsageError for an unfit name."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} is no instance name: use 1-40 of a-z, 0-9 and '-', not at either end"
        raise UsageError(message)
    return instances_root() / name
