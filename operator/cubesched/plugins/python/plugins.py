"""Filters and scores in Python as the pipeline asks them: in a thread, their answers checked."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from cubesched.core import request as core
from cubesched.core.errors import PluginContractBreach
from cubesched.core.pipeline import (
    NOT_APPLICABLE,
    Judged,
    NotApplicable,
    WaitingFilter,
    WaitingScore,
)
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python.authoring import ColumnFilter, ColumnScore, NodeFilter, NodeScore
from cubesched.plugins.python.fleetview import Fleet
from cubesched.plugins.python.host import Limits, PythonHost
from cubesched.plugins.python.installed import Offered
from cubesched.plugins.python.nodeview import Node
from cubesched.plugins.python.requestview import Request
from cubesched.plugins.python.told import told
from cubesched.plugins.python.worker import Wanted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Question:
    """One call: what the plugin sees, and about which rows it is asked."""

    fleet: Fleet
    request: Request
    rows: Ints
    wanted: Wanted


class PythonFilter(WaitingFilter):
    """A filter that a package offers."""

    host: PythonHost

    def __init__(
        self, name: str, plugin: ColumnFilter | NodeFilter, host: PythonHost, limits: Limits
    ) -> None:
        self.name, self.plugin, self.host, self.terms = name, plugin, host, host.terms(limits)

    @override
    async def keep(self, fleet: Snapshot, request: core.Request, rows: Ints) -> Bools | Judged:
        """Ask the plugin in its thread."""
        return await self.host.ask(_asking(self._judge, fleet, request, rows), self.terms)

    def _judge(self, question: _Question) -> Bools | Judged:
        if isinstance(self.plugin, NodeFilter):
            return _judge_each(self.plugin, question)
        mask = self.plugin.keep(question.fleet, question.request)
        kept: Bools = _column(self.name, mask, len(question.fleet), "b")[question.rows]
        return kept


class PythonScore(WaitingScore):
    """A score that a package offers."""

    host: PythonHost

    def __init__(
        self, name: str, plugin: ColumnScore | NodeScore, host: PythonHost, limits: Limits
    ) -> None:
        self.name, self.plugin, self.host, self.terms = name, plugin, host, host.terms(limits)

    @override
    async def score(
        self, fleet: Snapshot, request: core.Request, rows: Ints
    ) -> Floats | NotApplicable:
        """Ask the plugin in its thread."""
        return await self.host.ask(_asking(self._rate, fleet, request, rows), self.terms)

    def _rate(self, question: _Question) -> Floats | NotApplicable:
        if isinstance(self.plugin, NodeScore):
            return self._rate_each(self.plugin, question)
        scores = self.plugin.score(question.fleet, question.request)
        if isinstance(scores, NotApplicable):
            return scores
        return self._in_range(_column(self.name, scores, len(question.fleet), "fiu")[question.rows])

    def _rate_each(self, plugin: NodeScore, question: _Question) -> Floats | NotApplicable:
        if not plugin.applies(question.request):
            return NOT_APPLICABLE
        scores = np.zeros(question.rows.size)
        for position, row in enumerate(question.rows.tolist()):
            if not question.wanted():
                break  # nobody waits for the rest
            scores[position] = self._rate_one(plugin, Node(question.fleet, row), question.request)
        return self._in_range(scores)

    def _rate_one(self, plugin: NodeScore, node: Node, request: Request) -> float:
        try:
            score = plugin.score_node(node, request)
        except Exception as error:
            raise PluginContractBreach(self.name, f"on {node.id}: {told(error)}") from error
        if not isinstance(score, numbers.Real) or isinstance(score, bool):
            raise PluginContractBreach(self.name, f"on {node.id}: {type(score).__name__}, no score")
        return float(score)

    def _in_range(self, scores: Any) -> Floats:
        """Return them as doubles; what is out of range counts as a failed call."""
        doubles: Floats = scores.astype(np.float64)
        wrong = doubles[~((doubles >= 0.0) & (doubles <= 100.0))]
        if wrong.size:
            raise PluginContractBreach(self.name, f"score {wrong[0]:g} is not within 0-100")
        return doubles


def build_filter(listing: Listing, around: Surroundings) -> PythonFilter:
    """Return the filter; raise PluginArgsInvalid with every problem, paths within the entry."""
    offered, plugin = around.installed.plugin(listing.name, "filter", listing.args)
    assert isinstance(plugin, ColumnFilter | NodeFilter)
    return PythonFilter(listing.name, plugin, _host(offered, around), Limits.of(listing))


def build_score(listing: Listing, around: Surroundings) -> PythonScore:
    """Return the score; raise PluginArgsInvalid with every problem, paths within the entry."""
    offered, plugin = around.installed.plugin(listing.name, "score", listing.args)
    assert isinstance(plugin, ColumnScore | NodeScore)
    return PythonScore(listing.name, plugin, _host(offered, around), Limits.of(listing))


def _host(offered: Offered, around: Surroundings) -> PythonHost:
    """Return the one host of a plugin, whatever arguments its entries give it."""
    key = "python", offered.name
    return around.hosts.host(key, lambda: PythonHost(offered.name, offered.worker))


def _asking(
    answer: Callable[[_Question], T], fleet: Snapshot, request: core.Request, rows: Ints
) -> Callable[[Wanted], T]:
    """Return the call as the plugin's thread makes it."""

    def work(wanted: Wanted) -> T:
        question = _Question(Fleet(fleet, request), Request.of(request), rows, wanted)
        # What divides by zero shows in the answer and is judged there, as for every plugin.
        with np.errstate(all="ignore"):
            return answer(question)

    return work


def _judge_each(plugin: NodeFilter, question: _Question) -> Judged | Bools:
    """Ask about each node; what goes wrong there is an error on that node."""
    size = question.rows.size
    keep, failed, error = np.zeros(size, np.bool_), np.zeros(size, np.bool_), ""
    for position, row in enumerate(question.rows.tolist()):
        if not question.wanted():
            break  # nobody waits for the rest
        node = Node(question.fleet, row)
        try:
            keep[position] = _yes_or_no(plugin.keep_node(node, question.request))
        except Exception as problem:  # anybody's code
            failed[position] = True
            error = error or told(problem)
    return Judged(keep, failed, error) if error else keep


def _yes_or_no(answer: object) -> bool:
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(f"keep_node answered {type(answer).__name__}, not True or False")


def _column(plugin: str, answer: Any, size: int, kinds: str) -> Any:
    """Return a plugin's column, if it is one; `kinds` are NumPy's letters for its type."""
    if not isinstance(answer, np.ndarray):
        raise PluginContractBreach(plugin, f"answered {type(answer).__name__}, not a NumPy array")
    if answer.shape != (size,):
        found = "x".join(str(length) for length in answer.shape) or "a single"
        raise PluginContractBreach(plugin, f"answered {found} values for {size} nodes")
    if answer.dtype.kind not in kinds:
        wanted = "bools" if kinds == "b" else "numbers"
        raise PluginContractBreach(plugin, f"answered {answer.dtype} values, not {wanted}")
    return answer
