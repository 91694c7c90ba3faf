"""One real control plane on this machine: etcd, kube-apiserver, kube-controller-manager, Redis.

    with LocalControlPlane("mine") as plane:
        run(["kubectl", "--kubeconfig", plane.kubeconfig, "get", "namespaces"])

All of it ends with this process, however this process ends, unless `detach` was called.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from cubesched.core.errors import UsageError
from cubesched.local import commands, waiting
from cubesched.local.binaries import Binaries, find_binaries
from cubesched.local.children import LOCK_FILE, Children, ProcessDied, claim
from cubesched.local.kubeconfigs import write_kubeconfig
from cubesched.local.manifests import install_manifests
from cubesched.local.paths import instance_directory
from cubesched.local.pki import Authority, Credential, service_account_keys, write_private
from cubesched.local.toolchain import Report

STATE_FILE = "state.json"
READY_SECONDS = 90.0
_PORT_TRIES = 5
_ADMIN: tuple[str, list[str]] = ("cubesched-admin", ["system:masters"])
_CONTROLLER_MANAGER: tuple[str, list[str]] = ("system:kube-controller-manager", [])
_PORT_TAKEN = re.compile("address already in use", re.IGNORECASE)


def to_stderr(line: str) -> None:
    """Report a line of progress to the person at the terminal."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class LocalControlPlane:
    """A control plane of its own: own ports, certificates and directory, side by side with others.

    `start` finds or builds the programs (minutes, once a machine), then takes a few seconds.
    The attributes below are set by it.
    """

    kubeconfig: Path
    """Identity `cubesched-admin`, group `system:masters`."""
    server: str
    """`https://127.0.0.1:PORT`."""
    ca_file: Path
    relay_certificate: Path
    """For a `cubesched relay` on this machine; its key beside it ends in `.key`."""
    redis_url: str
    binaries: Binaries

    def __init__(
        self, name: str, directory: Path | None = None, *, report: Report = to_stderr
    ) -> None:
        self.name = name
        self.directory = (directory or instance_directory(name)).absolute()
        self._report = report
        self._children: Children | None = None

    def start(self, *, manifests: bool = False) -> Self:
        """Start everything and return when `/readyz` answers; with `manifests`, install them too.

        Remains of an earlier run in the directory are removed. Raises UsageError when the instance
        is running already or a program can be neither found nor built.
        """
        self.binaries = find_binaries(report=self._report)
        lock_descriptor = claim(self.directory)
        try:
            clear(self.directory)
            self._make_certificates()
            self._children = Children(self.directory, lock_descriptor=lock_descriptor)
        except BaseException:
            os.close(lock_descriptor)
            raise
        try:
            self._start_processes()
            if manifests:
                install_manifests(self.kubeconfig, kubectl=self.binaries.kubectl)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kill all processes; nothing happens when none runs. The directory stays, for its logs."""
        if self._children is not None:
            self._children.stop()
            self._children = None

    def detach(self) -> None:
        """Let the control plane live on after this process; `instances.stop` ends it."""
        self._running.detach()
        self._children = None

    def client_kubeconfig(self, user: str, groups: list[str]) -> Path:
        """Return a kubeconfig whose client certificate says `user` and `groups`, made if new."""
        identity = json.dumps([user, groups])
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", user)[:60]
        digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
        path = self.directory / "clients" / f"{readable}-{digest}.kubeconfig"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            self._write_kubeconfig(path, self._authority.issue_client(user, groups))
        return path

    def kill_redis(self) -> None:
        """Kill Redis, as a crash would; all it held is lost."""
        self._running.kill("redis")

    def start_redis(self) -> None:
        """Start Redis, empty, on the port it had before."""
        self._start_redis(self._redis_port)

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again on its port; return when it is ready."""
        self._running.kill("kube-apiserver")
        self._start_apiserver(self._port)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def _running(self) -> Children:
        if self._children is None:
            raise UsageError(f"the control plane {self.name!r} is not running")
        return self._children

    def _make_certificates(self) -> None:
        self._authority = Authority()
        folder = self.directory / "pki"
        folder.mkdir(mode=0o700)
        self.ca_file = write_private(folder / "ca.crt", self._authority.certificate)
        self.relay_certificate = folder / "relay.crt"
        tokens = service_account_keys()
        for name, owner in (("server", "kube-apiserver"), ("relay", "cubesched-relay")):
            served = self._authority.issue_server(owner)
            write_private(folder / f"{name}.crt", served.certificate)
            write_private(folder / f"{name}.key", served.key)
        write_private(folder / "service-account.pub", tokens.certificate)
        write_private(folder / "service-account.key", tokens.key)
        admin = self._authority.issue_client(*_ADMIN)
        write_private(folder / "admin.crt", admin.certificate)
        write_private(folder / "admin.key", admin.key)
        self._admin = admin
        self._tls = ssl.create_default_context(cafile=str(self.ca_file))
        self._tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")

    def _start_processes(self) -> None:
        started = time.monotonic()
        self._running.start("etcd", commands.etcd(self.binaries))
        self._redis_port = with_free_port(self._start_redis)
        self.redis_url = f"redis://127.0.0.1:{self._redis_port}/0"
        self._wait("etcd", (self.directory / commands.ETCD_SOCKET).is_socket)
        self._port = with_free_port(self._start_apiserver)
        self.server = f"https://127.0.0.1:{self._port}"
        self.kubeconfig = self._write_kubeconfig(self.directory / "kubeconfig", self._admin)
        manager = self._authority.issue_client(*_CONTROLLER_MANAGER)
        manager_config = self.directory / "kube-controller-manager.kubeconfig"
        self._write_kubeconfig(manager_config, manager)
        self._running.start(
            "kube-controller-manager", commands.kube_controller_manager(self.binaries)
        )
        self._write_state()
        self._report(f"control plane {self.name} ready in {time.monotonic() - started:.1f} s")

    def _start_redis(self, port: int) -> None:
        argv = commands.redis_server(self.binaries, port=port, directory=self.directory)
        self._running.start("redis", argv)
        self._wait("redis", lambda: waiting.redis_answers(port))

    def _start_apiserver(self, port: int) -> None:
        self._running.start("kube-apiserver", commands.kube_apiserver(self.binaries, port=port))
        self._wait("kube-apiserver", lambda: waiting.apiserver_answers(port, self._tls, "/readyz"))

    def _wait(self, process: str, is_ready: Callable[[], bool]) -> None:
        waiting.wait_until(
            is_ready,
            what=process,
            check=lambda: self._running.check(process),
            timeout_seconds=READY_SECONDS,
        )

    def _write_kubeconfig(self, path: Path, credential: Credential) -> Path:
        return write_kubeconfig(
            path,
            name=f"cubesched-{self.name}",
            server=self.server,
            authority=self._authority.certificate,
            credential=credential,
        )

    def _write_state(self) -> None:
        state = {
            "name": self.name,
            "server": self.server,
            "redisURL": self.redis_url,
            "kubeconfig": str(self.kubeconfig),
            "supervisor": self._running.supervisor_pid,
            "processes": self._running.pids,
        }
        write_private(self.directory / STATE_FILE, json.dumps(state, indent=2).encode() + b"\n")


def with_free_port(start: Callable[[int], None]) -> int:
    """Call `start` with free ports until nobody else was quicker to take one; return that port."""
    for _ in range(_PORT_TRIES - 1):
        port = waiting.free_port()
        try:
            start(port)
        except ProcessDied as error:
            if not _PORT_TAKEN.search(error.output):
                raise
        else:
            return port
    start(port := waiting.free_port())
    return port


def clear(directory: Path) -> None:
    """Remove all that an earlier run left, but for the lock, which the caller holds."""
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK_FILE:
            entry.unlink()
