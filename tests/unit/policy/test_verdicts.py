from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.unit.policy.builders import a_config, a_profile, offer
from tests.unit.scheduling.plugins import NoHost, Slow
from typing_extensions import override

from cubesched.api.v1alpha1 import (
    SchedulerConfigStatus,
    SchedulerProfileStatus,
)
from cubesched.core.pipeline import Health
from cubesched.policy.active import ActivePolicy
from cubesched.policy.objects import CONFIG_KIND, PROFILE_KIND, PolicyObject
from cubesched.policy.verdicts import (
    Status,
    config_status,
    profile_status,
    status_change,
)

OWNED = ("activeRevision", "replicasOnRevision", "problems")
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@dataclass
class Host(NoHost):
    """A host that does as it is told."""

    told: tuple[Health, str]

    @override
    def health(self) -> tuple[Health, str]:
        return self.told


@pytest.fixture
def policy() -> ActivePolicy:
    active = ActivePolicy()
    active.mark_listed(PROFILE_KIND)
    active.mark_listed(CONFIG_KIND)
    return active


def written(
    policy: ActivePolicy, subject: PolicyObject, *revisions: str, note: str = "", now: str = NOW
) -> Status:
    verdict = policy.verdict(subject)
    if subject.kind == CONFIG_KIND:
        return config_status(subject, verdict, policy.current, note=note, now=now)
    return profile_status(subject, verdict, policy.current, revisions=revisions, now=now)


def short(status: Status) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def message(status: Status, kind: str) -> str:
    (found,) = [c["message"] for c in status["conditions"] if c["type"] == kind]
    return str(found)


def revision(policy: ActivePolicy) -> str:
    assert policy.current is not None
    return policy.current.revision


def test_a_running_profile_says_so_with_the_revision_and_the_replicas_on_it(
    policy: ActivePolicy,
) -> None:
    profile = a_profile("a", generation=3)
    offer(policy, [profile], None)

    status = written(policy, profile, revision(policy), "older", revision(policy))

    assert short(status) == {"Accepted": ("True", "Compiled"), "Active": ("True", "Running")}
    assert status["activeRevision"] == revision(policy)
    assert status["replicasOnRevision"] == "2/3"
    assert {c["observedGeneration"] for c in status["conditions"]} == {3}
    assert "problems" not in status


def test_an_invalid_profile_lists_its_own_problems_only(policy: ActivePolicy) -> None:
    bad = a_profile("bad", ordr=1, scores=[{"name": "nope"}])
    offer(policy, [bad, a_profile("worse", order="x")], None)

    status = written(policy, bad)

    assert short(status) == {"Accepted": ("False", "Invalid"), "Active": ("False", "SetRejected")}
    assert [p.split(":")[0] for p in status["problems"]] == ["spec.ordr", "spec.scores[0].name"]
    assert message(status, "Accepted").endswith("(and 1 more)")
    assert "activeRevision" not in status
    assert "NoActivePolicy" in message(status, "Active")


def test_a_valid_profile_of_a_refused_set_names_the_culprit(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("good")], None)
    newer = a_profile("good", generation=2, order=4)
    offer(policy, [newer, a_profile("bad", order="x")], None)

    status = written(policy, newer, revision(policy))

    assert short(status) == {"Accepted": ("True", "Compiled"), "Active": ("False", "SetRejected")}
    assert "SchedulerProfile/bad: spec.order: " in message(status, "Active")
    assert f"{revision(policy)} keeps running" in message(status, "Active")
    assert status["activeRevision"] == revision(policy)


def test_a_disabled_profile_says_so(policy: ActivePolicy) -> None:
    off = a_profile("off", mode="Disabled")
    offer(policy, [off], None)

    assert short(written(policy, off)) == {
        "Accepted": ("True", "Compiled"),
        "Active": ("False", "ModeDisabled"),
    }


def test_a_warning_is_a_condition_of_its_own(policy: ActivePolicy) -> None:
    profile = a_profile("a", scores=[])
    offer(policy, [profile], None)

    status = written(policy, profile)

    assert short(status)["Accepted"] == ("True", "Compiled")
    assert short(status)["Warnings"] == ("True", "NoScores")
    assert "NoScores: spec.scores: nothing is rated" in message(status, "Warnings")


def test_a_warning_that_has_gone_is_worth_a_write(policy: ActivePolicy) -> None:
    profile = a_profile("a", scores=[])
    offer(policy, [profile], None)
    warned = replace(profile, status=written(policy, profile))
    mended = replace(a_profile("a"), status=warned.status)
    offer(policy, [mended], None)

    change = status_change(mended, written(policy, mended), owned=OWNED)

    assert change is not None
    assert "Warnings" not in short(change)


@pytest.mark.parametrize(
    ("healths", "expected", "said"),
    [
        ([(Health.HEALTHY, ""), (Health.HEALTHY, "")], ("True", "Healthy"), "one, two answer."),
        (
            [(Health.HEALTHY, ""), (Health.UNREACHABLE, "no socket")],
            ("False", "Unreachable"),
            "two: no socket",
        ),
        (
            [(Health.CIRCUIT_OPEN, "3 failures"), (Health.UNREACHABLE, "no socket")],
            ("False", "CircuitOpen"),
            "one: 3 failures; two: no socket",
        ),
        (
            [(Health.UNREACHABLE, "no socket"), (Health.UNREACHABLE, "no socket")],
            ("False", "Unreachable"),
            "one, two: no socket",
        ),
    ],
)
def test_how_plugins_do_that_are_waited_for_is_told(
    policy: ActivePolicy,
    healths: list[tuple[Health, str]],
    expected: tuple[str, str],
    said: str,
) -> None:
    profile = a_profile("a")
    offer(policy, [profile], None)
    filters = tuple(
        Slow(name=name, host=Host(told)) for name, told in zip(("one", "two"), healths, strict=True)
    )
    assert policy.current is not None
    compiled = policy.current.profiles[0]
    pipeline = replace(compiled.pipeline, filters=filters)
    policy.current = replace(policy.current, profiles=(replace(compiled, pipeline=pipeline),))

    status = written(policy, profile)

    assert short(status)["PluginsHealthy"] == expected
    assert message(status, "PluginsHealthy") == said


