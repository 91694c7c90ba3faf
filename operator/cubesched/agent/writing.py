"""The agent's writes to requests: each conditional on the version it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.agent.requests import OwnRequests, rewritten
from cubesched.agent.statuses import Status
from cubesched.api.timestamps import timestamp
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome
from cubesched.fleet.entries import Entry
from cubesched.fleet.objects import plain


@dataclass(frozen=True, slots=True)
class ConditionalWrites:
    """Writes statuses and tells `requests` of what was acknowledged."""

    writer: StatusWriter
    requests: OwnRequests
    epoch_seconds: Callable[[], float]

    async def write(
        self, entry: Entry, change: Callable[..., Status], **facts: Any
    ) -> Entry | None:
        """Change the status as `entry` was read; None when somebody was faster.

        Then the newer state is in the stream, or on its way. Raises ApiError when the outcome is
        unknown: sending the same write again is safe, since both hang on the same version.
        """
        status = change(
            plain(msgspec.Raw(entry.status_raw)),
            generation=entry.generation,
            now=timestamp(self.epoch_seconds()),
            **facts,
        )
        result = await self.writer.put_status(
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            resource_version=str(entry.version),
            status=status,
        )
        if result.outcome is Outcome.LANDED:
            written = rewritten(entry, status, version=int(result.resource_version))
            return written if self.requests.acknowledge(written) else None
        if result.outcome in {Outcome.REFUSED, Outcome.MISSING}:
            return None
        raise ApiError(f"cannot write the status of {entry.key}: {result.message}", result.status)
