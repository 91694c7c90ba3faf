"""Keeps the set that runs, and brings the last one back after a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from cubesched.handlers.ports import Membership, PolicyRecords
from cubesched.policy.compiler import CompileResult
from cubesched.policy.history import MAX_RECORD_BYTES, PolicyRecord, read_record
from cubesched.policy.objects import PolicyObject
from cubesched.policy.policyset import PolicySet

_LOG = logging.getLogger(__name__)
OWNED_AS: Final = "policy-history"
"""Stands for the records where replicas share work: one of them writes."""

Compile = Callable[[Sequence[PolicyObject], PolicyObject | None], CompileResult]


class PolicyHistory:
    """The records, as one replica uses them."""

    def __init__(self, records: PolicyRecords, membership: Membership, compile_: Compile) -> None:
        self._records, self._membership, self._compile = records, membership, compile_
        self._running: PolicyRecord | None = None
        self._kept = ""

    def note(self, record: PolicyRecord) -> None:
        """Take the objects of which the running set was made."""
        if self._running is None or record.name != self._running.name:
            self._kept = ""  # others may have kept sets in between
        self._running = record

    async def keep(self) -> None:
        """Make what runs the newest record, if that is this replica's to do; raises ApiError.

        Also while the stored objects are refused: whoever was to write it may have died first.
        """
        record = self._running
        if record is None or not self._membership.owns(OWNED_AS) or record.name == self._kept:
            return
        data = record.data()
        size = len(msgspec.json.encode(data))
        if size > MAX_RECORD_BYTES:
            _LOG.warning("policy %s is not kept for a restart: %d bytes, at most %d",
                         record.revision, size, MAX_RECORD_BYTES)  # fmt: skip
        else:
            await self._records.keep(record.name, data)
        self._kept = record.name

    async def last_good(self) -> PolicySet | None:
        """Return the newest set that still compiles, None without; raises ApiError."""
        for name, data in await self._records.newest_first():
            policy = await self._compiled(name, data)
            if policy is not None:
                _LOG.warning(
                    "the stored policy does not compile: %s runs, from ControllerRevision %s",
                    policy.revision,
                    name,
                )
                return policy
        return None

    async def _compiled(self, name: str, data: Any) -> PolicySet | None:
        try:
            record = read_record(data)
        except ValueError as error:
            _LOG.warning("ControllerRevision %s is passed over: %s", name, error)
            return None
        result = await asyncio.to_thread(self._compile, record.profiles, record.config)
        if result.policy is None:
            _LOG.warning("ControllerRevision %s does not compile any more: %s", name,
                         result.problems[0].text)  # fmt: skip
        return result.policy
