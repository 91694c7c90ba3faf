"""What the relay says instead of an answer: Status objects, as the API server sends them."""

from __future__ import annotations

import msgspec

from cubesched.core.errors import CubeschedError


class Refusal(CubeschedError):
    """An answer that is no success; `body` is its Status."""

    def __init__(
        self, code: int, reason: str, message: str, *, retry_after_seconds: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds

    @property
    def body(self) -> bytes:
        """The Status as JSON."""
        details = {"retryAfterSeconds": self.retry_after_seconds}
        return msgspec.json.encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": str(self),
                "reason": self.reason,
                **({"details": details} if self.retry_after_seconds else {}),
                "code": self.code,
            }
        )


def bad_request(message: str) -> Refusal:
    """Return the refusal of a question that no answer of ours would be true to."""
    return Refusal(400, "BadRequest", message)


def forbidden(message: str) -> Refusal:
    """Return the refusal of something that this caller may not see."""
    return Refusal(403, "Forbidden", message)


def expired(message: str) -> Refusal:
    """Return the refusal that makes a client list again."""
    return Refusal(410, "Expired", message)


def unavailable(message: str) -> Refusal:
    """Return the refusal of something that will be possible again."""
    return Refusal(503, "ServiceUnavailable", message, retry_after_seconds=1)


def not_there_yet(version: int, applied: int | None) -> Refusal:
    """Return the refusal of a version that our own stream has not reached."""
    current = "none" if applied is None else str(applied)
    message = f"Too large resource version: {version}, current: {current}"
    return Refusal(504, "Timeout", message, retry_after_seconds=1)
