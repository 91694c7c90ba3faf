"""The bases of plugins in Python, and of their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, get_args

from typing_extensions import TypeVar, override

from cubesched.core.pipeline import NotApplicable
from cubesched.core.snapshot import Bools, Floats, Ints
from cubesched.plugins.args import Args
from cubesched.plugins.python.fleetview import Fleet
from cubesched.plugins.python.nodeview import Node
from cubesched.plugins.python.requestview import Request


class PluginArgs(Args):
    """Arguments of a plugin, as a Profile gives them under `args`: a frozen pydantic model.

    Unknown names are errors, and so are values of another type: nothing is converted.
    """


ArgsT = TypeVar("ArgsT", bound=PluginArgs, default=PluginArgs)


class Plugin(ABC, Generic[ArgsT]):
    """What the four bases have in common: `args`, checked before an instance is made.

    `class Zone(ColumnFilter[ZoneArgs])` declares the model. Without one a plugin takes no
    arguments. An instance is made once for each set of arguments, when the policy compiles.
    """

    args_model: ClassVar[type[PluginArgs]] = PluginArgs
    args: ArgsT

    def __init__(self, args: ArgsT) -> None:
        """Keep the arguments; raise ValueError to refuse them, which makes the Profile invalid."""
        self.args = args

    @override
    def __init_subclass__(cls, **options: Any) -> None:
        """Take the model from `ColumnFilter[Model]`."""
        super().__init_subclass__(**options)
        for base in cls.__dict__.get("__orig_bases__", ()):
            for model in get_args(base):
                if isinstance(model, type) and issubclass(model, PluginArgs):
                    cls.args_model = model


class ColumnFilter(Plugin[ArgsT]):
    """A filter over whole columns."""

    @abstractmethod
    def keep(self, fleet: Fleet, request: Request) -> Bools:
        """Return one bool for each row of the fleet, True where the node stays."""


class NodeFilter(Plugin[ArgsT]):
    """A filter that looks at one node at a time."""

    @abstractmethod
    def keep_node(self, node: Node, request: Request) -> bool:
        """Return True where the node stays.

        An exception is an error on this node alone: `failure.filter` says whether it stays.
        """


class ColumnScore(Plugin[ArgsT]):
    """A score over whole columns."""

    @abstractmethod
    def score(self, fleet: Fleet, request: Request) -> Floats | Ints | NotApplicable:
        """Return 0..100 for each row of the fleet; NOT_APPLICABLE leaves this score out.

        Only nodes that passed every filter count; any value will do for the others.
        """


class NodeScore(Plugin[ArgsT]):
    """A score that looks at one node at a time."""

    def applies(self, request: Request) -> bool:  # noqa: ARG002
        """Return False to leave this score out for the request."""
        return True

    @abstractmethod
    def score_node(self, node: Node, request: Request) -> float:
        """Return 0..100; an exception on any node is a failure of the whole call."""
