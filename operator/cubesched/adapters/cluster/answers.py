"""Reading the API server's refusals: the Status object, its message, and how long to wait."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError, Gone

MAX_MESSAGE: Final = 1024
LONGEST_WAIT_SECONDS: Final = 60.0


class Status(msgspec.Struct, frozen=True):
    """The part of a metav1.Status that is read."""

    code: int = 0
    reason: str = ""
    message: str = ""


_STATUS: Final = msgspec.json.Decoder(Status)


def status_of(body: bytes) -> Status:
    """Decode a Status; whatever else came instead becomes its message."""
    try:
        return _STATUS.decode(body)
    except msgspec.MsgspecError:
        return Status(message=body[:MAX_MESSAGE].decode("utf-8", "replace").strip())


def message_of(response: Response) -> str:
    """Return one bounded line that says what the server answered."""
    status = status_of(response.body)
    text = " ".join((status.message or status.reason or "no message").split())
    return f"{response.status} {text}"[:MAX_MESSAGE]


def retry_after_seconds(response: Response, *, otherwise: float = 0.0) -> float:
    """Return how long the server asked to be left alone, bounded; `otherwise` when it did not."""
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return otherwise
    return (
        min(seconds, LONGEST_WAIT_SECONDS) if math.isfinite(seconds) and seconds > 0 else otherwise
    )


def error_of(response: Response, what: str) -> ApiError:
    """Turn an answer that is no success into the error to raise."""
    text = f"{what}: {message_of(response)}"
    if response.status == 410:
        return Gone(text)
    return ApiError(text, response.status, retry_after_seconds(response))
