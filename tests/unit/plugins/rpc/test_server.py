"""What authors of servers can rely on: sockets taken from nobody, errors that say what is wrong."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_node, a_request, a_snapshot
from tests.unit.plugins.rpc.processes import FLEET, ONE_LOOP, ended, started, world
from tests.unit.plugins.rpc.sound import server as sound

from cubesched.core.pipeline import NOT_APPLICABLE
from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.encoding import Encoder
from cubesched.plugins.rpc.held import MOST_FACTS, Held, NotHeld
from cubesched.plugins.rpc.plugins import RpcFilter
from cubesched.plugins.rpc.server import CannotListen, Server

KEPT = [True, False, True]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Path]:
    """A socket at which the sound server listens."""
    sound.start(tmp_path / "it.sock")
    yield tmp_path / "it.sock"
    sound.stop()


def a_server() -> Server:
    server = Server("other")
    server.filter()(lambda fleet, _: fleet.healthy)
    return server


# Answers


@ONE_LOOP
async def test_filters_and_scores_answer_by_name(at: Path) -> None:
    async with world(at.parent) as it:
        assert await it.asked(it.filter("it", "any name")) == KEPT
        assert await it.asked(it.score("it", "idle")) == [90.0] * 3
        assert await it.asked(it.score("it", "busy")) == "sound has no score 'busy'; it has idle"


@ONE_LOOP
async def test_a_score_may_not_apply(at: Path) -> None:
    async with world(at.parent) as it:
        score = it.score("it", "idle")
        score.host.start()
        answer = await score.score(FLEET, a_request(template_id="t-1"), np.arange(4))

    assert answer is NOT_APPLICABLE


@ONE_LOOP
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("broken", "KeyError: 'zone'"),
        ("a list", "TypeError: returned list, not a NumPy array"),
        ("a short one", "TypeError: returned an array of shape (1,) for 4 nodes"),
        ("numbers", "TypeError: returned float64, not bools"),
    ],
)
async def test_what_a_function_does_wrong_is_told_to_the_operator(
    at: Path, name: str, problem: str
) -> None:
    async with world(at.parent) as it:
        assert await it.asked(it.filter("it", name)) == f"UNKNOWN: {problem}"


def test_a_name_is_given_once() -> None:
    server = a_server()
    server.score("idle")(lambda fleet, _: fleet.cpu_util)

    with pytest.raises(ValueError, match="filter '' is registered twice"):
        server.filter()(lambda fleet, _: fleet.healthy)
    with pytest.raises(ValueError, match="score 'idle' is registered twice"):
        server.score("idle")(lambda fleet, _: fleet.cpu_util)


# Sockets


def test_a_server_does_not_take_the_path_of_another(at: Path) -> None:
    with pytest.raises(CannotListen, match=r"another server listens at .*it\.sock"):
        a_server().start(at)

    assert at.is_socket()
    assert [path.name for path in at.parent.iterdir()] == ["it.sock"]


def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/it.sock")
    server = a_server()

    server.start(tmp_path / "it.sock")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{tmp_path}/it.sock")
    server.stop()

    assert list(tmp_path.iterdir()) == []


def test_a_server_removes_no_socket_but_its_own(tmp_path: Path) -> None:
    first, second = a_server(), a_server()
    first.start(tmp_path / "it.sock")
    (tmp_path / "it.sock").unlink()
    second.start(tmp_path / "it.sock")

    first.stop()

    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{tmp_path}/it.sock")
    second.stop()


@pytest.mark.parametrize("what", ["file", "directory", "link"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "it.sock"
    if what == "file":
        path.write_text("mine")
    elif what == "directory":
        path.mkdir()
    else:
        path.symlink_to("nowhere")

    with pytest.raises(CannotListen, match=r"it\.sock is there and is no socket"):
        a_server().start(path)

    assert path.is_symlink() or path.exists()


def test_a_path_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match="no such file or directory"):
        a_server().start(tmp_path / "nowhere" / "it.sock")
    with pytest.raises(CannotListen, match="is too long: a socket's path has at most 107 bytes"):
        a_server().start(tmp_path / ("x" * 100))


# A process


def test_a_server_ends_with_sigterm_and_leaves_nothing_behind(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import logging\n"
        "from cubesched.plugins.rpc.server import Server\n"
        "logging.basicConfig(level='INFO')\n"
        "server = Server('mine')\n"
        "server.filter()(lambda fleet, _: fleet.healthy)\n"
        f"server.run('{tmp_path}/it.sock')\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "mine listens at" in process.stderr.readline()

    second = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=30
    )
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=30)

    assert (second.returncode, second.stderr) == (
        1, f"mine: another server listens at {tmp_path}/it.sock\n"
    )  # fmt: skip
    assert (process.returncode, rest) == (0, "")
    assert list(tmp_path.iterdir()) == [script]


@ONE_LOOP
async def test_a_server_that_was_killed_can_be_started_again(tmp_path: Path) -> None:
    path = str(tmp_path / "it.sock")
    assert ended(started("sound.py", path)) == -signal.SIGKILL

    with ExitStack() as stack:
        stack.callback(ended, started("sound.py", path))
        async with world(tmp_path) as it:
            assert await it.asked(it.filter("it")) == KEPT


# What was sent lately


@ONE_LOOP
async def test_what_a_server_holds_is_not_sent_again(at: Path) -> None:
    counted = copy(FLEET)
    counted.version, counted.sandboxes = 18, FLEET.sandboxes + 1
    grown = copy(counted)
    grown.version, grown.facts_version, grown.sandboxes = 19, 1, FLEET.sandboxes + 2
    sizes: list[int] = []
    async with world(at.parent) as it:
        plugin = it.filter("it")
        await it.asked(plugin)
        _watch(plugin, sizes)

        for fleet in (FLEET, counted, grown, grown):
            assert await it.asked(plugin, fleet) == KEPT

    held, state, whole, again = sizes
    assert held < 120 < state < whole
    assert again < 120


def _watch(plugin: RpcFilter, sizes: list[int]) -> None:
    """Note how large each question is."""
    session = plugin.host._session
    assert session is not None
    call = session._methods["Filter"]

    def noted(message: bytes, timeout: float) -> Any:
        sizes.append(len(message))
        return call(message, timeout=timeout)

    session._methods["Filter"] = noted


def test_a_server_holds_only_what_came_lately() -> None:
    held, encoder = Held(), Encoder()

    def question(version: int) -> pb.FilterRequest:
        fleet = a_snapshot([a_node("n1")], version=version)
        encoded = encoder.encoded(fleet)
        asked = pb.FilterRequest.FromString(encoded.facts.field + encoded.state)
        asked.client, asked.snapshot_version = "c", version
        return asked

    def reference(version: int) -> pb.FilterRequest:
        return pb.FilterRequest(client="c", snapshot_version=version)

    for version in range(MOST_FACTS + 1):
        held.fleet(question(version))

    assert held.fleet(reference(1)).version == 1
    with pytest.raises(NotHeld):
        held.fleet(reference(0))
    with pytest.raises(NotHeld):
        held.fleet(pb.FilterRequest(client="other", snapshot_version=1))
