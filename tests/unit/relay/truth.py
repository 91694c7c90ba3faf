"""What the relay is measured against: a store with all its past, and views filtered from it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import orjson
from tests.model.store import Change, Key, Store

from cubesched.relay.fanout import Fanout

NODES = ("n1", "n2", "n3")

View = dict[str, Mapping[str, Any]]


def stored(name: str, node: str = "", *, version: int = 1, **meta: Any) -> bytes:
    """Return one request as the API server sends it."""
    return orjson.dumps(an_object(name, node, version=version, **meta))


def an_object(name: str, node: str = "", *, version: int = 0, **meta: Any) -> dict[str, Any]:
    """Return one request; it has a status only with a node."""
    found: dict[str, Any] = {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "metadata": {
            "annotations": {"resourceVersion": "1"},
            "name": name,
            "namespace": "default",
            "resourceVersion": str(version),
            "uid": f"uid-{name}",
            **meta,
        },
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
    }
    if node:
        found["status"] = {"nodeName": node, "phase": "Bound"}
    return found


class Truth:
    """A server's history, told to a fan-out as its list-watch would."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.store = Store(clock=lambda: 0.0)
        self.number = 0

    def change(self) -> Change:
        """Commit one random change: create, move, touch, take off a node, delete."""
        rng, store = self.rng, self.store
        keys = sorted(store.objects)
        if not keys or (len(keys) < 12 and rng.random() < 0.3):
            self.number += 1
            name = f"q{self.number % 15}-{self.number}"
            store.put(Key("r", "default", name), an_object(name), "client")
        elif rng.random() < 0.15:
            store.delete(rng.choice(keys), "client")
        else:
            key = rng.choice(keys)
            node = rng.choice((*NODES, "", store.objects[key].get("status", {}).get("nodeName")))
            uid = store.objects[key]["metadata"]["uid"]
            store.put(key, an_object(key.name, node or "", uid=uid), "somebody")
        return store.changes[-1]

    def tell_list(self, fanout: Fanout) -> None:
        fanout.reset()
        for obj in self.store.objects.values():
            fanout.seen(orjson.dumps(obj))
        fanout.complete(self.store.revision)

    def tell(self, fanout: Fanout, change: Change) -> None:
        fanout.event(change.kind, orjson.dumps(change.object), change.revision)

    def view(self, node: str, revision: int) -> View:
        """Return what a list of one node at `revision` holds."""
        return {
            obj["metadata"]["uid"]: obj
            for obj in self.store.state_at(revision).values()
            if obj.get("status", {}).get("nodeName") == node
        }


class Client:
    """One agent's view, made of lists and lines only."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.view: View = {}
        self.version = 0

    def take_list(self, body: bytes) -> None:
        page = orjson.loads(body)
        assert page["kind"] == "SandboxRequestList"
        self.view = {item["metadata"]["uid"]: item for item in page["items"]}
        self.version = int(page["metadata"]["resourceVersion"])

    def take_line(self, line: bytes) -> dict[str, Any]:
        """Apply one line as an agent would; the kinds must be the right ones."""
        event: dict[str, Any] = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            return event
        version = int(obj["metadata"]["resourceVersion"])
        if kind == "BOOKMARK":
            assert version >= self.version
        else:
            assert version > self.version
            uid = obj["metadata"]["uid"]
            assert (uid in self.view) == (kind != "ADDED"), event
            if kind == "DELETED":
                assert obj["status"]["nodeName"] == self.node
                del self.view[uid]
            else:
                self.view[uid] = obj
        self.version = version
        return event
