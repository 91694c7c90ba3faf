"""The plugins that installed packages offer: found once, imported when a Profile first lists them.

Whatever a package does wrong is a problem of the Profile that lists it, never the operator's. Its
code runs in its plugin's own thread only, and is waited for only so long.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from threading import Lock
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from cubesched.core.errors import PluginArgsInvalid
from cubesched.plugins.args import problem
from cubesched.plugins.python.authoring import (
    ColumnFilter,
    ColumnScore,
    NodeFilter,
    NodeScore,
    Plugin,
)
from cubesched.plugins.python.told import told
from cubesched.plugins.python.worker import Job, Worker
from cubesched.plugins.spelling import did_you_mean

_LOG = logging.getLogger(__name__)

GROUP: Final = "cubesched.plugins"
LOAD_SECONDS: Final = 10.0
"""How long a package may take to be imported, and an instance to be made."""
RETRY_SECONDS: Final = 30.0
"""How long a failure is remembered: one compilation asks for a plugin many times."""
MOST_INSTANCES: Final = 64
"""Instances of one plugin that are kept, by their arguments."""

T = TypeVar("T")
BASES: Final[Mapping[str, tuple[type[Plugin[Any]], ...]]] = {
    "filter": (ColumnFilter, NodeFilter),
    "score": (ColumnScore, NodeScore),
}
"""What a class must be made from to be listed as each."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One entry point, and the package it comes from."""

    package: str
    """`zones 1.2.0`."""
    entry: EntryPoint


def offers(found: Iterable[Distribution] | None = None) -> Iterator[Offer]:
    """Yield what each installed package offers; of two copies of one package the first counts."""
    seen: set[str] = set()
    for package in distributions() if found is None else found:
        try:
            entries = package.entry_points.select(group=GROUP)
            name = package.name if entries else ""
        except Exception as error:  # one broken package hides its own plugins only
            _LOG.warning("the entry points of a package cannot be read: %s", told(error))
            continue
        canonical = name.lower().replace("_", "-").replace(".", "-")
        if entries and canonical not in seen:
            seen.add(canonical)
            yield from (Offer(f"{name} {package.version}", entry) for entry in entries)


@dataclass(slots=True)
class _Attempt:
    """Work in the plugin's thread whose outcome is kept."""

    job: Job[Any]
    at: float

    def is_worth_asking(self) -> bool:
        """Tell whether it succeeded, is under way, or failed just now."""
        done = self.job.done
        if not done.done():
            return True
        return done.exception() is None or time.monotonic() - self.at < RETRY_SECONDS


@dataclass(slots=True)
class Offered:
    """One plugin that a package offers, its class and instances once they are asked for."""

    name: str
    offer: Offer
    seconds: float
    worker: Worker = field(init=False)
    _class: _Attempt | None = None
    _instances: OrderedDict[str, _Attempt] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        """Give it its thread."""
        self.worker = Worker(f"plugin-{self.name}")

    def plugin_class(self) -> type[Plugin[Any]]:
        """Return its class, imported now if it never was."""
        if self._class is None or not self._class.is_worth_asking():
            self._class = self._begin(self.offer.entry.load)
        found = self._outcome(self._class, "cannot be imported")
        if not (isinstance(found, type) and issubclass(found, _ALL_BASES)):
            bases = ", ".join(base.__name__ for base in _ALL_BASES)
            raise self._problem(f"is a {type(found).__name__}, not a class made from {bases}")
        return found

    def instance(self, args: Mapping[str, Any]) -> Plugin[Any]:
        """Return the instance for these arguments, made now if there is none."""
        found, key = self.plugin_class(), json.dumps(args, sort_keys=True, default=str)
        made = self._instances.get(key)
        if made is None or not made.is_worth_asking():
            made = self._instances[key] = self._begin(lambda: _made(found, args))
        self._instances.move_to_end(key)
        while len(self._instances) > MOST_INSTANCES:
            self._instances.popitem(last=False)
        instance: Plugin[Any] = self._outcome(made, "cannot be made")
        return instance

    def _begin(self, work: Callable[[], Any]) -> _Attempt:
        return _Attempt(self.worker.submit(lambda _: work()), time.monotonic())

    def _outcome(self, attempt: _Attempt, failed: str) -> Any:
        """Wait for it, or say why there is nothing to wait for."""
        done, left = attempt.job.done, attempt.at + self.seconds - time.monotonic()
        if not self.worker.is_stuck:
            wait((done,), timeout=max(left, 0.0))
        if not done.done():
            raise self._problem(f"{failed}: its thread has not returned for {self.seconds:g} s")
        error = done.exception()
        if isinstance(error, PluginArgsInvalid):
            raise error
        if error is not None:
            raise self._problem(f"{failed}: {told(error)}")
        return done.result()

    def _problem(self, message: str) -> PluginArgsInvalid:
        where = f"{self.offer.entry.value} of {self.offer.package}"
        return PluginArgsInvalid((("name", f'"{self.name}" ({where}) {message}'),))


