"""File locks that die with the process that holds them; never mistaken for alive after a crash."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_SECONDS = 0.02


def try_lock(path: Path, *, patience_seconds: float = 0.3) -> int | None:
    """Return an open descriptor that holds the exclusive lock on `path`, or None.

    The patience bridges the instant in which `is_locked` probes. A file that was removed
    between opening and locking does not count: its lock would exclude nobody.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if _lock(descriptor) and _is_same_file(descriptor, path):
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            return None
        time.sleep(_RETRY_SECONDS)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock on `path`."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock on `path`; call `on_wait` once when somebody else has it first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = try_lock(path)
    if descriptor is None:
        on_wait()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
