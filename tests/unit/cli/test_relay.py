from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cubesched.cli import Parser
from cubesched.cli.relay import register, settings_of
from cubesched.core.errors import UsageError
from cubesched.relay.process import run_relay
from cubesched.relay.tls import TlsFiles

TLS = ("--tls-cert", "a.crt", "--tls-key", "a.key", "--client-ca", "ca.crt")


def parse(*argv: str) -> argparse.Namespace:
    parser = Parser()
    register(parser.add_subparsers())
    return parser.parse_args(["relay", *argv])


def test_flags_reach_the_settings() -> None:
    settings = settings_of(
        parse(
            *TLS,
            *("--kubeconfig", "k", "--context", "c", "--host", "10.0.0.1", "--port", "6444"),
            *("--impersonators", "g", "--history-mib", "2", "--http-port", "0"),
        )
    )

    assert settings.tls == TlsFiles(Path("a.crt"), Path("a.key"), Path("ca.crt"))
    assert (settings.kubeconfig, settings.context) == ("k", "c")
    assert (settings.host, settings.port, settings.http_port) == ("10.0.0.1", 6444, 0)
    assert (settings.impersonators, settings.history_bytes) == ("g", 2 << 20)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_plain_http_is_for_this_machine(host: str) -> None:
    assert settings_of(parse("--plain-http", "--host", host)).tls is None


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "needs --tls-cert, --tls-key and --client-ca"),
        (TLS[:4], "needs --tls-cert, --tls-key and --client-ca"),
        (["--plain-http"], "must be a loopback address such as 127.0.0.1; found 0.0.0.0"),
        (["--plain-http", "--host", "10.0.0.1"], "found 10.0.0.1"),
        (["--plain-http", "--host", "example.org"], "found example.org"),
        (["--plain-http", "--host", "::1", *TLS], "--tls-cert means nothing with --plain-http"),
        (["--plain-http", "--host", "::1", "--impersonators", "g"], "--impersonators means"),
    ],
)
def test_nobody_listens_to_the_world_without_tls(argv: list[str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        settings_of(parse(*argv))

    assert words in str(refused.value)


async def test_a_missing_kubeconfig_is_said_at_once() -> None:
    argv = ["--plain-http", "--host", "127.0.0.1", "--kubeconfig", "/nowhere"]

    with pytest.raises(UsageError, match="kubeconfig /nowhere does not exist"):
        await run_relay(settings_of(parse(*argv)))
