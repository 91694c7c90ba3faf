"""Logs: one line a record, whatever the text holds, as JSON for machines or plain for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

from typing_extensions import override

from cubesched.adapters.telemetry.escaping import printable

MAX_BYTES: Final = 8192
MESSAGE_BYTES: Final = 4096
SHORT_MESSAGE_BYTES: Final = 1024
TRACE_LINES: Final = 30
LINE_BYTES: Final = 200
VALUE_BYTES: Final = 256
MAX_EXTRAS: Final = 12
OWN_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}
"""What every record has; everything else on a record came in by `extra`."""
QUIET: Final = ("kopf.objects", "aiohttp.access")
"""One line per object event, one per probe: nobody reads them."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line, at most 8 KiB, in ASCII."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the line; what makes it too long is left out, first the trace and the extras."""
        head = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        head = {key: printable(value, max_bytes=VALUE_BYTES) for key, value in head.items()}
        message = _message(record)
        fields = {**head, "message": printable(message, max_bytes=MESSAGE_BYTES), **_extra(record)}
        if record.exc_info:
            fields["trace"] = "\n".join(_trace(self, record))
        line = json.dumps(fields)
        if len(line) <= MAX_BYTES:
            return line
        short = printable(message, max_bytes=SHORT_MESSAGE_BYTES)
        return json.dumps({**head, "message": short, "shortened": True})


class PlainFormatter(logging.Formatter):
    """For a terminal: time, level, logger, message, extras; a trace on lines of its own."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items())
        message = printable(_message(record), max_bytes=MESSAGE_BYTES)
        head = f"{_time(record)[11:23]} {record.levelname:<7} {record.name}: {message}{extra}"
        if not record.exc_info:
            return head
        return "\n".join([head, *(f"    {line}" for line in _trace(self, record))])


def configure_logging(
    *, level: str = "info", style: Literal["json", "plain"] = "json", stream: TextIO | None = None
) -> None:
    """Send all logs of the process to `stream` (standard error), replacing what was set up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else PlainFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    """Return the message; arguments that do not fit their format are shown, not raised."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError) as error:
        return f"{record.msg!r} % {record.args!r}: {error}"


def _extra(record: logging.LogRecord) -> dict[str, str | int | float | bool | None]:
    """Return what was given by `extra`, each value bounded, numbers kept as numbers."""
    given = [(key, value) for key, value in vars(record).items() if key not in OWN_ATTRIBUTES]
    return {printable(key, max_bytes=64): _value(value) for key, value in given[:MAX_EXTRAS]}


def _value(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return printable(str(value), max_bytes=VALUE_BYTES)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """Return the last lines of the trace, each safe to print."""
    assert record.exc_info
    lines = formatter.formatException(record.exc_info).splitlines()
    return [printable(line, max_bytes=LINE_BYTES) for line in lines[-TRACE_LINES:]]
