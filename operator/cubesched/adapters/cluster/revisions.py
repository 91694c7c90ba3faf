"""Policy records in the cluster: ControllerRevisions in the operator's own namespace.

Their number is bounded, and the one with the highest `revision` is the newest. Content is
immutable: it has a name of its own, so writing it twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Response, Transport
from cubesched.core.errors import ApiError

_LOG = logging.getLogger(__name__)
KEPT: Final = 5
LABELS: Final = {"app.kubernetes.io/name": "cubesched", "cubesched.io/record": "policy"}
_SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
_API_VERSION: Final = "apps/v1"


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class StoredRevision(msgspec.Struct, frozen=True):
    """The part of a ControllerRevision that is read."""

    metadata: _Meta = _Meta()
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Stored(msgspec.Struct, frozen=True):
    items: list[StoredRevision] = []


_LIST: Final = msgspec.json.Decoder(_Stored)


class RevisionStore:
    """The records of one namespace."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport, self._namespace = transport, namespace

    async def newest_first(self) -> list[tuple[str, Any]]:
        """Return (name, data) of each record; raises ApiError."""
        return [(stored.metadata.name, _plain(stored)) for stored in await self._all()]

    async def keep(self, name: str, data: Mapping[str, Any]) -> None:
        """Make a record the newest, unless it is; delete those beyond the bound.

        Raises ApiError.
        """
        stored = await self._all()
        if stored and stored[0].metadata.name == name:
            return
        revision = stored[0].revision + 1 if stored else 1
        if any(each.metadata.name == name for each in stored):
            await self._promote(name, revision)
        else:
            await self._create(name, data, revision)
        others = [each.metadata.name for each in stored if each.metadata.name != name]
        for old in others[KEPT - 1 :]:
            await self._delete(old)

    async def _all(self) -> list[StoredRevision]:
        response = await self._transport.request(
            "GET", self._path(), params={"labelSelector": _SELECTOR}
        )
        if response.status != 200:
            raise error_of(response, "listing the policy records")
        try:
            stored = _LIST.decode(response.body).items
        except RecursionError:  # somebody has put in what is nested beyond all measure
            raise ApiError("the policy records cannot be read: one is nested too deeply") from None
        return sorted(stored, key=lambda each: -each.revision)

    async def _create(self, name: str, data: Mapping[str, Any], revision: int) -> None:
        body = {
            "apiVersion": _API_VERSION,
            "kind": "ControllerRevision",
            "metadata": {"name": name, "namespace": self._namespace, "labels": LABELS},
            "revision": revision,
            "data": data,
        }
        response = await self._transport.request(
            "POST", self._path(), body=msgspec.json.encode(body)
        )
        _check(response, f"keeping the policy record {name}", 200, 201, 409)

    async def _promote(self, name: str, revision: int) -> None:
        """Make content that is back the newest: of a record only its number can change."""
        response = await self._transport.request(
            "PATCH",
            self._path(name),
            body=msgspec.json.encode({"revision": revision}),
            content_type="application/merge-patch+json",
        )
        _check(response, f"keeping the policy record {name}", 200)

    async def _delete(self, name: str) -> None:
        response = await self._transport.request("DELETE", self._path(name))
        _check(response, f"deleting the policy record {name}", 200, 202, 404)

    def _path(self, name: str = "") -> str:
        path = f"/apis/{_API_VERSION}/namespaces/{self._namespace}/controllerrevisions"
        return f"{path}/{name}" if name else path


def _check(response: Response, what: str, *allowed: int) -> None:
    if response.status not in allowed:
        raise error_of(response, what)


def _plain(stored: StoredRevision) -> Any:
    try:
        return msgspec.json.decode(stored.data)
    except (msgspec.MsgspecError, RecursionError):
        _LOG.warning("ControllerRevision %s cannot be read", stored.metadata.name)
        return None
