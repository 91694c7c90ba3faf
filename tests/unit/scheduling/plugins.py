"""Plugins that are waited for, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from tests.unit.builders import a_pipeline
from typing_extensions import override

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    Filter,
    FilterFailure,
    Health,
    Host,
    Pipeline,
    WaitingFilter,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot


class NoHost(Host):
    """A host that is always well."""

    @override
    def start(self) -> None: ...

    @override
    async def close(self) -> None: ...

    @override
    def health(self) -> tuple[Health, str]:
        return Health.HEALTHY, ""


@dataclass
class Slow(WaitingFilter):
    """Keeps what it is told to keep, after a while."""

    name: str = "slow"
    seconds: float = 0.05
    keeps: Callable[[str], bool] = lambda _node: True
    fails: bool = False
    asked: list[str] = field(default_factory=list)
    """Uids, in order."""
    versions: list[int] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    host: Host = field(default_factory=NoHost)

    @override
    async def keep(self, fleet: Snapshot, request: Request, rows: Ints) -> Bools:
        self.asked.append(request.uid)
        self.versions.append(fleet.version)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled.append(request.uid)
            raise
        finally:
            self.under_way -= 1
        if self.fails:
            raise PluginError(self.name, "no answer")
        return np.array([self.keeps(fleet.names[row]) for row in rows.tolist()], dtype=np.bool_)


@dataclass
class Fragile:
    """Keeps every node at once, until it fails."""

    name: str = "fragile"
    fails: bool = False

    def keep(self, fleet: Snapshot, request: Request) -> None:
        if self.fails:
            raise PluginError(self.name, "broken")

    def reasons(
        self,
        fleet: Snapshot,
        request: Request,
        rows: Ints,
    ) -> list[tuple[str, int]]:
        return [("fragile", rows.size)]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> None: ...


def waiting_for(*filters: Filter | WaitingFilter, failure: str = "fail-closed") -> Pipeline:
    """Return a pipeline with these filters after the guards."""
    return replace(
        a_pipeline(("least_allocated", {}, 1.0)),
        filters=filters,
        filter_failure=FilterFailure(failure),
    )
