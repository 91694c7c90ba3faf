"""`cubesched relay`: one watch of all requests, for the agents of a large fleet."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cubesched.cli import Parser, Subparsers, add_command
from cubesched.cli.options import whole_number
from cubesched.cli.run import LOG_LEVELS, LOG_STYLES
from cubesched.core.errors import UsageError

if TYPE_CHECKING:
    from cubesched.relay.process import RelaySettings

_DETAILS = """
Agents list and watch through it with --relay, and write to the API server themselves. It answers
GET of sandboxrequests with fieldSelector=status.nodeName=NODE as the API server would, and only
reads: give it an identity in group cubesched:viewers.

An agent shows its own client certificate (user cubesched:node:NODE, group cubesched:nodes), signed
by an authority of --client-ca, and sees its own node only.

With --plain-http it asks nobody who they are: every process that reaches the address sees every
request. It therefore listens on a loopback address only, and is for trying things out."""

_EXAMPLES = """\
  cubesched relay --kubeconfig viewer.kubeconfig --tls-cert relay.crt --tls-key relay.key \\
      --client-ca cluster-ca.crt
  cubesched relay --plain-http --host 127.0.0.1
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "relay", details=_DETAILS, examples=_EXAMPLES)
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: as kubectl finds it, or the pod's account")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    _add_serving(parser)
    port = whole_number(0, 65_535)
    add("--http-host", metavar="ADDRESS", default="0.0.0.0", help="of metrics and probes")  # noqa: S104
    add("--http-port", metavar="PORT", type=port, default=8080, help="their port; 0 = any free")
    add("--log-level", choices=LOG_LEVELS, default="info", help="default: info")
    add("--log-style", choices=LOG_STYLES, default="json", help="default: json")
    parser.set_defaults(run=run)


def _add_serving(parser: Parser) -> None:
    group = parser.add_argument_group("serving agents")
    add = group.add_argument
    add("--host", metavar="ADDRESS", default="0.0.0.0", help="default: 0.0.0.0")  # noqa: S104
    port = whole_number(0, 65_535)
    add("--port", metavar="PORT", type=port, default=8443, help="default: 8443; 0 = any free")
    add("--tls-cert", metavar="FILE", type=Path, help="serving certificate, PEM; renewed in place")
    add("--tls-key", metavar="FILE", type=Path, help="its key, PEM")
    add("--client-ca", metavar="FILE", type=Path, help="authority of the agents' certificates")
    add("--plain-http", action="store_true", help="no TLS, no identities; loopback only")
    add(
        "--impersonators",
        metavar="GROUP",
        default="",
        help="certificates of this group may name another user, as simulated nodes do "
        "(default: nobody may)",
    )
    size = whole_number(1, 65_536)
    add(
        "--history-mib",
        metavar="MIB",
        type=size,
        default=64,
        help="memory for events that a reconnecting agent may have missed (default: 64)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    settings = settings_of(args)
    from cubesched.adapters.telemetry.logs import configure_logging  # noqa: PLC0415 - slow imports

    configure_logging(level=args.log_level, style=args.log_style)
    import uvloop  # noqa: PLC0415

    from cubesched.relay.process import run_relay  # noqa: PLC0415

    return uvloop.run(run_relay(settings))


def settings_of(args: argparse.Namespace) -> RelaySettings:
    """Return the settings; UsageError names the flag that is wrong."""
    from cubesched.relay.process import RelaySettings  # noqa: PLC0415 - slow imports
    from cubesched.relay.tls import TlsFiles  # noqa: PLC0415

    files = (args.tls_cert, args.tls_key, args.client_ca)
    if args.plain_http:
        _check_plain(args)
    elif None in files:
        raise UsageError(
            "the relay needs --tls-cert, --tls-key and --client-ca, "
            "or --plain-http on a loopback address"
        )
    return RelaySettings(
        kubeconfig=args.kubeconfig,
        context=args.context,
        host=args.host,
        port=args.port,
        tls=None if args.plain_http else TlsFiles(*files),
        impersonators=args.impersonators,
        history_bytes=args.history_mib << 20,
        http_host=args.http_host,
        http_port=args.http_port,
    )


def _check_plain(args: argparse.Namespace) -> None:
    for flag in ("tls_cert", "tls_key", "client_ca", "impersonators"):
        if getattr(args, flag):
            raise UsageError(f"--{flag.replace('_', '-')} means nothing with --plain-http")
    from cubesched.adapters.cluster.connection import is_loopback  # noqa: PLC0415 - slow imports

    if not is_loopback(args.host):
        raise UsageError(
            f"--plain-http asks nobody who they are, so --host must be a loopback address "
            f"such as 127.0.0.1; found {args.host}"
        )
