"""The local control plane is a real cluster's: its rules hold, and nothing outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import redis
from tests.e2e.conftest import Kubectl

from cubesched.local import LocalControlPlane


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _wait_until_dead(pids: list[int]) -> list[int]:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(_is_alive, pids)):
        time.sleep(0.05)
    return [pid for pid in pids if _is_alive(pid)]


def test_a_user_without_a_role_may_do_nothing(
    control_plane: LocalControlPlane, kubectl: Kubectl
) -> None:
    nobody = control_plane.client_kubeconfig("nobody", [])

    answer = kubectl("--kubeconfig", str(nobody), "get", "namespaces", check=False)

    assert answer.returncode == 1
    assert 'User "nobody" cannot list resource "namespaces"' in answer.stderr


def test_a_group_in_a_client_certificate_carries_its_roles(
    control_plane: LocalControlPlane, kubectl: Kubectl
) -> None:
    member = control_plane.client_kubeconfig("somebody", ["system:masters", "others"])

    assert "default" in kubectl("--kubeconfig", str(member), "get", "namespaces").stdout


def test_a_namespace_gets_a_service_account_and_goes_away_when_deleted(
    kubectl: Kubectl,
) -> None:
    kubectl("create", "namespace", "passing")

    kubectl("wait", "--for=create", "serviceaccount/default", "-n", "passing", "--timeout=20s")
    assert kubectl("create", "token", "default", "-n", "passing").stdout.count(".") == 2
    kubectl("delete", "namespace", "passing", "--timeout=30s")


def test_redis_is_empty_after_a_crash_and_a_restart(control_plane: LocalControlPlane) -> None:
    client = redis.Redis.from_url(control_plane.redis_url)
    client.set("written", "before")

    control_plane.kill_redis()
    control_plane.start_redis()

    assert client.get("written") is None
    client.close()


def test_the_apiserver_keeps_its_objects_and_address_over_a_restart(
    control_plane: LocalControlPlane, kubectl: Kubectl, fresh_namespace: str
) -> None:
    control_plane.restart_apiserver()

    assert fresh_namespace in kubectl("get", "namespaces", "-o", "name").stdout


def test_two_instances_run_side_by_side_and_do_not_know_each_other(
    control_plane: LocalControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    with LocalControlPlane("second", tmp_path / "second") as second:
        answer = kubectl("--kubeconfig", str(second.kubeconfig), "get", "namespaces")
        stranger = kubectl(
            "--kubeconfig", str(second.kubeconfig), "--server", control_plane.server,
            "get", "namespaces", check=False,
        )  # fmt: skip

    assert "default" in answer.stdout
    assert "certificate" in stranger.stderr


def test_nothing_outlives_the_sigkill_of_its_owner(tmp_path: Path) -> None:
    program = """
        import json, signal, sys
        from pathlib import Path
        from cubesched.local import LocalControlPlane
        plane = LocalControlPlane("doomed", Path(sys.argv[1]), report=lambda line: None)
        plane.start()
        state = json.loads((plane.directory / "state.json").read_text())
        print(*state["processes"].values(), state["supervisor"], flush=True)
        signal.pause()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "doomed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(pids) == 5
        assert all(map(_is_alive, pids))
        owner.send_signal(signal.SIGKILL)

    assert _wait_until_dead(pids) == []


def test_nothing_outlives_the_sigkill_of_its_supervisor(tmp_path: Path) -> None:
    plane = LocalControlPlane("beheaded", tmp_path / "beheaded").start()
    children = plane._running

    os.kill(children.supervisor_pid, signal.SIGKILL)

    assert _wait_until_dead(list(children.pids.values())) == []
    plane.stop()


def _cubesched(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cubesched", "local", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_instance_outlives_its_command_until_it_is_taken_down(kubectl: Kubectl) -> None:
    name = ("--name", f"test-up-{os.getpid()}")
    try:
        first, second = _cubesched("up", *name), _cubesched("up", *name)
        path = _cubesched("kubeconfig", *name).stdout.strip()
        listed = _cubesched("status", *name).stdout
        kinds = kubectl("--kubeconfig", path, "get", "crd", "-o", "name").stdout
    finally:
        down = _cubesched("down", *name)

    assert first.returncode == 0, first.stderr
    assert "running already" in second.stderr
    assert second.stdout == first.stdout
    assert "Running" in listed
    assert "sandboxrequests.cubesched.io" in kinds
    assert down.returncode == 0
    assert _cubesched("status", *name).returncode == 1


def test_what_the_manifests_need_is_installed(kubectl: Kubectl) -> None:
    kubectl("get", "namespace", "cubesched-system")
    kubectl("get", "sandboxrequests,sandboxnodes,schedulerprofiles,schedulerconfigs", "-A")
    policies = kubectl("get", "validatingadmissionpolicybindings", "-o", "name").stdout

    assert "cubesched" in policies
