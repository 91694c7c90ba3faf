"""Writes: create, replace, replace of /status, merge patch, apply, delete.

Each is one atomic step on the store: preconditions, strategy, and a commit unless nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import orjson
from tests.model.apply import Managers, merge_patch
from tests.model.resources import Refusal, Target
from tests.model.schemas import shape
from tests.model.store import Object, Store

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
FIXED_METADATA = ("name", "namespace", "uid", "creationTimestamp", "generation")
MERGE = "application/merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+json")


@dataclass
class Writer:
    """Changes the store as the registry of a real API server would."""

    store: Store
    rng: Random
    managers: Managers = field(default_factory=Managers)

    def create(self, target: Target, body: bytes, *, by: str) -> Object:
        """POST to a collection: a preset status is dropped, a preset version refused."""
        obj = _decoded(target, body)
        metadata = dict(obj["metadata"])
        if metadata.get("resourceVersion"):
            raise Refusal(
                500, "InternalError", "resourceVersion should not be set on objects to be created"
            )
        if not metadata.get("name"):
            metadata["name"] = self._generated(metadata)
        placed = Target(target.kind, target.namespace, metadata["name"])
        _check_place(placed, metadata)
        if placed.key in self.store.objects:
            raise _conflicting(placed, "AlreadyExists", "already exists")
        return self._insert(placed, {**obj, "metadata": metadata}, by)

    def replace(self, target: Target, body: bytes, *, by: str) -> Object:
        """PUT of the object or its /status, conditional on version and uid."""
        obj = _decoded(target, body)
        metadata = obj["metadata"]
        _check_place(target, metadata)
        stored = self.store.objects.get(target.key)
        if stored is None:
            if target.kind.create_on_update and not target.subresource:
                return self._insert(target, obj, by)
            raise not_found(target)
        _check_uid(target, stored, metadata.get("uid", ""))
        version = metadata.get("resourceVersion", "")
        if not version:
            raise Refusal(
                422,
                "Invalid",
                f'{target.kind.kind} "{target.name}" is invalid: metadata.resourceVersion: '
                "Invalid value: 0: must be specified for an update",
            )
        _check_version(target, stored, version)
        return self._update(target, stored, obj, by)

    def patch(
        self, target: Target, body: bytes, *, content_type: str, params: Mapping[str, str], by: str
    ) -> Object:
        """PATCH as merge patch or server-side apply; a version inside makes it conditional."""
        patch = _parsed(body)
        stored = self.store.objects.get(target.key)
        if content_type in APPLY:
            return self._apply(target, stored, patch, params, by)
        if content_type != MERGE:
            raise Refusal(415, "UnsupportedMediaType", f"the body of type {content_type} …")
        if stored is None:
            raise not_found(target)
        version = (patch.get("metadata") or {}).get("resourceVersion", "")
        if version:
            _check_version(target, stored, version)
        return self._update(target, stored, merge_patch(stored, patch), by)

    def _apply(
        self,
        target: Target,
        stored: Object | None,
        patch: Object,
        params: Mapping[str, str],
        by: str,
    ) -> Object:
        manager = params.get("fieldManager", "")
        if not manager:
            raise Refusal(400, "BadRequest", "fieldManager is required for apply patch")
        if stored is None and target.subresource:
            raise not_found(target)
        metadata = patch.get("metadata") or {}
        if stored is not None and metadata.get("resourceVersion"):
            _check_version(target, stored, metadata["resourceVersion"])
        applied = self.managers.apply(
            target.key,
            stored or {"apiVersion": target.kind.group_version, "kind": target.kind.kind},
            patch,
            manager=f"{manager}/{target.subresource}",
            force=params.get("force") == "true",
        )
        if stored is not None:
            return self._update(target, stored, applied, by)
        base = {"name": target.name, "namespace": target.namespace}
        named = {key: value for key, value in base.items() if value}
        return self._insert(target, {**applied, "metadata": {**metadata, **named}}, by)

    def delete(self, target: Target, body: bytes | None, *, by: str) -> Object:
        """DELETE, with the preconditions of its options if there are any."""
        stored = self.store.objects.get(target.key)
        if stored is None:
            raise not_found(target)
        wanted = (_parsed(body).get("preconditions") or {}) if body else {}
        _check_uid(target, stored, wanted.get("uid", ""))
        if wanted.get("resourceVersion"):
            _check_version(target, stored, wanted["resourceVersion"])
        self.store.delete(target.key, by)
        self.managers.forget(target.key)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": target.name, "uid": stored["metadata"]["uid"]},
        }

    def _insert(self, target: Target, obj: Object, by: str) -> Object:
        created = EPOCH + timedelta(seconds=self.store.clock())
        fixed = {
            "name": target.name,
            "uid": str(UUID(int=self.rng.getrandbits(128), version=4)),
            "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "generation": 1,
        }
        if target.namespace:
            fixed["namespace"] = target.namespace
        fresh = {
            key: value
            for key, value in obj.items()
            if key != "status" or not target.kind.has_status
        }
        placed = {**fresh, "metadata": {**obj["metadata"], **fixed}}
        return self.store.put(target.key, shape(target.kind, placed), by)

    def _update(self, target: Target, stored: Object, wanted: Object, by: str) -> Object:
        if target.subresource == "status":
            changed: dict[str, Any] = {
                key: value for key, value in stored.items() if key != "status"
            }
            if "status" in wanted:
                changed["status"] = wanted["status"]
        else:
            changed = _main_update(target, stored, wanted)
        changed = shape(target.kind, changed)
        if changed.get("spec") != stored.get("spec"):
            changed["metadata"]["generation"] = stored["metadata"]["generation"] + 1
        if changed == stored:
            return stored
        return self.store.put(target.key, changed, by)

    def _generated(self, metadata: Mapping[str, Any]) -> str:
        prefix: str = metadata.get("generateName", "")
        if not prefix:
            raise Refusal(422, "Invalid", "metadata.name: Required value: name or generateName")
        return prefix + "".join(self.rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))


def _main_update(target: Target, stored: Object, wanted: Object) -> dict[str, Any]:
    old = stored["metadata"]
    fixed = {name: old[name] for name in (*FIXED_METADATA, "resourceVersion") if name in old}
    changed: dict[str, Any] = {**wanted, "metadata": {**wanted["metadata"], **fixed}}
    if target.kind.has_status:
        changed.pop("status", None)
        if "status" in stored:
            changed["status"] = stored["status"]
    return changed


def _parsed(body: bytes | None) -> dict[str, Any]:
    try:
        value = orjson.loads(body or b"")
    except orjson.JSONDecodeError as error:
        raise Refusal(400, "BadRequest", f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Refusal(400, "BadRequest", "the body is not an object")
    return value


def _decoded(target: Target, body: bytes) -> dict[str, Any]:
    obj = _parsed(body)
    if (obj.get("apiVersion"), obj.get("kind")) != (target.kind.group_version, target.kind.kind):
        raise Refusal(
            400,
            "BadRequest",
            f"{obj.get('apiVersion')} {obj.get('kind')} does not match the expected "
            f"{target.kind.group_version} {target.kind.kind}",
        )
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return obj


def _check_place(target: Target, metadata: Mapping[str, Any]) -> None:
    if metadata.get("name") != target.name:
        raise Refusal(
            400,
            "BadRequest",
            f"the name of the object ({metadata.get('name')}) does not match the name on the URL "
            f"({target.name})",
        )
    if metadata.get("namespace", target.namespace) != target.namespace:
        raise Refusal(
            400, "BadRequest", "the namespace of the object does not match the one on the request"
        )


def _check_uid(target: Target, stored: Object, uid: str) -> None:
    actual = stored["metadata"]["uid"]
    if uid and uid != actual:
        raise _conflicting(
            target,
            "Conflict",
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}",
        )


def _check_version(target: Target, stored: Object, version: str) -> None:
    if not version.isdecimal():
        raise Refusal(500, "InternalError", f"parsing {version!r}: invalid syntax")
    if version != stored["metadata"]["resourceVersion"]:
        raise _conflicting(
            target,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and "
            "try again",
        )


def _conflicting(target: Target, reason: str, text: str) -> Refusal:
    return Refusal(409, reason, f'{target.kind.plural} "{target.name}": {text}')


def not_found(target: Target) -> Refusal:
    """Return the 404 for one object."""
    return Refusal(404, "NotFound", f'{target.kind.plural} "{target.name}" not found')
