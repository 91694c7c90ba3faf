"""Connections to servers that are not there, go away, come back, hang, or are something else."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from tests.unit.builders import a_node, a_snapshot
from tests.unit.plugins.rpc.processes import (
    ONE_LOOP,
    ended,
    is_healthy,
    started,
    until,
    world,
    wrong_servers,
)

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Circuit, Health
from cubesched.plugins.python.host import Limits
from cubesched.plugins.rpc.encoding import Encoder
from cubesched.plugins.rpc.host import RpcHost
from cubesched.plugins.rpc.sockets import Socket

pytestmark = ONE_LOOP
HASTE: Final[dict[str, Any]] = {"timeout_seconds": 0.1, "circuit_breaker_failures": 3}
KEPT = [True, False, True]


@pytest.fixture
def servers() -> Path:
    return wrong_servers()


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# Coming and going


async def test_a_server_that_is_not_there_is_unreachable_and_used_once_it_comes(
    tmp_path: Path, processes: ExitStack
) -> None:
    async with world(tmp_path) as it:
        plugin = it.filter("late")
        answer = await it.asked(plugin)
        assert answer == f"unreachable: {tmp_path}/late.sock: no such file or directory"
        assert plugin.host.health()[0] is Health.UNREACHABLE

        processes.callback(ended, started("sound.py", f"{tmp_path}/late.sock"))
        seconds = await until(lambda: is_healthy(plugin.host))

        assert await it.asked(plugin) == KEPT
        assert seconds < 1.0


async def test_a_server_that_dies_and_returns_is_used_again_within_a_second(
    tmp_path: Path, processes: ExitStack
) -> None:
    async with world(tmp_path) as it:
        plugin = it.filter("it")
        first = started("sound.py", f"{tmp_path}/it.sock")
        processes.callback(ended, first)
        assert await it.asked(plugin) == KEPT

        ended(first)
        await until(lambda: not is_healthy(plugin.host))
        assert (await it.asked(plugin)).startswith("unreachable: ")

        processes.callback(ended, started("sound.py", f"{tmp_path}/it.sock"))
        assert await until(lambda: is_healthy(plugin.host)) < 1.0
        assert await it.asked(plugin) == KEPT


async def test_a_call_under_way_fails_at_once_when_its_server_dies(
    tmp_path: Path, processes: ExitStack
) -> None:
    process = started("faulty.py", str(tmp_path))
    processes.callback(ended, process)
    async with world(tmp_path) as it:
        plugin = it.filter("hang")
        asking = asyncio.create_task(it.asked(plugin))
        await until(lambda: is_healthy(plugin.host))
        await asyncio.sleep(0.05)
        assert not asking.done()

        ended(process)

        assert (await asyncio.wait_for(asking, 1.0)).startswith("UNAVAILABLE")


async def test_a_restarted_server_begins_with_a_closed_breaker(
    tmp_path: Path, processes: ExitStack
) -> None:
    process = started("faulty.py", str(tmp_path))
    processes.callback(ended, process)
    async with world(tmp_path) as it:
        plugin = it.filter("hang", **HASTE)
        await it.asked(it.score("hang", "count"))
        for _ in range(3):
            assert await it.asked(plugin) == "no answer within 100 ms"
        assert plugin.host.health()[0] is Health.CIRCUIT_OPEN

        ended(process)
        await until(lambda: plugin.host.health()[0] is Health.UNREACHABLE)
        processes.callback(ended, started("faulty.py", str(tmp_path)))

        assert await until(lambda: is_healthy(plugin.host)) < 1.0
        assert await it.asked(plugin) == "no answer within 100 ms"


async def test_a_server_that_dies_of_every_call_is_left_alone_in_the_end(tmp_path: Path) -> None:
    now = 100.0
    socket = Socket(f"{tmp_path}/it.sock", str(tmp_path))
    line = RpcHost(socket, Encoder(), lambda: now).line("filter", "it", Limits(1.0, 1, 30.0))

    def die_and_return() -> None:
        with pytest.raises(PluginError), line.breaker.guarding("it"):
            raise PluginError("it", "UNAVAILABLE")
        line.begin_anew()

        states.append(line.circuit)

    states: list[Circuit] = []
    for seconds in (0, 29, 31):
        now += seconds
        die_and_return()

    assert states == [Circuit.CLOSED, Circuit.OPEN, Circuit.CLOSED]


async def test_a_connection_that_is_closed_ends_its_calls(servers: Path) -> None:
    async with world(servers) as it:
        plugin = it.filter("hang")
        asking = asyncio.create_task(it.asked(plugin))
        await until(lambda: is_healthy(plugin.host))
        await asyncio.sleep(0.02)

        await plugin.host.close()

        assert await asking == "the connection was closed"
        assert plugin.host.health() == (Health.UNREACHABLE, "no Profile lists it any more")
        assert await it.asked(plugin) == "unreachable: no Profile lists it any more"


async def test_starting_never_waits(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        plugin = it.filter("none")

        plugin.host.start()
        plugin.host.start()

        assert plugin.host.health() == (Health.UNREACHABLE, "not connected yet")


# What may stand at the path


@pytest.mark.parametrize("what", ["file", "directory", "link", "linked directory"])
async def test_what_is_no_socket_is_not_connected_to(
    tmp_path: Path, servers: Path, what: str
) -> None:
    at = tmp_path / "it.sock"
    name, problem = "it", f"{at} is not a socket"
    if what == "file":
        at.touch()
    elif what == "directory":
        at.mkdir()
    elif what == "link":
        at.symlink_to(servers / "sound.sock")
        problem = f"{at} is a symbolic link"
    else:
        (tmp_path / "sub").symlink_to(servers)
        name, problem = "sub/sound", f"{tmp_path}/sub is a symbolic link"
    async with world(tmp_path) as it:
        assert await it.asked(it.filter(name)) == f"unreachable: {problem}"


async def test_a_socket_at_which_nobody_listens_is_unreachable(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/it.sock")
    async with world(tmp_path) as it:
        answer = await it.asked(it.filter("it"))

    assert answer == f"unreachable: nobody listens at {tmp_path}/it.sock"


async def test_a_server_of_something_else_is_unreachable(tmp_path: Path) -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR unknown command\r\n")
        writer.close()

    async with (
        await asyncio.start_unix_server(refuse, f"{tmp_path}/it.sock"),
        world(tmp_path) as it,
    ):
        answer = await it.asked(it.filter("it"))

    assert answer.startswith(f"unreachable: {tmp_path}/it.sock: ")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("other", "a gRPC server answers, but not one of scheduler plugins"),
        ("later", "it speaks protocol version 2, not 1"),
        ("nameless", "its name is not 1 to 63 printable characters"),
        ("garbled", "its handshake is no message of the protocol"),
        ("mute", "no handshake within 1 s"),
    ],
)
async def test_a_handshake_that_fails_says_why(servers: Path, name: str, problem: str) -> None:
    async with world(servers) as it:
        answer = await it.asked(it.filter(name))

    assert answer == f"unreachable: {servers}/{name}.sock: {problem}"


# What a server can do


async def test_a_server_without_scores_is_not_asked_for_one(servers: Path) -> None:
    async with world(servers) as it:
        kept, score = it.filter("filters-only"), it.score("filters-only")

        assert await it.asked(kept) == [True, True, False]
        assert await it.asked(score) == "filters-only has no score"
        assert score.host.health() == (Health.CAPABILITY_MISSING, "filters-only has no score")


async def test_a_server_of_named_filters_is_asked_for_those(servers: Path) -> None:
    async with world(servers) as it:
        assert await it.asked(it.filter("named", "racks")) == [True, True, False]
        answer = await it.asked(it.filter("named", "rooms"))

    assert answer == "named has no filter 'rooms'; it has racks, zones"


async def test_two_plugins_share_one_connection_and_not_their_breakers(servers: Path) -> None:
    async with world(servers) as it:
        kept, score = it.filter("two", "kept", **HASTE), it.score("two", "score")
        for _ in range(3):
            assert await it.asked(kept) == "kept n1 by 2, not 0 or 1"

        assert kept.host is score.host
        assert (await it.asked(kept)).startswith("not asked for another 30.0 s: 3 calls in a row")
        assert (await it.asked(score)) == "answered 3 bytes of values, 8 bytes each"
        assert kept.host.circuit("kept") is Circuit.OPEN
        assert kept.host.circuit("score") is Circuit.CLOSED
        health, why = kept.host.health()
        assert health is Health.CIRCUIT_OPEN
        assert why.startswith("kept is left alone, 3 calls in a row failed")


async def test_a_plugin_that_is_listed_no_more_leaves_no_trace_in_its_host_s_health(
    servers: Path,
) -> None:
    async with world(servers) as it:
        wrong, kept = it.filter("two", **HASTE), it.filter("two", "kept")
        for _ in range(3):
            await it.asked(wrong)
        assert not is_healthy(kept.host)

        del wrong

        assert is_healthy(kept.host)


# Time


async def test_the_loop_goes_on_while_a_server_hangs(servers: Path) -> None:
    async with world(servers) as it:
        hanging, sound = it.filter("hang", timeout_seconds=0.5), it.filter("sound")
        await it.asked(sound)
        asking = asyncio.create_task(it.asked(hanging))
        answers = 0
        while not asking.done():
            assert await it.asked(sound) == [True, True, False]
            answers += 1

        assert await asking == "no answer within 500 ms"
        assert answers > 3


async def test_of_fifty_calls_after_the_cooldown_one_reaches_the_plugin(
    tmp_path: Path, processes: ExitStack
) -> None:
    processes.callback(ended, started("faulty.py", str(tmp_path)))
    async with world(tmp_path) as it:
        plugin = it.filter("hang", circuit_breaker_cooldown_seconds=0.2, **HASTE)
        count = it.score("hang", "count", circuit_breaker_failures=100)
        for _ in range(3):
            await it.asked(plugin)
        before = await it.asked(count)
        await asyncio.sleep(0.2)

        answers = await asyncio.gather(*(it.asked(plugin) for _ in range(50)))

        assert before == "UNKNOWN: 3 calls"
        assert await it.asked(count) == "UNKNOWN: 4 calls"
        assert answers.count("no answer within 100 ms") == 1
        assert sum(answer.startswith("not asked while one call tries") for answer in answers) == 49
        assert (await it.asked(plugin)).startswith("not asked for another 0.")


async def test_giving_up_the_call_that_tries_lets_the_next_one_try(servers: Path) -> None:
    async with world(servers) as it:
        plugin = it.filter("hang", circuit_breaker_cooldown_seconds=0.05, **HASTE)
        for _ in range(3):
            await it.asked(plugin)
        await asyncio.sleep(0.05)
        trying = asyncio.create_task(it.asked(plugin))
        await until(lambda: plugin.host.circuit("it") is Circuit.TRYING)

        trying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trying

        assert plugin.host.circuit("it") is Circuit.OPEN
        assert await it.asked(plugin) == "no answer within 100 ms"


async def test_calls_that_are_given_up_are_no_failures(servers: Path) -> None:
    async with world(servers) as it:
        plugin = it.filter("hang", timeout_seconds=5.0, circuit_breaker_failures=1)
        asking = [asyncio.create_task(it.asked(plugin)) for _ in range(5)]
        await until(lambda: is_healthy(plugin.host))
        await asyncio.sleep(0.02)

        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

        assert is_healthy(plugin.host)


async def test_a_server_that_stands_still_and_goes_on_is_used_after_the_cooldown(
    tmp_path: Path, processes: ExitStack
) -> None:
    process = started("sound.py", f"{tmp_path}/it.sock")
    processes.callback(ended, process)
    async with world(tmp_path) as it:
        plugin = it.filter("it", circuit_breaker_cooldown_seconds=0.1, **HASTE)
        await it.asked(it.score("it", "idle"))
        os.kill(process.pid, signal.SIGSTOP)
        for _ in range(3):
            assert await it.asked(plugin) == "no answer within 100 ms"

        os.kill(process.pid, signal.SIGCONT)
        await asyncio.sleep(0.15)

        assert await it.asked(plugin) == KEPT
        assert is_healthy(plugin.host)


# Size


async def test_a_fleet_that_a_server_does_not_take_is_not_sent_and_no_failure(
    servers: Path,
) -> None:
    labels = {f"key-{number}": "value" for number in range(40)}
    large = a_snapshot([a_node(f"n{number:05}", labels=labels) for number in range(20_000)])
    async with world(servers) as it:
        small = it.filter("small", circuit_breaker_failures=1)
        liar = it.filter("liar", circuit_breaker_failures=1)

        answer = await it.asked(small, large)
        assert answer == "the snapshot is 6.0 MiB, more than the 4.0 MiB it takes"
        assert "larger than max" in await it.asked(liar, large)
        assert await it.asked(small) == await it.asked(liar) == [True, True, False]


async def test_fifty_thousand_nodes_are_taken(tmp_path: Path, processes: ExitStack) -> None:
    processes.callback(ended, started("sound.py", f"{tmp_path}/it.sock"))
    fleet = a_snapshot([a_node(f"n{number:05}", labels={"a": "b"}) for number in range(50_000)])
    async with world(tmp_path) as it:
        answer = await it.asked(it.filter("it"), fleet)

    assert len(answer) == 49_999
    assert all(answer)
