"""Membership: who lives, told when it changes; an unreachable server changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from tests.model.virtualtime import run_virtual, spawn
from tests.unit.scheduling.worlds import settle

from cubesched.core.errors import ApiError
from cubesched.fleet.rendezvous import Member
from cubesched.scheduling.membership import LEASE_SECONDS, RENEW_SECONDS, Membership


@dataclass(frozen=True)
class Live:
    member: Member


@dataclass
class Leases:
    """Leases in memory."""

    others: list[Member] = field(default_factory=list)
    renewed: list[tuple[str, int, str]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    is_down: bool = False
    looks: int = 0

    async def renew(
        self,
        identity: str,
        *,
        duration_seconds: int,
        revision: str,
        admission_version: int,
        ready: bool,
    ) -> str:
        await settle(0.01)
        self._check()
        self.renewed.append((identity, duration_seconds, revision))
        return str(40 + len(self.renewed))

    async def members(self) -> list[Live]:
        self.looks += 1
        self._check()
        return [Live(Member(self.renewed[-1][0])), *(Live(other) for other in self.others)]

    async def release(self, identity: str) -> None:
        self._check()
        self.released.append(identity)

    def _check(self) -> None:
        if self.is_down:
            raise ApiError("cannot reach the API server")


class Group:
    """This replica among others."""

    def __init__(self) -> None:
        self.leases, self.revision, self.told = Leases(), "rev-1", 0
        self.membership = Membership(
            identity="b",
            leases=self.leases,
            revision=lambda: self.revision,
            monotonic=lambda: asyncio.get_running_loop().time(),
        )
        self.membership.changed.append(self._count)

    def _count(self) -> None:
        self.told += 1

    def run(self) -> None:
        self.task = spawn("replica", self.membership.run())


def in_group(test: Callable[[Group], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        await test(Group())

    def run() -> None:
        run_virtual(main)

    run.__name__ = test.__name__
    return run


def test_a_replica_starts_alone_and_owns_everything() -> None:
    group = Group()

    assert group.membership.identities == ("b",)
    assert all(group.membership.owns(f"uid-{number}") for number in range(20))


@in_group
async def test_the_live_ones_are_told_in_one_order_this_one_always_among_them(
    group: Group,
) -> None:
    group.leases.others = [Member("c"), Member("a")]
    group.run()
    await settle(1.0)

    assert group.membership.identities == ("a", "b", "c")
    assert group.told == 1


@in_group
async def test_the_lease_is_renewed_well_within_its_time(group: Group) -> None:
    group.run()
    await settle(60.0)

    assert RENEW_SECONDS <= LEASE_SECONDS / 3
    assert len(group.leases.renewed) == pytest.approx(60 / RENEW_SECONDS, abs=1)
    assert set(group.leases.renewed) == {("b", LEASE_SECONDS, "rev-1")}


@in_group
async def test_nobody_is_told_while_nothing_changes(group: Group) -> None:
    group.leases.others = [Member("a")]
    group.run()
    await settle(60.0)

    assert group.told == 1


@in_group
async def test_when_a_replica_is_gone_its_share_is_taken_over(group: Group) -> None:
    group.leases.others = [Member("a"), Member("c")]
    group.run()
    await settle(1.0)
    mine = {n for n in range(60) if group.membership.owns(f"uid-{n}")}
    assert 5 < len(mine) < 40

    group.leases.others = [Member("c")]
    await settle(6.0)
    more = {n for n in range(60) if group.membership.owns(f"uid-{n}")}
    assert mine < more
    assert group.told == 2


@in_group
async def test_a_new_policy_revision_is_shown_within_a_second(group: Group) -> None:
    group.run()
    await settle(1.0)
    group.revision = "rev-2"
    await settle(1.0)

    assert group.leases.renewed[-1][2] == "rev-2"


@in_group
async def test_a_revision_that_others_show_a_moment_later_is_seen_within_half_a_second(
    group: Group,
) -> None:
    others_on(group, "rev-1")
    group.run()
    await settle(1.0)
    group.revision = "rev-2"
    await settle(0.4)
    assert not group.membership.everyone_runs("rev-2")
    others_on(group, "rev-2")
    await settle(0.3)

    assert group.membership.everyone_runs("rev-2")


@in_group
async def test_a_replica_that_stays_on_another_revision_is_not_asked_all_the_time(
    group: Group,
) -> None:
    others_on(group, "rev-0")
    group.run()
    await settle(RENEW_SECONDS + 1.0)
    looks = group.leases.looks
    await settle(60.0)

    assert group.leases.looks - looks == pytest.approx(60 / RENEW_SECONDS, abs=1)


@in_group
async def test_looking_without_renewing_does_not_count_as_being_seen_by_others(
    group: Group,
) -> None:
    others_on(group, "rev-0")
    group.run()
    await settle(1.0)
    group.leases.is_down = True
    logging.disable(logging.CRITICAL)
    await settle(LEASE_SECONDS)
    logging.disable(logging.NOTSET)
    others_on(group, "rev-1")

    assert not group.membership.everyone_runs("rev-1")


def others_on(group: Group, *revisions: str) -> None:
    group.leases.others = [Member(f"a{n}", text) for n, text in enumerate(revisions)]


@in_group
async def test_everyone_runs_a_revision_when_each_live_lease_shows_it(group: Group) -> None:
    assert not group.membership.everyone_runs("rev-1")  # not even this one's Lease shows it

    group.run()
    await settle(1.0)
    assert group.membership.everyone_runs("rev-1")

    others_on(group, "rev-1", "rev-1")
    await settle(RENEW_SECONDS + 1.0)
    assert group.membership.everyone_runs("rev-1")


@in_group
async def test_one_lease_with_another_revision_or_none_is_enough(group: Group) -> None:
    group.run()
    for other in ("rev-0", ""):
        others_on(group, "rev-1", other)
        await settle(RENEW_SECONDS + 1.0)
        assert not group.membership.everyone_runs("rev-1")


@in_group
async def test_a_revision_is_run_by_everyone_only_once_the_own_lease_shows_it(
    group: Group,
) -> None:
    group.run()
    await settle(1.0)
    others_on(group, "rev-2")
    group.revision = "rev-2"
    assert not group.membership.everyone_runs("rev-2")

    await settle(1.0)
    assert group.membership.everyone_runs("rev-2")
    assert not group.membership.everyone_runs("rev-1")


@in_group
async def test_leases_seen_too_long_ago_say_nothing_of_everyone(group: Group) -> None:
    group.run()
    await settle(1.0)
    logging.disable(logging.CRITICAL)
    group.leases.is_down = True
    await settle(LEASE_SECONDS - 6.0)
    assert group.membership.everyone_runs("rev-1")

    await settle(6.0)
    assert not group.membership.everyone_runs("rev-1")

    group.leases.is_down = False
    await settle(6.0)
    logging.disable(logging.NOTSET)
    assert group.membership.everyone_runs("rev-1")


@in_group
async def test_an_unreachable_server_changes_nobodys_share(group: Group) -> None:
    group.leases.others = [Member("a")]
    group.run()
    await settle(1.0)
    group.leases.is_down = True
    logging.disable(logging.CRITICAL)
    await settle(120.0)
    assert group.membership.identities == ("a", "b")

    group.leases.is_down = False
    renewed = len(group.leases.renewed)
    await settle(6.0)
    logging.disable(logging.NOTSET)
    assert len(group.leases.renewed) > renewed


@in_group
async def test_leaving_gives_the_lease_up_and_never_fails(group: Group) -> None:
    await group.membership.leave()
    assert group.leases.released == ["b"]

    group.leases.is_down = True
    logging.disable(logging.CRITICAL)
    await group.membership.leave()
    logging.disable(logging.NOTSET)
