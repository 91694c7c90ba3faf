"""The version of this program, as other servers and operators see it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """Return the installed version; `0.0.0+source` when run from a bare source tree."""
    try:
        return version("cubesched")
    except PackageNotFoundError:
        return "0.0.0+source"
