"""One plugin as a Profile lists it, whatever its kind, and what building it depends on beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cubesched.plugins.hosts import Hosts
from cubesched.plugins.python.installed import Installed
from cubesched.plugins.rpc.encoding import Encoder
from cubesched.plugins.score_tree import NO_TREE, ScoreTree
from cubesched.settings import DEFAULT_PLUGIN_DIRECTORY

DEFAULT_TIMEOUT_SECONDS = 0.1
DEFAULT_FAILURES = 3
DEFAULT_COOLDOWN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Listing:
    """One entry of `filters` or `scores`; units are plain, defaults filled in."""

    name: str
    type: str = "builtin"
    args: Mapping[str, Any] = field(default_factory=dict)
    expr: str = ""
    socket_path: str = ""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    circuit_breaker_failures: int = DEFAULT_FAILURES
    circuit_breaker_cooldown_seconds: float = DEFAULT_COOLDOWN_SECONDS


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What building a plugin depends on beside its own entry."""

    tree: ScoreTree = NO_TREE
    """The SchedulerConfig's `score`."""
    plugin_directory: str = DEFAULT_PLUGIN_DIRECTORY
    """Under which the sockets of grpc plugins are."""
    hosts: Hosts = field(default_factory=Hosts)
    installed: Installed = field(default_factory=Installed)
    """The python plugins of installed packages."""
    encoder: Encoder = field(default_factory=Encoder)
    """Of the fleet, for every grpc plugin."""
    is_elsewhere: bool = False
    """The operator is another process: what runs beside it is known by name only."""
    missing_is_elsewhere: bool = False
    """So is a python plugin that no package here offers; all others are checked."""
