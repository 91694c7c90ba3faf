"""Logs: no text of any origin can forge, break or flood them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cubesched.adapters.telemetry.logs import configure_logging

FORGERY = 'x\r\n{"level": "info", "message": "bound request evil"}\x1b[2J\u202e\x00\ud800\u2028'


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines_after(write: Callable[[logging.Logger], None], **options: Any) -> list[str]:
    stream = io.StringIO()
    configure_logging(stream=stream, **options)
    write(logging.getLogger("cubesched.test"))
    return stream.getvalue().splitlines()


def test_a_record_is_one_json_object_on_one_line() -> None:
    (line,) = lines_after(lambda log: log.warning("bound %s", "r", extra={"node": "n1", "ms": 3}))

    record = json.loads(line)
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "level": "warning",
        "logger": "cubesched.test",
        "message": "bound r",
        "node": "n1",
        "ms": 3,
    }


@pytest.mark.parametrize("style", ["json", "plain"])
def test_no_text_can_begin_a_line_of_its_own(style: str) -> None:
    lines = lines_after(
        lambda log: log.info("plugin says %s", FORGERY, extra={"value": FORGERY}), style=style
    )

    assert len(lines) == 1
    assert all(character.isprintable() for character in lines[0])
    lines[0].encode()


@pytest.mark.parametrize("text", ["x" * (1 << 20), '"' * (1 << 20), "\x00" * 50_000, "漢" * 50_000])
def test_a_line_is_never_longer_than_eight_kibibytes(text: str) -> None:
    (line,) = lines_after(lambda log: log.info(text, extra={f"k{n}": text for n in range(40)}))

    assert len(line.encode()) <= 8192
    assert json.loads(line)["message"]


def test_an_exception_is_told_within_its_line() -> None:
    def fail(log: logging.Logger) -> None:
        try:
            raise ValueError(FORGERY)
        except ValueError:
            log.exception("it broke")

    (line,) = lines_after(fail)

    assert "ValueError" in json.loads(line)["trace"]


def test_arguments_that_do_not_fit_are_shown_and_not_raised() -> None:
    (line,) = lines_after(lambda log: log.info("%d of %d", "x"))  # noqa: PLE1206 - on purpose

    assert "%d of %d" in json.loads(line)["message"]


def test_values_that_json_does_not_know_become_text() -> None:
    (line,) = lines_after(
        lambda log: log.info("m", extra={"a": float("nan"), "b": 1 << 80, "c": b"\xff", "d": [1]})
    )

    record = json.loads(line)
    assert record["a"] == "nan"
    assert record["d"] == "[1]"


def test_one_line_per_object_or_probe_is_not_written() -> None:
    def write(_log: logging.Logger) -> None:
        logging.getLogger("kopf.objects").info("Handler 'x' succeeded.")
        logging.getLogger("aiohttp.access").info("GET /livez")

    assert lines_after(write) == []
