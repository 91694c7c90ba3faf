"""Finding the server and proving who we are, or one line that says why not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cubesched.adapters.cluster.connection import connect, find, find_relay
from cubesched.adapters.cluster.credentials import TokenFile
from cubesched.core.errors import ApiError, UsageError
from cubesched.local.pki import Authority

NOWHERE = Path("/nonexistent")
SERVER = "http://127.0.0.1:1"


def a_kubeconfig(folder: Path, *, name: str = "config", server: str = SERVER, **user: Any) -> str:
    """Write a kubeconfig of one cluster, user and context, named after the file."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def test_a_missing_file_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="kubeconfig /nonexistent/x does not exist"):
        await connect("/nonexistent/x")


async def test_nothing_to_connect_to_says_what_to_give(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        with pytest.raises(UsageError, match="--kubeconfig"):
            await find(None, environ={}, service_account=NOWHERE)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: b", "clusters: 3\ncontexts: x"])
async def test_a_malformed_file_is_one_clear_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken"
    path.write_text(text)

    with pytest.raises(UsageError, match="kubeconfig") as caught:
        await find(str(path), environ={})

    assert "\n" not in str(caught.value)


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such"):
        await find(a_kubeconfig(tmp_path), "no-such")


async def test_an_unreachable_server_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match=f"cannot reach {SERVER}"):
        await connect(a_kubeconfig(tmp_path))


async def test_several_files_are_merged_and_a_context_chosen(tmp_path: Path) -> None:
    first = a_kubeconfig(tmp_path, name="one", server="http://one", token="t1")
    second = a_kubeconfig(tmp_path, name="two", server="http://two/", token="t2")

    connection = await find(
        None, "two", environ={"KUBECONFIG": os.pathsep.join([first, second, "/nonexistent"])}
    )

    assert connection.server == "http://two"
    assert await connection.authorization() == "Bearer t2"


async def test_a_token_file_is_read_relative_to_its_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")

    connection = await find(a_kubeconfig(tmp_path, tokenFile="token"))

    assert await connection.authorization() == "Bearer from-file"


async def test_an_exec_plugin_gives_the_token_and_is_asked_again_when_it_expires(
    tmp_path: Path,
) -> None:
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',"
        " 'kind': 'ExecCredential', 'status': {'token': f't{n}',"
        " 'expirationTimestamp': '2020-01-01T00:00:00Z'}}))\n"
    )
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
    }
    connection = await find(a_kubeconfig(tmp_path, exec=plugin))
    source = connection.authorization
    now = 1_000_000.0
    source._monotonic = lambda: now  # type: ignore[attr-defined]

    assert await source() == "Bearer t2"
    assert await source() == "Bearer t2"
    now += 2
    assert await source() == "Bearer t3"


async def test_an_exec_plugin_that_fails_is_named(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/plugin"}

    with pytest.raises(UsageError, match="/nonexistent/plugin"):
        await find(a_kubeconfig(tmp_path, exec=plugin))


async def test_inside_a_pod_the_service_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}

    connection = await find(None, environ=environ, service_account=tmp_path)

    assert connection.server == "https://[fd00::1]:6443"
    assert await connection.authorization() == "Bearer pod-token"


async def test_a_rotated_token_is_used_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    now = 100.0
    source = TokenFile(path, monotonic=lambda: now)

    assert await source() == "Bearer old"
    fresh = tmp_path / "fresh"
    fresh.write_text("new")
    fresh.rename(path)
    assert await source() == "Bearer old"
    now += 1
    assert await source() == "Bearer new"


async def test_a_token_file_that_vanishes_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    now = 100.0
    source = TokenFile(path, monotonic=lambda: now)
    await source()

    path.unlink()
    now += 5

    assert await source() == "Bearer old"


async def test_a_token_file_that_never_was_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="token file"):
        await TokenFile(tmp_path / "none")()


# A relay


def a_certificate_kubeconfig(folder: Path, authority: Authority) -> str:
    """Write a kubeconfig with a client certificate, and a token that must stay with the server."""
    credential = authority.issue_client("cubesched:node:n1", ["cubesched:nodes"])
    files = {"client.crt": credential.certificate, "client.key": credential.key}
    for name, pem in files.items():
        (folder / name).write_bytes(pem)
    (folder / "ca.crt").write_bytes(authority.certificate)
    path = a_kubeconfig(
        folder,
        server="https://cluster",
        token="secret",
        **{
            "client-certificate": str(folder / "client.crt"),
            "client-key": str(folder / "client.key"),
        },
    )
    content = yaml.safe_load(Path(path).read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = str(folder / "ca.crt")
    Path(path).write_text(yaml.safe_dump(content))
    return path


async def test_a_relay_is_shown_the_certificate_and_never_the_token(tmp_path: Path) -> None:
    kubeconfig = a_certificate_kubeconfig(tmp_path, Authority())

    connection = await find_relay("https://relay:8443/", kubeconfig)

    assert connection.server == "https://relay:8443"
    assert connection.tls is not None
    assert await connection.authorization() is None


async def test_a_relay_is_believed_by_the_authority_that_was_named(tmp_path: Path) -> None:
    kubeconfig = a_certificate_kubeconfig(tmp_path, Authority())
    other = tmp_path / "other.crt"
    other.write_bytes(Authority().certificate)

    by_cluster = await find_relay("https://relay:8443", kubeconfig)
    by_other = await find_relay("https://relay:8443", kubeconfig, ca_file=str(other))

    assert by_cluster.tls is not None
    assert by_other.tls is not None
    assert by_cluster.tls.get_ca_certs() != by_other.tls.get_ca_certs()
    assert len(by_other.tls.get_ca_certs()) == 1


async def test_a_relay_needs_a_client_certificate(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="https://relay:1 needs a client certificate, found none"):
        await find_relay("https://relay:1", a_kubeconfig(tmp_path, token="t"))
    with pytest.raises(UsageError, match="/nonexistent does not exist"):
        await find_relay("https://relay:1", "/nonexistent")
    kubeconfig = a_certificate_kubeconfig(tmp_path, Authority())
    with pytest.raises(UsageError, match="No such file"):
        await find_relay("https://relay:1", kubeconfig, ca_file="/nonexistent")


async def test_a_relay_on_this_machine_needs_nothing() -> None:
    connection = await find_relay("http://127.0.0.1:8443", "/nonexistent")

    assert (connection.server, connection.tls) == ("http://127.0.0.1:8443", None)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://relay:8443", "needs https://"),
        ("http://10.0.0.1:8443", "needs https://"),
        ("relay:8443", "https://HOST:PORT; found relay:8443"),
        ("https://", "https://HOST:PORT"),
        ("https://relay/apis", "https://HOST:PORT"),
        ("ftp://relay", "needs https://"),
    ],
)
async def test_another_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        await find_relay(url, None)
