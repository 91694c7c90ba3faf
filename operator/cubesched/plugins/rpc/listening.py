"""Taking a path for a server's socket, without taking it from anybody, and giving it back.

gRPC alone would bind a path that another server listens at, and remove whatever stands there when
it stops. So a server binds a name of its own beside the path, which is then linked to the path:
that fails where anything stands. All servers of a directory do so one after another.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cubesched.plugins.rpc.sockets import MOST_BYTES, is_left

_BINDING: Final = ".binding"
"""The name that is bound, for the moment that it takes."""


class CannotListen(Exception):
    """A path cannot be taken; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A path at which a server of this process listens."""

    path: Path
    identity: tuple[int, int]
    """Device and inode of the socket."""

    def give_back(self) -> None:
        """Remove the socket, unless another one stands there by now."""
        with suppress(OSError), _alone_in(self.path.parent):
            if _identity(self.path) == self.identity:
                self.path.unlink()


def take(path: str | Path, listen: Callable[[Path], None]) -> Taken:
    """Let a server listen at a path; `listen` binds the one it is given, and accepts there.

    Raises CannotListen. A socket at which nobody listens any more is removed.
    """
    path = Path(path).absolute()
    binding = path.with_name(_BINDING)
    longest = max(len(os.fsencode(path)), len(os.fsencode(binding)))
    if longest > MOST_BYTES:
        raise CannotListen(f"{path} is too long: a socket's path has at most {MOST_BYTES} bytes")
    try:
        with _alone_in(path.parent):
            _clear(path)
            _clear(binding)
            listen(binding)
            path.hardlink_to(binding)
            binding.unlink()
            return Taken(path, _identity(path))
    except OSError as error:
        raise CannotListen(f"{path}: {(error.strerror or str(error)).lower()}") from error


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _clear(path: Path) -> None:
    """Remove a socket that a server left behind; raises CannotListen where anything else stands."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotListen(f"{path} is there and is no socket")
    if not is_left(path):
        raise CannotListen(f"another server listens at {path}")
    path.unlink()


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
