"""Which Unix sockets a Profile may name, and whether what stands there is one.

A path is judged twice: as text when the policy compiles, and as a file at every connect, since
files come and go.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

MOST_BYTES: Final = 107
"""What a Unix socket's address can hold."""


def why_not(path: str, directory: str) -> str | None:
    """Say why a Profile may not name this path; None when it may."""
    if not path:
        return f"missing: give the whole path of the server's socket, within {directory}"
    if not path.startswith("/"):
        return f"{path!r} is relative; give the whole path, within {directory}"
    if not path.isprintable():
        return f"{path!r} has characters that cannot be printed"
    if (size := len(os.fsencode(path))) > MOST_BYTES:
        return f"is {size} bytes long; a Unix socket's path has at most {MOST_BYTES}"
    inside = os.path.normpath(path).removeprefix(os.path.normpath(directory).rstrip("/") + "/")
    if inside.startswith("/") or not inside:
        return f"{path!r} is not within {directory}, the operator's plugin directory"
    return None


@dataclass(frozen=True, slots=True)
class Socket:
    """A path that `why_not` has nothing against; `directory` is the operator's plugin directory."""

    path: str
    directory: str

    @classmethod
    def of(cls, path: str, directory: str) -> Socket:
        """Return the socket, its path without detours."""
        return cls(os.path.normpath(path), os.path.normpath(directory))

    @property
    def target(self) -> str:
        """The address as gRPC wants it."""
        return "unix:" + quote(self.path)

    def trouble(self) -> str | None:
        """Say what is wrong with what stands at the path now; None when it is a socket.

        No symbolic link is followed below the directory: it could lead out of it.
        """
        below = Path(self.path).relative_to(self.directory).parts
        at = Path(self.directory)
        mode = 0
        try:
            for part in below:
                at /= part
                mode = at.lstat().st_mode
                if stat.S_ISLNK(mode):
                    return f"{at} is a symbolic link"
        except OSError as error:
            return f"{self.path}: {(error.strerror or str(error)).lower()}"
        if not stat.S_ISSOCK(mode):
            return f"{self.path} is not a socket"
        return f"nobody listens at {self.path}" if is_left(self.path) else None


def is_left(path: str | Path) -> bool:
    """Tell whether a socket was left behind: nobody listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(os.fspath(path)) == errno.ECONNREFUSED
