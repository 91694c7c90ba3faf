"""What the machine has paused: asked for when it should, never taken for granted.

Room is handed on only after the machine has let go of it and `Paused` was written, so whatever
an earlier run of the agent left half done is asked for again before it is believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from cubesched.agent.ownnode import OwnNode
from cubesched.agent.requests import sandbox_of
from cubesched.agent.room import Room
from cubesched.agent.runtime import Runtime
from cubesched.fleet.entries import Entry, Weight


def kept(weight: Weight, ratio: Fraction) -> Weight:
    """Return what a paused sandbox still takes: (1 - ratio) of cores and memory, rounded up."""
    share = 1 - ratio
    return Weight(
        ceil(weight.cpu_millis * share), ceil(weight.memory_bytes * share), weight.disk_bytes
    )


@dataclass(slots=True)
class Pausing:
    """Pauses and resumes sandboxes of one machine, and knows which it has paused."""

    runtime: Runtime
    room: Room
    own_node: OwnNode
    _is_paused: dict[str, bool] = field(default_factory=dict)
    """For each sandbox what the machine has last acknowledged; unknown ones are not in it."""

    def created(self, sandbox: str) -> None:
        """Note that a new sandbox runs."""
        self._is_paused[sandbox] = False

    def forget(self, sandbox: str) -> None:
        """Drop what is known of a sandbox that is destroyed."""
        self._is_paused.pop(sandbox, None)

    async def pause(self, entry: Entry) -> Weight:
        """Have the machine let go of what a paused sandbox gives up now; return what it keeps.

        What it keeps is what the machine was told: a ratio that changes meanwhile is not in it.
        """
        keeping = kept(entry.full_weight, self.own_node.paused_release_ratio)
        await self._pause(sandbox_of(entry), keeping)
        return keeping

    async def keep_paused(self, entry: Entry) -> None:
        """Count a paused sandbox as it is stamped, once the machine holds no more than that."""
        sandbox = sandbox_of(entry)
        if not self._is_paused.get(sandbox, False):
            await self._pause(sandbox, entry.weight)
        self.room.count(sandbox, entry.weight)

    async def pause_again(self, entry: Entry) -> None:
        """Pause what was to be resumed, as it was stamped: it may have been resumed already."""
        await self._pause(sandbox_of(entry), entry.paused_weight)

    async def resume(self, sandbox: str) -> None:
        """Let it run on, unless it is known to; raises StartFailed when it never will."""
        if self._is_paused.get(sandbox, True):
            self._is_paused.pop(sandbox, None)
            await self.runtime.resume(sandbox)
            self._is_paused[sandbox] = False

    async def _pause(self, sandbox: str, keeping: Weight) -> None:
        self._is_paused.pop(sandbox, None)  # until it is answered
        await self.runtime.pause(sandbox, keeping)
        self._is_paused[sandbox] = True
