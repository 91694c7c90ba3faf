"""What each phase of a request asks of its node's agent, and the writes that come of it.

Nothing is done for a state that is not the agent's own by an acknowledged conditional write, and
nothing is written of the machine before the machine has done it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from cubesched.agent import statuses
from cubesched.agent.confirming import Confirming, is_to_confirm
from cubesched.agent.ends import Ends
from cubesched.agent.pausing import Pausing
from cubesched.agent.requests import OwnRequests, order_of, sandbox_of
from cubesched.agent.room import Room
from cubesched.agent.runtime import Ended, Order, Runtime, StartFailed
from cubesched.agent.shutdowns import Shutdowns, end_at_shutdown
from cubesched.agent.writing import ConditionalWrites
from cubesched.fleet.entries import Entry

log = logging.getLogger(__name__)

_CLAIMED = frozenset({"Starting", "Running", "Paused", "Evicting"})
_LOST = Ended(succeeded=False, message="the sandbox is not on the machine any more")


@dataclass(slots=True)
class Steps:
    """Takes one request of one node a step further each time it is asked to."""

    node: str
    runtime: Runtime
    requests: OwnRequests
    statuses: ConditionalWrites
    room: Room
    confirming: Confirming
    pausing: Pausing
    ends: Ends
    shutdowns: Shutdowns
    room_may_have_come: Callable[[], None]
    """Called when a sandbox has been let go."""
    creating: set[str] = field(default_factory=set)
    """Sandboxes that the machine is being asked to create or to resume."""

    async def settle(self, uid: str) -> None:
        """Do the one thing that the newest state asks for; raises to be asked again."""
        entry = self.requests.get(uid)
        if entry is None:
            self.shutdowns.forget(uid)
            await self._destroy_all(uid)
            return
        if entry.unreadable:
            return  # whatever runs for it stays until it can be read
        await self._destroy_all(uid, but=sandbox_of(entry))
        if self.shutdowns.has_come(entry):
            await self._shut_down(entry)
            return
        match entry.phase:
            case "Reserved" if is_to_confirm(entry):
                await self._confirm(entry)
            case "Bound":
                await self._claim(entry)
            case "Starting":
                await self._begin(entry)
            case "Running":
                await self._look_after(entry)
            case "Paused":
                await self._keep_paused(entry)
            case "Evicting":
                await self._evict(entry)
            case _:
                pass

    async def _destroy_all(self, uid: str, *, but: str = "") -> None:
        for name in {*self.room.of(uid), *self.ends.of_request(uid)} - {but}:
            await self._let_go(name)

    async def _shut_down(self, entry: Entry) -> None:
        """Stop what runs, then write that its time has come; what has not begun never does."""
        if entry.phase == "Bound":  # it is not the agent's to end before it is claimed
            claimed = await self.statuses.write(entry, statuses.starting)
            if claimed is None:
                return
            entry = claimed
        if entry.phase not in _CLAIMED:
            return
        sandbox = sandbox_of(entry)
        end = self.ends.of(sandbox)
        if end is None:
            self._forget(sandbox)  # before it is destroyed: that is no end by itself
            end = end_at_shutdown(entry)
        await self._report_end(entry, end)

    async def _claim(self, entry: Entry) -> None:
        """Write `Starting`; only an acknowledged claim, or one met in the stream, is acted on."""
        refusal = self.runtime.refusal(order_of(entry)) if not entry.resume else ""
        if refusal:
            await self._give_back(entry, refusal)
            return
        claimed = await self.statuses.write(entry, statuses.starting)
        if claimed is not None:
            await self._begin(claimed)

    async def _begin(self, entry: Entry) -> None:
        await (self._resume(entry) if entry.resume else self._run(entry))

    async def _confirm(self, entry: Entry) -> None:
        """Claim what this agent is asked to confirm, if it fits; a full machine gives it back."""
        order = order_of(entry)
        refusal = self.runtime.refusal(order) if not entry.resume else ""
        refusal = refusal or await self.room.promise(order)
        if refusal:
            await self._give_back(entry, refusal)
            return
        try:
            # Nothing yields between the verdict and the write, which hangs on the same version.
            if self.confirming.may_claim(entry):
                claimed = await self.statuses.write(entry, statuses.confirmed, node=self.node)
                if claimed is not None:
                    await self._begin(claimed)
        finally:
            self.room.promised.pop(order.sandbox, None)

    async def _run(self, entry: Entry) -> None:
        order = order_of(entry)
        short = await self.room.admit(order)
        if short:
            await self._give_back(entry, short)
            return
        try:
            endpoint = await self._create(order)
        except StartFailed as error:
            await self._fail(entry, error)
            return
        self.pausing.created(order.sandbox)
        self.ends.wait_for(order.sandbox)
        await self.statuses.write(entry, statuses.running, sandbox=order.sandbox, endpoint=endpoint)

    async def _create(self, order: Order) -> str:
        self.creating.add(order.sandbox)
        try:
            return await self.runtime.create(order)
        finally:
            self.creating.discard(order.sandbox)

    async def _resume(self, entry: Entry) -> None:
        """Resume what is claimed, with the room check of a start; the machine decides last."""
        if not await self._is_there(entry):
            return
        order = order_of(entry)
        short = await self.room.admit(order, resumes=True)
        if short:
            await self._give_back(entry, short)
            return
        if await self._runs_on(entry):
            await self.statuses.write(entry, statuses.resumed)

    async def _look_after(self, entry: Entry) -> None:
        """Pause a running sandbox when asked to; report its end."""
        if not await self._is_there(entry):
            return
        if entry.wishes.is_paused:
            keeping = await self.pausing.pause(entry)
            await self.statuses.write(entry, statuses.paused, keeping=keeping)
        else:  # also what was paused for a moment that nobody has written
            await self._runs_on(entry)

    async def _keep_paused(self, entry: Entry) -> None:
        """Hold only what is stamped; report the end of a sandbox that is gone."""
        if await self._is_there(entry):
            await self.pausing.keep_paused(entry)

    async def _is_there(self, entry: Entry) -> bool:
        """Report the end of a sandbox once the machine has let go of it; True when it goes on."""
        sandbox = sandbox_of(entry)
        end = self.ends.of(sandbox)
        if sandbox in self.room.held and end is None:
            self.ends.wait_for(sandbox)
            return True
        await self._report_end(entry, end or _LOST)
        return False

    async def _runs_on(self, entry: Entry) -> bool:
        """Make sure that the sandbox runs; report the failure of one that does not any more."""
        sandbox = sandbox_of(entry)
        self.creating.add(sandbox)
        try:
            await self.pausing.resume(sandbox)
        except StartFailed as error:
            await self._fail(entry, error)
            return False
        finally:
            self.creating.discard(sandbox)
        return True

    async def _fail(self, entry: Entry, error: StartFailed) -> None:
        await self._let_go(sandbox_of(entry))
        await self.statuses.write(entry, statuses.start_failed, message=str(error))

    async def _evict(self, entry: Entry) -> None:
        """Stop the sandbox, then give the request back, unless it has ended by itself before."""
        sandbox = sandbox_of(entry)
        end = self.ends.of(sandbox)
        if end is not None:
            await self._report_end(entry, end)
            return
        log.info("%s evicts %s", self.node, entry.key)
        await self._let_go(sandbox)
        await self.statuses.write(entry, statuses.evicted)

    async def _report_end(self, entry: Entry, end: Ended) -> None:
        """Write how it ended once the machine has let go; remembered until that is written."""
        await self.room.release(sandbox_of(entry))
        await self.statuses.write(
            entry, statuses.finished, succeeded=end.succeeded, message=end.message
        )

    async def _give_back(self, entry: Entry, reason: str) -> None:
        log.info("%s gives %s back: %s", self.node, entry.key, reason)
        change = statuses.refused
        if entry.resume:
            await self.pausing.pause_again(entry)
            change = statuses.resume_refused
        await self.statuses.write(entry, change, node=self.node, reason=reason)

    async def _let_go(self, sandbox: str) -> None:
        self._forget(sandbox)  # before it is destroyed: that is no end by itself
        await self.room.release(sandbox)
        self.room_may_have_come()

    def _forget(self, sandbox: str) -> None:
        self.ends.forget(sandbox)
        self.pausing.forget(sandbox)
