"""Finding the API server: a kubeconfig, a pod's own account, or one line that says why not."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cubesched.adapters.cluster.credentials import TokenFile
from cubesched.adapters.cluster.kubeconfig import (
    client_certificate_for,
    from_kubeconfig,
    tls_context,
)
from cubesched.adapters.cluster.wire import AiohttpTransport, Connection
from cubesched.core.errors import ApiError, UsageError

__all__ = ["AiohttpTransport", "Connection", "connect", "find_relay"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


async def connect(
    kubeconfig: str | None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server and make sure that it answers.

    In this order: `kubeconfig`, $KUBECONFIG, the pod's service account, ~/.kube/config. Raises
    UsageError when there is nothing usable, ApiError when the server does not answer.
    """
    connection = await find(kubeconfig, context, environ=environ, service_account=service_account)
    async with AiohttpTransport(connection) as transport:
        response = await transport.request("GET", "/version", timeout_seconds=10.0)
    if response.status == 401:
        raise ApiError(f"{connection.server} does not accept these credentials", 401)
    return connection


async def find_relay(
    url: str,
    kubeconfig: str | None,
    context: str | None = None,
    *,
    ca_file: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """Return how an agent reaches a relay, without talking to it: one that is away is waited for.

    With https the kubeconfig's client certificate says who we are, and `ca_file`, or without one
    the kubeconfig's authority, who the relay is. Plain http is for loopback addresses.
    """
    parts = urlsplit(url)
    server = url.rstrip("/")
    if parts.path.strip("/") or parts.query or not parts.hostname:
        raise UsageError(f"the relay's URL is https://HOST:PORT; found {url}")
    if parts.scheme == "http" and is_loopback(parts.hostname):
        return Connection(server)
    if parts.scheme != "https":
        raise UsageError(f"a relay that is not on this machine needs https://; found {url}")
    paths = kubeconfig or environ.get("KUBECONFIG", "") or str(_default_kubeconfig())
    return await client_certificate_for(server, paths, context, ca_file=ca_file)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def find(
    kubeconfig: str | None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server without talking to it."""
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    if paths:
        return await from_kubeconfig(paths, context)
    if context is None and _is_mounted(service_account):
        return _in_cluster(environ, service_account)
    if not _default_kubeconfig().is_file():
        raise UsageError("no cluster to talk to: give --kubeconfig FILE or set KUBECONFIG")
    return await from_kubeconfig(str(_default_kubeconfig()), context)


def _default_kubeconfig() -> Path:
    return Path("~/.kube/config").expanduser()


def _is_mounted(service_account: Path) -> bool:
    return (service_account / "token").is_file() and (service_account / "ca.crt").is_file()


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> Connection:
    """Use the service account that every pod is given."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise UsageError(f"{service_account} exists but KUBERNETES_SERVICE_HOST is not set")
    authority = f"[{host}]" if ":" in host else host
    return Connection(
        f"https://{authority}:{port}",
        tls=tls_context(str(service_account / "ca.crt")),
        authorization=TokenFile(service_account / "token"),
    )
