from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.policy.builders import a_config, a_profile, offer, raw_profile

from cubesched.policy.active import ActivePolicy
from cubesched.policy.objects import CONFIG_KIND, PROFILE_KIND, Problem
from cubesched.policy.policyset import PolicySet


@pytest.fixture
def policy() -> ActivePolicy:
    active = ActivePolicy()
    active.mark_listed(PROFILE_KIND)
    active.mark_listed(CONFIG_KIND)
    return active


def test_nothing_is_activated_before_every_list_is_complete() -> None:
    active = ActivePolicy()
    active.mark_listed(PROFILE_KIND)

    offer(active, [a_profile("a")], None)

    assert active.current is None
    assert not active.is_listed
    active.mark_listed(CONFIG_KIND)
    offer(active, [a_profile("a")], None)
    assert active.current is not None


def test_an_invalid_set_at_the_start_leaves_no_policy(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a", ordr=1)], None)

    assert policy.current is None


def test_an_invalid_set_keeps_the_previous_one_running(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a")], None)
    before = policy.current

    offer(policy, [a_profile("a", generation=2, ordr=1), a_profile("b")], None)

    assert policy.current is before


def test_a_lease_keeps_its_set_while_another_is_swapped_in(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a")], None)

    leased = policy.current
    offer(policy, [a_profile("b")], None)

    assert leased is not None
    assert [p.name for p in leased.profiles] == ["a"]
    assert policy.current is not None
    assert [p.name for p in policy.current.profiles] == ["b"]


def test_subscribers_hear_of_swaps_only(policy: ActivePolicy) -> None:
    heard: list[PolicySet] = []
    policy.on_change.append(heard.append)

    offer(policy, [a_profile("a")], None)
    offer(policy, [a_profile("a")], None)
    offer(policy, [a_profile("a", ordr=1)], None)
    offer(policy, [a_profile("a", generation=2, order=3)], None)

    assert [[p.generation for p in s.profiles] for s in heard] == [[1], [2]]


def test_a_new_generation_with_the_same_meaning_is_swapped_in_under_the_same_revision(
    policy: ActivePolicy,
) -> None:
    offer(policy, [a_profile("a")], None)
    assert policy.current is not None
    revision = policy.current.revision

    offer(policy, [a_profile("a", generation=2, order=1000)], None)

    assert policy.current.revision == revision
    assert policy.current.profiles[0].generation == 2
    assert policy.verdict(a_profile("a", generation=2)).active


def test_a_list_of_errors_is_told_once(policy: ActivePolicy) -> None:
    heard: list[Sequence[Problem]] = []
    policy.on_reject.append(heard.append)

    offer(policy, [a_profile("a", ordr=1)], None)
    offer(policy, [a_profile("a", ordr=1)], None)
    offer(policy, [a_profile("a", order="x")], None)

    assert len(heard) == 2


def test_verdicts_tell_the_guilty_from_those_that_wait_for_it(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a"), a_profile("b")], None)
    guilty, innocent = a_profile("a", generation=2, ordr=1), a_profile("b", generation=2, order=5)
    unchanged = a_profile("c")

    offer(policy, [guilty, innocent, unchanged], None)

    assert not policy.verdict(guilty).accepted
    assert policy.verdict(guilty).reason == "SetRejected"
    assert policy.verdict(innocent).accepted
    assert not policy.verdict(innocent).active
    assert policy.verdict(innocent).culprits[0].name == "a"


def test_an_object_that_did_not_change_stays_active_while_the_set_is_refused(
    policy: ActivePolicy,
) -> None:
    offer(policy, [a_profile("a"), a_profile("b")], a_config())

    offer(policy, [a_profile("a"), a_profile("b", generation=2, ordr=1)], a_config())

    assert policy.verdict(a_profile("a")).active
    assert policy.verdict(a_config()).active
    assert not policy.verdict(a_profile("b", generation=2)).active


def test_a_profile_made_anew_under_the_same_name_is_not_the_running_one(
    policy: ActivePolicy,
) -> None:
    offer(policy, [a_profile("a")], None)

    anew = raw_profile("a", {"ordr": 1}, uid="another")
    offer(policy, [anew], None)

    assert not policy.verdict(anew).active


def test_a_deleted_profile_leaves_the_set(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a"), a_profile("b")], None)

    offer(policy, [a_profile("b")], None)

    assert policy.current is not None
    assert [p.name for p in policy.current.profiles] == ["b"]


def test_a_disabled_profile_is_accepted_and_not_active(policy: ActivePolicy) -> None:
    off = a_profile("off", mode="Disabled")
    offer(policy, [a_profile("a"), off], None)

    verdict = policy.verdict(off)

    assert (verdict.accepted, verdict.active, verdict.reason) == (True, False, "ModeDisabled")


def test_a_second_config_is_told_that_its_name_is_wrong(policy: ActivePolicy) -> None:
    offer(policy, [], a_config())

    verdict = policy.verdict(a_config(name="mine"))

    assert verdict.problems == ('metadata.name: must be "default": there is one SchedulerConfig',)


def test_running_on_factory_profiles_is_logged_as_a_warning(
    policy: ActivePolicy, caplog: pytest.LogCaptureFixture
) -> None:
    offer(policy, [], None)
    offer(policy, [a_profile("a")], None)

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "factory" in caplog.text
