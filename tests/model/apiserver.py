"""An API server in memory, true to what list-watch and conditional writes meet on a real one.

Each client gets its own `client(identity)`, a Transport with its own latencies, lags and faults,
all drawn from one seed. A request is one atomic step on the store at some instant between its
sending and its answer, or later than that, or never. Nothing here waits but on the loop's timers,
so a virtual clock drives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random

import orjson
from tests.model.client import Call, ModelTransport
from tests.model.faults import Faults, Fired
from tests.model.lists import serve_list
from tests.model.resources import Refusal, Target, discovery, parse
from tests.model.store import Object, Store
from tests.model.watches import Watch
from tests.model.writes import Writer, not_found

from cubesched.adapters.cluster.transport import Response

ADMIN = "admin"
NEVER_EXPECTED = (400, 403, 405, 415, 422)
"""No race and no fault leads to these: the client has sent what is wrong."""
Rights = Callable[[str, str, Target], bool]
Verb = Callable[[Target, Call], Object]


def least_rights(identity: str, method: str, target: Target) -> bool:
    """Refuse patches of a request's status to everyone but the admin, as the RBAC does."""
    is_guarded = target.kind.plural == "sandboxrequests" and target.subresource == "status"
    return not (is_guarded and method == "PATCH" and identity != ADMIN)


def everything(identity: str, method: str, target: Target) -> bool:
    """Refuse nothing."""
    return True


class ApiServer:
    """The server; its clients come from `client`."""

    def __init__(
        self, *, rng: Random, faults: Faults | None = None, rights: Rights = least_rights
    ) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time
        self.rng = rng
        self.faults = faults or Faults()
        self.fired: Fired = Fired()
        self.store = Store(clock=self.now)
        self.store.listeners.append(lambda _: self._wake_all())
        self.malformed: list[str] = []
        """Requests that no right client sends, the admin's aside."""
        self.watches: list[Watch] = []
        self.bookmark_seconds = 60.0
        self.most_per_page = 500
        """A page never holds more, whatever its limit: small fleets have several pages too."""
        self.serves_initial_events = True
        self.cache_floor = self.store.revision
        """A watch from a position below is answered with 410."""
        self.incarnation = 0
        self._up_at = self._warm_at = 0.0
        self._rights = rights
        self._writer = Writer(self.store, rng)
        self._verbs: Mapping[tuple[str, bool], Verb] = {
            ("GET", True): self._get,
            ("GET", False): self._list,
            ("POST", False): self._create,
            ("PUT", True): self._replace,
            ("PATCH", True): self._patch,
            ("DELETE", True): self._delete,
        }

    def client(self, identity: str) -> ModelTransport:
        """Return a new client's connection."""
        return ModelTransport(self, identity)

    @property
    def is_up(self) -> bool:
        """Tell whether it takes connections."""
        return self.now() >= self._up_at

    def serve(self, call: Call) -> Response:
        """Answer one request, now and as a whole."""
        self.fired["request"] += 1
        try:
            status, obj = self._answer(call)
        except Refusal as refusal:
            self.fired[f"answer_{refusal.code}"] += 1
            if refusal.code in NEVER_EXPECTED and call.identity != ADMIN:
                self.malformed.append(f"{call.identity}: {call.method} {call.path}: {refusal}")
            return refusal.response()
        return Response(status, orjson.dumps(obj))

    def _answer(self, call: Call) -> tuple[int, Object]:
        group = discovery(call.path.strip("/").removeprefix("apis/"))
        if group is not None and call.method == "GET":
            return 200, group
        target = self._target(call)
        verb = self._verbs.get((call.method, bool(target.name)))
        if verb is None or (call.method == "DELETE" and target.subresource):
            raise Refusal(405, "MethodNotAllowed", "the server does not allow this method here")
        revision = self.store.revision
        obj = verb(target, call)
        is_new = self.store.revision > revision and self.store.changes[-1].kind == "ADDED"
        return 201 if is_new else 200, obj

    def _target(self, call: Call) -> Target:
        target = parse(call.path)
        if not self._rights(call.identity, call.method, target):
            raise Refusal(
                403,
                "Forbidden",
                f'{target.kind.plural} "{target.name}" is forbidden: User "{call.identity}" '
                f"cannot {call.method.lower()} this resource",
            )
        return target

    def _get(self, target: Target, _: Call) -> Object:
        obj = self.store.objects.get(target.key)
        if obj is None:
            raise not_found(target)
        return obj

    def _list(self, target: Target, call: Call) -> Object:
        return serve_list(
            self.store,
            target,
            call.params,
            cache_floor=self.cache_floor,
            most_per_page=self.most_per_page,
            rng=self.rng,
        )

    def _create(self, target: Target, call: Call) -> Object:
        return self._writer.create(target, call.body or b"", by=call.identity)

    def _replace(self, target: Target, call: Call) -> Object:
        return self._writer.replace(target, call.body or b"", by=call.identity)

    def _patch(self, target: Target, call: Call) -> Object:
        return self._writer.patch(
            target,
            call.body or b"",
            content_type=call.content_type,
            params=call.params,
            by=call.identity,
        )

    def _delete(self, target: Target, call: Call) -> Object:
        return self._writer.delete(target, call.body, by=call.identity)

    def open_watch(self, call: Call) -> Watch:
        """Open a watch; raise Refusal when it is not answered with 200."""
        if self.now() < self._warm_at:
            self.fired["watch_429_cold"] += 1
            raise Refusal(
                429,
                "TooManyRequests",
                "storage is (re)initializing",
                retry_after_seconds=1,
            )
        watch = Watch(self, self._target(call), call.params)
        if watch.is_expired and self.rng.random() < self.faults.gone_as_http:
            watch.close()
            self.fired["watch_410_http"] += 1
            raise Refusal(410, "Expired", "too old resource version")
        return watch

    def _wake_all(self) -> None:
        for watch in self.watches:
            watch.wake()

    def restart(self, *, down_seconds: float = 0.0, cold_seconds: float = 0.0) -> None:
        """Kill the server and start it again; etcd keeps everything.

        Every connection breaks; what was on its way and not yet committed never will be; the new
        watch cache begins here, so every older position gets 410.
        """
        self.fired["restart"] += 1
        self.incarnation += 1
        self.cache_floor = self.store.revision
        self._up_at = self.now() + down_seconds
        self._warm_at = self._up_at + cold_seconds
        self._wake_all()

    def restore(self, revision: int, *, bump: int = 0, down_seconds: float = 0.0) -> None:
        """Restore etcd from the backup of `revision` and start the server on it."""
        self.fired["restore"] += 1
        self.store.restore(revision, bump=bump)
        self.restart(down_seconds=down_seconds)

    def compact(self, revision: int | None = None, *, in_cache_too: bool = False) -> None:
        """Compact etcd, by default up to now: continue tokens from before expire.

        Watches outlive it, as the server's cache still knows the past; with `in_cache_too` that
        is forgotten as well, and an older position gets 410 when it is opened again.
        """
        self.fired["compact"] += 1
        self.store.compact(self.store.revision if revision is None else revision)
        if in_cache_too:
            self.cache_floor = max(self.cache_floor, self.store.compacted)

    def end_streams(self) -> None:
        """End every open watch cleanly, as an updated CRD does."""
        self.fired["end_streams"] += 1
        for watch in self.watches:
            watch.end()
