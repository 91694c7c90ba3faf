"""Which paths a Profile may name."""

from __future__ import annotations

import pytest

from cubesched.core.errors import PluginArgsInvalid
from cubesched.plugins.kinds import build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.rpc.plugins import RpcFilter, RpcScore
from cubesched.plugins.rpc.sockets import Socket, why_not

DIRECTORY = "/run/cube"
LONGEST = f"{DIRECTORY}/{'x' * (107 - len(DIRECTORY) - 1)}"
GOOD = (
    "/run/cube/a.sock",
    "/run/cube/team/a.sock",
    "/run/cube/x/../a.sock",
    "/run/./cube//a.sock",
    "/run/cube/..a.sock",
    "/run/cube/a b%20?#ü.sock",
    LONGEST,
)
OUTSIDE = "is not within /run/cube, the operator's plugin directory"
BAD = {
    "": "missing: give the whole path of the server's socket, within /run/cube",
    "a.sock": "'a.sock' is relative; give the whole path, within /run/cube",
    "./run/cube/a.sock": "'./run/cube/a.sock' is relative",
    "unix:/run/cube/a.sock": "'unix:/run/cube/a.sock' is relative",
    "/tmp/a.sock": f"'/tmp/a.sock' {OUTSIDE}",
    "/run/cube/../a.sock": f"'/run/cube/../a.sock' {OUTSIDE}",
    "/run/cube": f"'/run/cube' {OUTSIDE}",
    "/run/cube/": f"'/run/cube/' {OUTSIDE}",
    "/run/cube/x/..": f"'/run/cube/x/..' {OUTSIDE}",
    "/run/cubes/a.sock": f"'/run/cubes/a.sock' {OUTSIDE}",
    "/": f"'/' {OUTSIDE}",
    "/run/cube/a\0.sock": "'/run/cube/a\\x00.sock' has characters that cannot be printed",
    "/run/cube/a\nb": "'/run/cube/a\\nb' has characters that cannot be printed",
    f"{LONGEST}x": "is 108 bytes long; a Unix socket's path has at most 107",
    f"/run/cube/{'ü' * 50}": "is 110 bytes long; a Unix socket's path has at most 107",
}


@pytest.mark.parametrize("path", GOOD)
def test_a_path_within_the_directory_is_allowed(path: str) -> None:
    assert why_not(path, DIRECTORY) is None
    assert why_not(path, f"{DIRECTORY}/") is None


@pytest.mark.parametrize("path", BAD)
def test_any_other_path_is_a_problem_of_the_profile(path: str) -> None:
    listing = Listing("zones", "grpc", socket_path=path)
    for build in (build_filter, build_score):
        with pytest.raises(PluginArgsInvalid) as caught:
            build(listing, Surroundings())

        [(field, message)] = caught.value.problems
        assert field == "socketPath"
        assert message.startswith(BAD[path])


def test_a_directory_at_the_root_is_allowed() -> None:
    assert why_not("/a.sock", "/") is None


def test_entries_of_one_socket_share_its_host_however_it_is_spelled() -> None:
    around = Surroundings()
    one = build_filter(Listing("a", "grpc", socket_path="/run/cube/a.sock"), around)
    other = build_score(Listing("b", "grpc", socket_path="/run/cube/x/../a.sock"), around)
    third = build_score(Listing("b", "grpc", socket_path="/run/cube/b.sock"), around)

    assert isinstance(one, RpcFilter)
    assert isinstance(other, RpcScore)
    assert isinstance(third, RpcScore)
    assert one.host is other.host
    assert one.host is not third.host


def test_commands_on_other_machines_know_it_by_its_name() -> None:
    around = Surroundings(is_elsewhere=True)

    assert build_filter(Listing("a", "grpc", socket_path="/x/a.sock"), around).name == "a"


def test_the_address_is_written_as_grpc_reads_it() -> None:
    assert Socket.of("/run/cube/x/../a b%.sock", DIRECTORY).target == "unix:/run/cube/a%20b%25.sock"
