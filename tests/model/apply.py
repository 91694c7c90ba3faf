"""Merge patch, and server-side apply with one owner for each leaf.

Lists are atomic but for `conditions`, which is a map by type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.model.resources import Refusal
from tests.model.store import Key, Object

Path = tuple[str, ...]
Leaves = dict[Path, Any]
UNOWNED = ("apiVersion", "kind", "metadata")


def merge_patch(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `value` under a JSON merge patch: null removes, objects merge, the rest replaces."""
    merged = dict(value)
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        elif isinstance(change, Mapping):
            old = merged.get(name)
            merged[name] = merge_patch(old if isinstance(old, Mapping) else {}, change)
        else:
            merged[name] = change
    return merged


class Managers:
    """Who owns which leaf of which object."""

    def __init__(self) -> None:
        self._owned: dict[Key, dict[str, set[Path]]] = {}

    def forget(self, key: Key) -> None:
        """Drop what is known of a deleted object."""
        self._owned.pop(key, None)

    def apply(
        self, key: Key, stored: Object, patch: Object, *, manager: str, force: bool
    ) -> dict[str, Any]:
        """Return the object after `manager` applied `patch`; what it no longer names goes."""
        owners = self._owned.setdefault(key, {})
        wanted = _flatten({name: part for name, part in patch.items() if name not in UNOWNED})
        current = _flatten({name: part for name, part in stored.items() if name not in UNOWNED})
        others = {path for name, paths in owners.items() if name != manager for path in paths}
        clashes = {path for path in wanted if path in others and wanted[path] != current.get(path)}
        if clashes and not force:
            names = ", ".join(sorted(".".join(path) for path in clashes))
            raise Refusal(409, "Conflict", f"Apply failed with conflicts: {names}")
        for paths in owners.values():
            paths.difference_update(clashes)
        for path in owners.get(manager, set()) - set(wanted) - others:
            current.pop(path, None)
        owners[manager] = set(wanted)
        kept = {name: part for name, part in stored.items() if name in UNOWNED}
        labels = (patch.get("metadata") or {}).get("labels")
        if labels and "metadata" in kept:
            old = kept["metadata"]
            kept["metadata"] = {**old, "labels": {**(old.get("labels") or {}), **labels}}
        return {**kept, **_unflatten({**current, **wanted})}


def _flatten(value: Mapping[str, Any], prefix: Path = ()) -> Leaves:
    leaves: Leaves = {}
    for name, part in value.items():
        path = (*prefix, name)
        if name == "conditions" and isinstance(part, list):
            part = {f"type={item['type']}": item for item in part}  # noqa: PLW2901
        if isinstance(part, Mapping) and part:
            leaves |= _flatten(part, path)
        else:
            leaves[path] = part
    return leaves


def _unflatten(leaves: Leaves) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in leaves.items():
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = value
    return {name: _listed(name, part) for name, part in tree.items()}


def _listed(name: str, part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    inner = {key: _listed(key, value) for key, value in part.items()}
    return list(inner.values()) if name == "conditions" else inner
