"""What an integrator supplies: the machine that really runs sandboxes.

The agent decides when; the runtime does. Nothing here talks to Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Protocol

from cubesched.core.derived import UNKNOWN
from cubesched.core.errors import CubeschedError
from cubesched.fleet.entries import Weight

NO_SANDBOX_LIMIT = 1 << 31


class StartFailed(CubeschedError):
    """The sandbox could not be started, and starting it again would not help."""


class RuntimeUnavailable(CubeschedError):
    """The runtime cannot answer now; the agent tries again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most this machine runs at once, over-commit included."""

    cpu_millis: int
    memory_bytes: int
    disk_bytes: int | None = None
    """None = the system disk is not counted."""
    sandboxes: int = NO_SANDBOX_LIMIT


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: one request under one reservation."""

    sandbox: str
    """Name to create it under; made of the request's uid and the reservation's id."""
    uid: str
    reservation_id: str
    namespace: str
    name: str
    template_id: str
    """Empty when the request asks for no template."""
    weight: Weight
    images: tuple[str, ...] = ()
    """Images that the request says it starts from."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a sandbox ended by itself."""

    succeeded: bool
    message: str


@dataclass(frozen=True, slots=True)
class MachineUsage:
    """What the machine really uses; -1 and NaN stand for "not known here"."""

    cpu_util_percent: float = nan
    cpu_load: float = nan
    memory_used_bytes: int = UNKNOWN
    data_disk_percent: float = nan
    storage_disk_percent: float = nan
    system_disk_percent: float = nan
    snapshot_storage_writable: bool | None = None
    """Whether snapshots of sandboxes can be written; None = not known here."""


class Runtime(Protocol):
    """One machine. Every call may be repeated; each may raise RuntimeUnavailable."""

    def limits(self) -> Limits:
        """Return the most this machine runs at once."""
        ...

    def templates(self) -> tuple[str, ...]:
        """Return the ids of the templates that are stored on this machine."""
        ...

    def images(self) -> Mapping[str, int]:
        """Return the images that are stored on this machine, with their bytes."""
        ...

    def usage(self) -> MachineUsage:
        """Return what the machine really uses, as last measured."""
        ...

    def refusal(self, order: Order) -> str:
        """Say why this machine will not run `order`; empty when it will."""
        ...

    async def running(self) -> Mapping[str, Weight]:
        """Return everything that takes room on the machine, by name, also what is being created.

        A paused sandbox may be told with what it keeps, or in full.
        Names that the agent did not make are never touched; they take room all the same.
        """
        ...

    async def create(self, order: Order) -> str:
        """Start the sandbox unless one of that name exists; return its endpoint.

        Returns when it runs. Raises StartFailed when it cannot.
        """
        ...

    async def pause(self, sandbox: str, keeping: Weight) -> None:
        """Suspend the sandbox so that it takes no more than `keeping`; return when that is so.

        It may be paused already, also with another weight to keep. Unknown names are fine.
        """
        ...

    async def resume(self, sandbox: str) -> None:
        """Let a paused sandbox run on; return when it runs, at once when it already does.

        Raises StartFailed when it cannot: the sandbox is then destroyed.
        """
        ...

    async def wait(self, sandbox: str) -> Ended:
        """Return when the sandbox has ended by itself, or was destroyed, or never existed.

        A paused one has not ended.
        """
        ...

    async def destroy(self, sandbox: str) -> None:
        """Stop the sandbox and free its room; return when that is done. Unknown names are fine."""
        ...
