"""Who we are to the API server: the Authorization header, kept fresh without a restart.

Each source is an async callable that returns the header's value, or None when the identity is a
client certificate.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from cubesched.core.errors import ApiError

Authorization = Callable[[], Awaitable[str | None]]

LOOK_EVERY_SECONDS: Final = 1.0
EXEC_SECONDS: Final = 10.0


class FixedToken:
    """A header that never changes, or none at all."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    async def __call__(self) -> str | None:
        """Return the header's value."""
        return self._value


class TokenFile:
    """A token that somebody else rotates in a file, as kubelet does for a pod's own token."""

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._value = ""
        self._stamp: tuple[int, int] | None = None
        self._look_at = -LOOK_EVERY_SECONDS

    async def __call__(self) -> str | None:
        """Return the header's value, read anew when the file changed, looked at once a second."""
        now = self._monotonic()
        if not self._value or now >= self._look_at:
            self._look_at = now + LOOK_EVERY_SECONDS
            self._read_if_changed()
        return self._value

    def _read_if_changed(self) -> None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - one system call on the request path
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._value = f"Bearer {self._path.read_text().strip()}"
                self._stamp = stamp
        except OSError as error:
            # While a rotation is half done the old token still serves.
            if not self._value:
                raise ApiError(f"cannot read the token file {self._path}: {error}") from error


class ExecLoader(Protocol):
    """The kubeconfig's loader: it runs the exec plugin again once the token has expired.

    It has `exec_plugin_expiry` when the plugin named one, and `token` when it gave a token.
    """

    async def load_from_exec_plugin(self) -> bool | None:
        """Make sure that the token is not an expired one."""
        ...


class ExecToken:
    """A token that the kubeconfig's exec plugin hands out for a limited time."""

    def __init__(
        self,
        loader: ExecLoader,
        value: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loader = loader
        self._value = value
        self._monotonic = monotonic
        self._look_at = monotonic() + LOOK_EVERY_SECONDS

    async def __call__(self) -> str | None:
        """Return the header's value, looked at once a second."""
        now = self._monotonic()
        if now >= self._look_at and hasattr(self._loader, "exec_plugin_expiry"):
            self._look_at = now + LOOK_EVERY_SECONDS
            # A plugin that hangs must not hang the request: the old token may still serve.
            with suppress(TimeoutError):
                async with asyncio.timeout(EXEC_SECONDS):
                    await self._loader.load_from_exec_plugin()
            self._value = getattr(self._loader, "token", self._value)
        return self._value
