"""A plugin that only the operator can ask, as commands on other machines know it: by its name."""

from __future__ import annotations

from typing_extensions import override

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Health, Host, WaitingFilter, WaitingScore
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot

_WHY = "it runs beside the operator"


class NoHost(Host):
    """Nothing runs here."""

    @override
    def start(self) -> None:
        """Start nothing."""

    @override
    async def close(self) -> None:
        """Close nothing."""

    @override
    def health(self) -> tuple[Health, str]:
        """Say that it cannot be reached from here."""
        return Health.UNREACHABLE, _WHY


class FilterElsewhere(WaitingFilter):
    """A filter that cannot be asked here."""

    def __init__(self, name: str) -> None:
        self.name, self.host = name, NoHost()

    @override
    async def keep(self, fleet: Snapshot, request: Request, rows: Ints) -> Bools:
        """Fail: nobody here knows."""
        raise PluginError(self.name, _WHY)


class ScoreElsewhere(WaitingScore):
    """A score that cannot be asked here."""

    def __init__(self, name: str) -> None:
        self.name, self.host = name, NoHost()

    @override
    async def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Fail: nobody here knows."""
        raise PluginError(self.name, _WHY)
