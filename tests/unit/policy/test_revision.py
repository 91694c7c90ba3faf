from __future__ import annotations

import re

from tests.unit.policy.builders import a_config, a_profile, compiled


def test_the_revision_is_twelve_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", compiled([], None).revision)


def test_order_of_the_list_generations_and_spelled_out_defaults_do_not_change_it() -> None:
    one = compiled([a_profile("a"), a_profile("b")], None)
    other = compiled(
        [
            a_profile("b", generation=7, order=1000, mode="Active", selection={"topN": 1}),
            a_profile("a", filters=[]),
        ],
        a_config(generation=3, overcommit={"cpu": 1}),
    )

    assert one.revision == other.revision


def test_every_change_of_a_spec_a_name_or_the_config_changes_it() -> None:
    revisions = [
        compiled(profiles, config).revision
        for profiles, config in [
            ([], None),
            ([], a_config(disableFactoryProfiles=True)),
            ([], a_config(overcommit={"cpu": 1.5})),
            ([a_profile("a")], None),
            ([a_profile("b", route={"labels": {"workload": "a"}})], None),
            ([a_profile("a", order=1)], None),
            ([a_profile("a", scores=[])], None),
            ([a_profile("a", scores=[{"name": "real_time_weighted_average"}])], None),
            ([a_profile("a"), a_profile("b")], None),
        ]
    ]

    assert len(set(revisions)) == len(revisions)


def test_a_disabled_profile_takes_no_part_in_it() -> None:
    without = compiled([a_profile("a")], None)
    beside = compiled([a_profile("a"), a_profile("b", mode="Disabled")], None)

    assert without.revision == beside.revision