_ALL_BASES: Final = tuple(base for bases in BASES.values() for base in bases)


class Installed:
    """Every plugin that packages of this process offer; what is installed later is not seen."""

    def __init__(
        self, find: Callable[[], Iterable[Offer]] = offers, *, load_seconds: float = LOAD_SECONDS
    ) -> None:
        self._find, self._seconds = find, load_seconds
        self._offers: dict[str, list[Offer]] | None = None
        self._offered: dict[str, Offered] = {}
        self._lock = Lock()

    def plugin(self, name: str, kind: str, args: Mapping[str, Any]) -> tuple[Offered, Plugin[Any]]:
        """Return the plugin and its instance for these arguments.

        `kind` is filter or score. Raises PluginArgsInvalid with every problem.
        """
        with self._lock:
            offered = self._one(name, kind)
            found = offered.plugin_class()
            if not issubclass(found, BASES[kind]):
                other = next(each for each in BASES if each != kind)
                raise PluginArgsInvalid((("name", f'"{name}" is a {other}, not a {kind}'),))
            return offered, offered.instance(args)

    def names(self) -> tuple[str, ...]:
        """Return the names that packages offer, in order."""
        return tuple(sorted(self._by_name()))

    def described(self) -> Iterator[tuple[str, str, type[Plugin[Any]] | str]]:
        """Yield (name, package, class) of every plugin; for one that is of no use why, in words."""
        with self._lock:
            for name, found in sorted(self._by_name().items()):
                package = " and ".join(sorted(offer.package for offer in found))
                try:
                    yield name, package, self._one(name, "plugin").plugin_class()
                except PluginArgsInvalid as error:
                    yield name, package, error.problems[0][1]

    def _by_name(self) -> Mapping[str, list[Offer]]:
        if self._offers is None:
            found: dict[str, list[Offer]] = {}
            for offer in self._find():
                found.setdefault(offer.entry.name, []).append(offer)
            self._offers = found  # whole at once: threads may ask without the lock
        return self._offers

    def _one(self, name: str, kind: str) -> Offered:
        found = self._by_name().get(name, ())
        if not found:
            hint = did_you_mean(name, self._by_name())
            message = f'no installed package offers the python {kind} "{name}"; {hint}'
            raise PluginArgsInvalid((("name", message),))
        if len(found) > 1:
            packages = " and ".join(sorted(offer.package for offer in found))
            message = f'"{name}" is offered more than once: by {packages}; uninstall all but one'
            raise PluginArgsInvalid((("name", message),))
        if name not in self._offered:
            self._offered[name] = Offered(name, found[0], self._seconds)
        return self._offered[name]


def _made(found: type[Plugin[Any]], args: Mapping[str, Any]) -> Plugin[Any]:
    """Check the arguments and make an instance, in the plugin's thread: both run its code."""
    model = found.args_model
    try:
        checked = model.model_validate(dict(args))
    except ValidationError as error:
        problems = tuple(problem(one, model) for one in error.errors(include_url=False))
        raise PluginArgsInvalid(problems) from None
    made = found(checked)
    if not isinstance(made, found):
        raise TypeError(f"the class made a {type(made).__name__}")
    return made
