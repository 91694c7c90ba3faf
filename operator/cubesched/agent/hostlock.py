"""One agent for one node on one machine: two would each start what fits only once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cubesched.core.errors import UsageError


@contextmanager
def only_agent(path: Path) -> Iterator[None]:
    """Hold the machine's lock for the time of the block; UsageError when another agent holds it.

    The kernel drops the lock with the process, however that ends.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"cannot open the lock {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another agent runs on this machine: it holds {path}") from error
        yield
    finally:
        os.close(file)
