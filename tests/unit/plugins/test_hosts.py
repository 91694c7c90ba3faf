"""Hosts stay as long as any policy set uses them, and a little longer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from tests.unit.scheduling.plugins import Slow, waiting_for
from typing_extensions import override

from cubesched.core.pipeline import Health, Host, Pipeline
from cubesched.plugins import hosts as module
from cubesched.plugins.hosts import Hosts


@dataclass
class Counted(Host):
    """Notes what is done to it."""

    done: list[str] = field(default_factory=list)

    @override
    def start(self) -> None:
        self.done.append("started")

    @override
    async def close(self) -> None:
        self.done.append("closed")

    @override
    def health(self) -> tuple[Health, str]:
        return Health.HEALTHY, ""


def using(host: Host) -> list[Pipeline]:
    return [waiting_for(Slow(host=host))]


async def until_closed(host: Counted) -> None:
    async with asyncio.timeout(5):
        while host.done[-1:] != ["closed"]:  # noqa: ASYNC110 - a host tells nobody
            await asyncio.sleep(0)


def test_one_key_names_one_host() -> None:
    hosts = Hosts()
    first = hosts.host("a", Counted)

    assert hosts.host("a", Counted) is first
    assert hosts.host("b", Counted) is not first


async def test_what_runs_is_started_and_stays() -> None:
    hosts = Hosts()
    host = hosts.host("a", Counted)

    hosts.run(using(host))
    hosts.run(using(host))

    assert host.done == ["started", "started"]
    assert hosts.host("a", Counted) is host


async def test_what_nothing_uses_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.0)
    hosts = Hosts()
    host = hosts.host("a", Counted)
    hosts.run(using(host))

    hosts.run([])
    assert host.done == ["started"]
    await until_closed(host)

    assert hosts.host("a", Counted) is not host


async def test_the_end_closes_those_that_run_and_those_that_linger() -> None:
    hosts = Hosts()
    lingers, runs = hosts.host("a", Counted), hosts.host("b", Counted)
    hosts.run(using(lingers))
    hosts.run(using(runs))

    await hosts.close()

    assert (lingers.done, runs.done) == (["started", "closed"], ["started", "closed"])
