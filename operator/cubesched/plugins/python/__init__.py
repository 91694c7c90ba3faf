"""What the author of a plugin in Python imports.

A package offers a plugin as an entry point in the group `cubesched.plugins`: the entry point's name
is the plugin's, its object a class made from one of four bases. Filters answer with what stays,
scores with 0..100, higher is better.

| base | you write | asked |
|---|---|---|
| `ColumnFilter` | `keep(fleet, request)` -> one bool a node | once a decision, in NumPy |
| `NodeFilter` | `keep_node(node, request)` -> bool | for each node that is left |
| `ColumnScore` | `score(fleet, request)` -> a number a node, or `NOT_APPLICABLE` | the same |
| `NodeScore` | `score_node(node, request)` -> number | for each node that is left |

Columns take microseconds where a loop over nodes takes milliseconds. Every instance runs in its
plugin's own thread, one call at a time.
"""

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.plugins.python.authoring import (
    ColumnFilter,
    ColumnScore,
    NodeFilter,
    NodeScore,
    PluginArgs,
)
from cubesched.plugins.python.fleetview import Fleet
from cubesched.plugins.python.nodeview import Node, UnknownFact
from cubesched.plugins.python.requestview import Request

__all__ = [
    "NOT_APPLICABLE",
    "ColumnFilter",
    "ColumnScore",
    "Fleet",
    "Node",
    "NodeFilter",
    "NodeScore",
    "NotApplicable",
    "PluginArgs",
    "Request",
    "UnknownFact",
]
