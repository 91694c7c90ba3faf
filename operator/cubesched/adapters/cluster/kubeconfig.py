"""A kubeconfig as kubectl reads it: merged files, contexts, certificates, tokens, exec plugins."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.kube_config import KubeConfigMerger

from cubesched.adapters.cluster.credentials import Authorization, ExecToken, FixedToken, TokenFile
from cubesched.adapters.cluster.wire import Connection
from cubesched.core.errors import UsageError

BROKEN: Final = (ConfigException, yaml.YAMLError, OSError, LookupError, TypeError, ValueError)
"""What reading a malformed kubeconfig, or files it names, raises."""


async def from_kubeconfig(paths: str, context: str | None) -> Connection:
    """Load one kubeconfig, or several joined by the path separator; UsageError when unusable."""
    _check_existing(paths)
    configuration = Configuration()
    try:
        user = _user_of(paths, context)
        loader = await _load(paths, context, configuration)
        return Connection(
            configuration.host.rstrip("/"),
            tls=_tls_of(configuration),
            authorization=_authorization(user, loader, configuration),
            server_hostname=configuration.tls_server_name,
            proxy=configuration.proxy,
        )
    except BROKEN as error:
        raise UsageError(f"kubeconfig {paths}: {_one_line(error)}") from error


async def client_certificate_for(
    server: str, paths: str, context: str | None, *, ca_file: str | None
) -> Connection:
    """Return how to reach another HTTPS server with the client certificate of a kubeconfig.

    No token is ever sent there. The server is believed when `ca_file` signed its certificate, or
    without one the authority of the kubeconfig's cluster. UsageError when there is no certificate.
    """
    _check_existing(paths)
    configuration = Configuration()
    try:
        await _load(paths, context, configuration)
        if not configuration.cert_file:
            raise UsageError(f"kubeconfig {paths}: {server} needs a client certificate, found none")
        tls = tls_context(ca_file or configuration.ssl_ca_cert)
        tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    except BROKEN as error:
        raise UsageError(f"kubeconfig {paths}: {_one_line(error)}") from error
    return Connection(server, tls=tls)


async def _load(paths: str, context: str | None, configuration: Configuration) -> Any:
    return await load_kube_config(  # type: ignore[no-untyped-call]
        paths, context=context, client_configuration=configuration, persist_config=False
    )


def tls_context(ca_file: str | None, *, verify: bool = True) -> ssl.SSLContext:
    """Trust `ca_file` (the system's authorities when None), or anybody when not `verify`."""
    context = ssl.create_default_context(cafile=ca_file)
    # Python 3.13 refuses many clusters' own authorities for want of a key identifier.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check_existing(paths: str) -> None:
    files = [Path(part).expanduser() for part in paths.split(os.pathsep) if part]
    if not any(file.is_file() for file in files):
        raise UsageError(f"kubeconfig {paths} does not exist")


def _tls_of(configuration: Configuration) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https"):
        return None
    context = tls_context(configuration.ssl_ca_cert, verify=configuration.verify_ssl)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _user_of(paths: str, context: str | None) -> dict[str, Any]:
    """Return the user entry of the context; relative token files made absolute."""
    merged = KubeConfigMerger(paths).config  # type: ignore[no-untyped-call]
    chosen = merged["contexts"].get_with_name(context or merged["current-context"])["context"]
    name = chosen.safe_get("user")
    found = merged["users"].get_with_name(name, safe=True) if name else None
    if found is None:
        return {}
    user = dict(found["user"].value)
    if user.get("tokenFile"):
        user["tokenFile"] = Path(found.path).parent / user["tokenFile"]
    return user


def _authorization(
    user: dict[str, Any], loader: Any, configuration: Configuration
) -> Authorization:
    """Choose the source of the token as kubectl would."""
    header = configuration.api_key.get("BearerToken")
    if "exec" in user:
        if header is None and not configuration.cert_file:
            command = user["exec"].get("command")
            raise UsageError(f"the exec plugin {command!r} of the kubeconfig gave no credentials")
        return ExecToken(loader, header)
    if user.get("tokenFile") and not user.get("token"):
        return TokenFile(user["tokenFile"])
    return FixedToken(header)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
