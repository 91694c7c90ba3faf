"""The kinds of plugins: who builds an entry of each type.

Building never touches the network and runs nothing of a plugin's own decision code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Filter, Score, WaitingFilter, WaitingScore
from cubesched.plugins import registry
from cubesched.plugins.cel.plugins import expr_filter, expr_score
from cubesched.plugins.elsewhere import FilterElsewhere, ScoreElsewhere
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python import plugins as python
from cubesched.plugins.rpc import plugins as rpc

BESIDE_THE_OPERATOR: Final = frozenset({"python", "grpc"})
"""Types whose plugins only the operator's own machine has."""

AnyFilter = Filter | WaitingFilter
AnyScore = Score | WaitingScore


def _builtin_filter(listing: Listing, _: Surroundings) -> AnyFilter:
    return registry.build_filter(listing.name, listing.args)


def _builtin_score(listing: Listing, around: Surroundings) -> AnyScore:
    return registry.build_score(listing.name, listing.args, around.tree)


def _expr_filter(listing: Listing, _: Surroundings) -> AnyFilter:
    return expr_filter(listing.name, listing.expr)


def _expr_score(listing: Listing, _: Surroundings) -> AnyScore:
    return expr_score(listing.name, listing.expr)


FILTER_KINDS: Final[Mapping[str, Callable[[Listing, Surroundings], AnyFilter]]] = {
    "builtin": _builtin_filter,
    "python": python.build_filter,
    "expr": _expr_filter,
    "grpc": rpc.build_filter,
}
SCORE_KINDS: Final[Mapping[str, Callable[[Listing, Surroundings], AnyScore]]] = {
    "builtin": _builtin_score,
    "python": python.build_score,
    "expr": _expr_score,
    "grpc": rpc.build_score,
}


def build_filter(listing: Listing, around: Surroundings) -> AnyFilter:
    """Return the filter; raise PluginArgsInvalid with every problem, paths within the entry."""
    if listing.type not in FILTER_KINDS:
        raise _unknown(listing)
    if _is_elsewhere(listing, around):
        return FilterElsewhere(listing.name)
    return FILTER_KINDS[listing.type](listing, around)


def build_score(listing: Listing, around: Surroundings) -> AnyScore:
    """Return the score; raise PluginArgsInvalid with every problem, paths within the entry."""
    if listing.type not in SCORE_KINDS:
        raise _unknown(listing)
    if _is_elsewhere(listing, around):
        return ScoreElsewhere(listing.name)
    return SCORE_KINDS[listing.type](listing, around)


def _is_elsewhere(listing: Listing, around: Surroundings) -> bool:
    """Tell whether only the operator's own machine can judge this entry."""
    if around.is_elsewhere:
        return listing.type in BESIDE_THE_OPERATOR
    return around.missing_is_elsewhere and is_missing(listing.type, listing.name, around)


def is_missing(kind: object, name: object, around: Surroundings) -> bool:
    """Tell whether an entry asks for a python plugin that no package here offers."""
    return kind == "python" and name not in around.installed.names()


def _unknown(listing: Listing) -> PluginArgsInvalid:
    allowed = ", ".join(FILTER_KINDS)
    return PluginArgsInvalid((("type", f"unknown type {listing.type!r}; allowed: {allowed}"),))
