"""Writes under way: each settled once, by the stream or by a certain answer, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.fleet.objects import a_request_object
from tests.unit.scheduling.worlds import (
    LoopClock,
    Server,
    breaks,
    lands,
    lost_after_landing,
    rejected,
    resent_after_landing,
    settle,
    unknown,
    unsent,
)

from cubesched.fleet.entries import Entry, read_entry
from cubesched.scheduling.inflight import UNSETTLED_SECONDS, InFlight, Intent, Write

WANTED = {"phase": "Reserved"}


class Sending:
    """Writes of one request `r1`, and how each was settled."""

    def __init__(self) -> None:
        self.server, self.settled = Server(), list[tuple[str, int | None, str]]()
        self.inflight = InFlight(self.server, LoopClock(), self._settled)
        self.server.create("r1")
        self.entry = self.read()

    def _settled(self, write: Write, after: Entry | None, why: str) -> None:
        self.settled.append((write.intent.value, after.version if after else None, why))

    def read(self) -> Entry:
        stored = self.server.objects["r1"]
        version = int(stored["metadata"]["resourceVersion"])
        return read_entry(a_request_object("r1", version=version, **stored.get("status", {})))

    def start(self, **status: Any) -> None:
        self.inflight.start(self.entry, Intent.RESERVE, status or WANTED)

    def meet(self) -> None:
        """The stream shows the object as the server holds it now."""
        self.inflight.meet("uid-r1", self.read())

    @property
    def is_under_way(self) -> bool:
        return "uid-r1" in self.inflight


def sending(test: Callable[[Sending], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        await test(Sending())

    def run() -> None:
        run_virtual(main)

    run.__name__ = test.__name__
    return run


@sending
async def test_a_write_that_landed_is_settled_when_the_stream_shows_it(sending: Sending) -> None:
    sending.start()
    await settle()
    assert sending.is_under_way, "the reply alone settles nothing"

    sending.meet()
    assert sending.settled == [("reserve", 102, "")]
    assert not sending.is_under_way


@sending
async def test_the_stream_may_be_faster_than_the_reply(sending: Sending) -> None:
    sending.start()
    sending.server.patch_status("r1", phase="Reserved", nodeName="n1")
    sending.meet()
    await settle()

    assert sending.settled == [("reserve", 102, "")]
    assert sending.inflight.lag_seconds() == 0.0


@sending
async def test_what_the_stream_had_before_the_write_settles_nothing(sending: Sending) -> None:
    sending.start()
    sending.meet()

    assert sending.is_under_way


@sending
async def test_a_refused_write_waits_for_the_newer_version(sending: Sending) -> None:
    sending.server.patch_status("r1", note="edited by its owner")
    sending.start()
    await settle(10.0)
    assert sending.is_under_way
    assert len(sending.server.puts) == 1

    sending.meet()
    assert sending.settled == [("reserve", 102, "")]


@sending
async def test_a_write_to_a_deleted_request_waits_for_the_deletion(sending: Sending) -> None:
    sending.server.delete("r1")
    sending.start()
    await settle(10.0)
    assert sending.is_under_way

    sending.inflight.meet("uid-r1", None)
    assert sending.settled == [("reserve", None, "")]


@sending
async def test_a_rejected_write_is_settled_at_once_with_its_reason(sending: Sending) -> None:
    sending.server.otherwise = rejected
    sending.start()
    await settle()

    assert sending.settled == [("reserve", 101, "invalid: no")]


@sending
async def test_a_write_that_changes_nothing_waits_for_no_event(sending: Sending) -> None:
    sending.server.objects["r1"]["status"] = dict(WANTED)
    sending.start()
    await settle()

    assert sending.settled == [("reserve", 101, "")]


@sending
async def test_without_an_answer_the_same_write_is_sent_again_until_it_lands(
    sending: Sending,
) -> None:
    sending.server.script.extend([unknown, unknown, unknown, lands])
    sending.start()
    await settle(20.0)

    assert {put.version for put in sending.server.puts} == {101}
    waits = [put.at for put in sending.server.puts]
    assert waits == pytest.approx([0.0, 0.502, 1.504, 3.506])
    sending.meet()
    assert sending.settled == [("reserve", 102, "")]


@sending
async def test_a_lost_reply_of_a_write_that_landed_ends_when_the_stream_shows_it(
    sending: Sending,
) -> None:
    sending.server.script.append(lost_after_landing)
    sending.start()
    await settle(0.1)
    sending.meet()
    await settle(20.0)

    assert sending.settled == [("reserve", 102, "")]
    assert len(sending.server.puts) == 1, "nothing is sent again after it is settled"


@sending
async def test_a_write_that_lands_late_settles_like_any_other(sending: Sending) -> None:
    sending.server.otherwise = unknown
    sending.start()
    await settle(100.0)
    assert sending.is_under_way

    sending.server.patch_status("r1", phase="Reserved", nodeName="n1")
    sending.meet()
    assert sending.settled == [("reserve", 102, "")]


@sending
async def test_an_own_success_that_was_sent_twice_is_told_by_the_stream(sending: Sending) -> None:
    sending.server.script.append(resent_after_landing)
    sending.start()
    await settle()
    sending.meet()

    assert sending.settled == [("reserve", 102, "")]


@sending
async def test_a_fault_of_the_client_leaves_nothing_behind(sending: Sending) -> None:
    sending.server.otherwise = breaks
    logging.disable(logging.CRITICAL)
    sending.start()
    await settle()
    logging.disable(logging.NOTSET)

    assert sending.settled == [("reserve", 101, "the write failed")]


@sending
async def test_an_answer_that_the_stream_never_shows_is_given_up_in_the_end(
    sending: Sending,
) -> None:
    sending.start()
    await settle(UNSETTLED_SECONDS)
    sending.inflight.give_up_old()
    assert sending.is_under_way

    await settle(1.0)
    sending.inflight.give_up_old()
    assert sending.settled == [("reserve", 101, "outcome not seen in time")]


@sending
async def test_an_unanswered_write_is_never_given_up_for_it_may_still_land(
    sending: Sending,
) -> None:
    sending.server.otherwise = unknown
    sending.start()
    await settle(10 * UNSETTLED_SECONDS)
    sending.inflight.give_up_old()

    assert sending.is_under_way


# How far the stream is behind


@sending
async def test_the_lag_is_how_long_an_acknowledged_write_has_not_been_met(
    sending: Sending,
) -> None:
    sending.server.latency_seconds = 0.0
    sending.start()
    await settle(0.4)
    assert sending.inflight.lag_seconds() == pytest.approx(0.4)

    sending.meet()
    assert sending.inflight.lag_seconds() == pytest.approx(0.4), "remembered for a second"
    await settle(1.1)
    assert sending.inflight.lag_seconds() == 0.0


@sending
async def test_writes_that_did_not_land_say_nothing_about_the_stream(sending: Sending) -> None:
    sending.server.patch_status("r1", note="edited by its owner")
    sending.start()
    await settle(5.0)

    assert sending.inflight.lag_seconds() == 0.0


# The end


@sending
async def test_draining_waits_until_everything_is_settled(sending: Sending) -> None:
    sending.start()
    loop = sending.inflight.clock
    begun = loop.monotonic()
    sending.server.tell = lambda *_: None

    async def meet_later() -> None:
        await settle(0.3)
        sending.meet()

    await asyncio.gather(meet_later(), sending.inflight.drain(5.0))

    assert loop.monotonic() - begun == pytest.approx(0.3)
    assert len(sending.settled) == 1


@sending
async def test_draining_ends_in_time_and_sends_nothing_after(sending: Sending) -> None:
    sending.server.otherwise = unknown
    sending.start()
    await sending.inflight.drain(2.0)
    sent = len(sending.server.puts)
    await settle(60.0)

    assert len(sending.server.puts) == sent


@sending
async def test_draining_nothing_takes_no_time(sending: Sending) -> None:
    await sending.inflight.drain(5.0)

    assert sending.inflight.clock.monotonic() == 0.0


@sending
async def test_an_unreachable_server_is_a_reason_of_its_own(sending: Sending) -> None:
    sending.server.otherwise = unsent
    sending.start()
    await settle()

    assert sending.settled == [("reserve", 101, "cannot connect")]
