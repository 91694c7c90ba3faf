"""The hosts of plugins that are waited for: kept across policy sets, closed when unused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Hashable
from typing import TypeVar, cast

from cubesched.core.pipeline import Host, Pipeline, Waiting

HostT = TypeVar("HostT", bound=Host)

LINGER_SECONDS = 30.0
"""How long a host outlives the last policy set that used it: attempts under way still hold it."""


class Hosts:
    """Every host of this process, by what makes it what it is.

    `host` may be called from any thread, since policy compiles in one of its own.
    """

    def __init__(self) -> None:
        self._hosts: dict[Hashable, Host] = {}
        self._lock = threading.Lock()
        self._leaving: dict[asyncio.Task[None], Host] = {}

    def host(self, key: Hashable, make: Callable[[], HostT]) -> HostT:
        """Return the host of this key, made now if there is none; nothing is started."""
        with self._lock:
            found = self._hosts.get(key)
            if found is None:
                found = self._hosts[key] = make()
        return cast("HostT", found)  # a key names one type of host

    def run(self, pipelines: Collection[Pipeline]) -> None:
        """Start what these pipelines use; close the rest after a while."""
        used = {id(plugin.host): plugin.host for p in pipelines for plugin in waiting(p)}
        for host in used.values():
            host.start()
        with self._lock:
            unused = [key for key, host in self._hosts.items() if id(host) not in used]
            leaving = [self._hosts.pop(key) for key in unused]
        for host in leaving:
            task = asyncio.get_running_loop().create_task(_close_later(host))
            self._leaving[task] = host
            task.add_done_callback(self._leaving.pop)

    async def close(self) -> None:
        """Close every host now, those too that were to be closed after a while."""
        leaving = dict(self._leaving)
        for task in leaving:
            task.cancel()
        with self._lock:
            hosts = [*self._hosts.values(), *leaving.values()]
            self._hosts.clear()
        await asyncio.gather(*(host.close() for host in hosts))


def waiting(pipeline: Pipeline) -> list[Waiting]:
    """Return the plugins of a pipeline that are waited for."""
    listed = [*pipeline.filters, *(entry.plugin for entry in pipeline.scores)]
    return [plugin for plugin in listed if isinstance(plugin, Waiting)]


async def _close_later(host: Host) -> None:
    await asyncio.sleep(LINGER_SECONDS)
    await host.close()
