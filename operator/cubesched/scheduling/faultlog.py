"""Plugins' failures in the log: the first at once, then how many there were, once a minute."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from cubesched.core.decision import Fault
from cubesched.core.explaining import plain
from cubesched.scheduling.ports import Clock

_LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 60.0


@dataclass(slots=True)
class FaultLog:
    """What was said of each plugin of each Profile, and when."""

    clock: Clock
    _said_at: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _unsaid: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def note(self, profile: str, fault: Fault) -> None:
        """Log a failure, unless one of the same plugin was logged less than a minute ago."""
        key, now = (profile, fault.plugin, fault.policy), self.clock.monotonic()
        if now - self._said_at.get(key, -AGAIN_SECONDS) < AGAIN_SECONDS:
            self._unsaid[key] = self._unsaid.get(key, 0) + 1
            return
        self._said_at[key] = now
        more = self._unsaid.pop(key, 0)
        _LOG.warning(
            "plugin %s of Profile %s failed%s, %s applies: %s%s",
            plain(fault.plugin),
            profile,
            f" on {fault.nodes} nodes" if fault.nodes else "",
            fault.policy,
            plain(fault.message),
            f" ({more} more since the last word)" if more else "",
        )
