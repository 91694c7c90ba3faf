"""Redis and the API server go away and come back; nothing is lost meanwhile."""

from __future__ import annotations

import time

from tests.e2e.operating import Operating, a_request, wait_until

from cubesched.local import LocalControlPlane


def test_scheduling_goes_on_without_redis_and_the_fleet_is_fresh_again_after_it(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_nodes(2, "--cpu", "16", "--memory", "64Gi")
    operating.start_replica()
    wait_until(lambda: operating.metric("a", "cubesched_nodes", state="ok") == 2, what="usable")
    control_plane.kill_redis()
    try:
        wait_until(lambda: operating.metric("a", "cubesched_redis_up") == 0, what="noticed")
        operating.create_all(a_request(f"r{n}") for n in range(8))
        wait_until(lambda: operating.phases()["Running"] == 8, what="placed on what is known")
        assert operating.probe("a", "livez")[0] == 200
    finally:
        control_plane.start_redis()

    wait_until(lambda: operating.metric("a", "cubesched_redis_up") == 1, what="Redis is back")
    operating.create_all(a_request(f"s{n}") for n in range(8))
    wait_until(lambda: operating.phases()["Running"] == 16, what="all run")


def test_an_api_server_restart_loses_nothing(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_nodes(4, "--cpu", "16", "--memory", "64Gi")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    operating.create_all(a_request(f"r{n:02}") for n in range(30))
    time.sleep(0.5)

    control_plane.restart_apiserver()

    wait_until(lambda: operating.phases()["Running"] == 30, seconds=60, what="all run")
    operating.create_all(a_request(f"s{n:02}") for n in range(20))
    wait_until(lambda: operating.phases()["Running"] == 50, seconds=60, what="more run")
    assert operating.metric("a", "cubesched_watch_restarts_total") >= 1
    assert operating.audit()["violations"] == 0
