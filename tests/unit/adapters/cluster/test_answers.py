"""Reading refusals: bounded, on one line, whatever stands in front of the API server."""

from __future__ import annotations

import pytest
from tests.unit.adapters.scripted import a_refusal

from cubesched.adapters.cluster.answers import error_of, message_of, retry_after_seconds
from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import Gone


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("86400", 60.0),
        ("-3", 2.0),
        ("0", 2.0),
        ("nan", 2.0),
        ("inf", 2.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 2.0),
        ("", 2.0),
    ],
)
def test_retry_after_is_believed_within_reason(header: str, seconds: float) -> None:
    response = Response(429, b"", {"retry-after": header})

    assert retry_after_seconds(response, otherwise=2.0) == seconds


def test_a_message_is_one_bounded_line() -> None:
    assert message_of(a_refusal(422, "spec.x:\n  too   long")) == "422 spec.x: too long"
    assert message_of(Response(502, b"<html>\xff\n</html>")) == "502 <html>\ufffd </html>"
    assert message_of(Response(500, b"")) == "500 no message"
    assert len(message_of(a_refusal(500, "x" * 100_000))) <= 1024


def test_a_410_is_gone_and_all_else_keeps_its_status() -> None:
    assert isinstance(error_of(a_refusal(410), "list"), Gone)
    assert error_of(a_refusal(403), "list").status == 403