def test_a_config_tells_whether_the_factory_profiles_run(policy: ActivePolicy) -> None:
    config = a_config()

    offer(policy, [], config)
    factory = short(written(policy, config))
    offer(policy, [a_profile("a")], config)
    custom = short(written(policy, config))

    assert factory["FactoryProfilesActive"] == ("True", "NoActiveProfile")
    assert custom == {
        "Accepted": ("True", "Compiled"),
        "Active": ("True", "Running"),
        "FactoryProfilesActive": ("False", "ProfilesActive"),
    }


def test_a_running_config_tells_what_is_to_be_known_of_it_and_no_other_does(
    policy: ActivePolicy,
) -> None:
    config = a_config()
    offer(policy, [], config)

    known = written(policy, config, note="Beware.")
    assert message(known, "Active") == f"Runs in revision {revision(policy)}. Beware."
    assert message(written(policy, config), "Active") == f"Runs in revision {revision(policy)}."
    later = a_config(generation=2)
    assert "Beware" not in message(written(policy, later, note="Beware."), "Active")


def test_a_config_can_switch_the_factory_profiles_off(policy: ActivePolicy) -> None:
    config = a_config(disableFactoryProfiles=True)
    offer(policy, [], config)

    assert short(written(policy, config))["FactoryProfilesActive"] == ("False", "DisabledByConfig")


def test_a_stray_config_is_refused_without_harm_to_the_set(policy: ActivePolicy) -> None:
    offer(policy, [a_profile("a")], None)

    assert short(written(policy, a_config(name="mine"))) == {
        "Accepted": ("False", "Invalid"),
        "Active": ("False", "SetRejected"),
        "FactoryProfilesActive": ("False", "ProfilesActive"),
    }


def stored(subject: PolicyObject, status: Status) -> PolicyObject:
    return replace(subject, status=status)


def test_the_transition_time_changes_only_with_the_status(policy: ActivePolicy) -> None:
    profile = a_profile("a")
    offer(policy, [profile], None)
    before = stored(profile, written(policy, profile, revision(policy), now=THEN))

    newer = replace(before, generation=2)
    offer(policy, [newer, a_profile("bad", ordr=1)], None)
    times = {
        c["type"]: c["lastTransitionTime"] for c in written(policy, newer, now=NOW)["conditions"]
    }

    assert times == {"Accepted": THEN, "Active": NOW}


def test_a_status_that_stands_already_is_not_written_again(policy: ActivePolicy) -> None:
    profile = a_profile("a")
    offer(policy, [profile], None)
    status = written(policy, profile, revision(policy), now=THEN)
    foreign = {"type": "Reviewed", "status": "True", "reason": "ByHand"}
    beside = stored(profile, {**status, "conditions": [foreign, *reversed(status["conditions"])]})

    assert status_change(beside, written(policy, beside, revision(policy)), owned=OWNED) is None


@pytest.mark.parametrize("revisions", [("other",), ()])
def test_a_change_of_the_replicas_is_written(
    policy: ActivePolicy, revisions: tuple[str, ...]
) -> None:
    profile = a_profile("a")
    offer(policy, [profile], None)
    before = stored(profile, written(policy, profile, revision(policy), now=THEN))

    change = status_change(before, written(policy, before, *revisions), owned=OWNED)

    assert change is not None
    assert change["replicasOnRevision"] == f"0/{len(revisions)}"


def test_problems_that_are_gone_are_taken_away(policy: ActivePolicy) -> None:
    bad = a_profile("a", ordr=1)
    offer(policy, [bad], None)
    good = stored(a_profile("a", generation=2), written(policy, bad))
    offer(policy, [good], None)

    change = status_change(good, written(policy, good), owned=OWNED)

    assert change is not None
    assert "problems" not in change


def test_lists_and_messages_are_bounded(policy: ActivePolicy) -> None:
    many: dict[str, Any] = {f"x{i}": i for i in range(80)} | {"y" * 3000: 1}
    bad = a_profile("a", **many)
    offer(policy, [bad], None)

    status = written(policy, bad)

    assert len(status["problems"]) == 51
    assert status["problems"][-1] == "and 31 more"
    assert max(len(line) for line in status["problems"]) <= 512
    assert len(message(status, "Active")) <= 1024


def test_what_is_written_is_what_the_api_can_store(policy: ActivePolicy) -> None:
    profile, config = a_profile("a"), a_config()
    offer(policy, [profile], config)
    SchedulerProfileStatus.model_validate(written(policy, profile, revision(policy)))
    SchedulerConfigStatus.model_validate(written(policy, config))


@pytest.mark.parametrize("conditions", [None, "x", [None, 3], [{"no": "type"}]])
def test_a_status_somebody_garbled_is_simply_replaced(
    policy: ActivePolicy, conditions: Any
) -> None:
    profile = stored(a_profile("a"), {"conditions": conditions})
    offer(policy, [profile], None)

    assert status_change(profile, written(policy, profile), owned=OWNED) is not None
