"""What another process has used of the machine so far, for the benchmarks that start some."""

from __future__ import annotations

import os
from pathlib import Path

_CLOCK_TICK = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000.0 * (int(fields[11]) + int(fields[12])) / _CLOCK_TICK


def rss_mib(pid: int) -> float:
    """Return what a process holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES / (1 << 20)
