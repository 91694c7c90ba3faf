from __future__ import annotations

import json

import pytest
from tests.unit.policy.builders import a_config, a_profile

from cubesched.policy.history import read_record, record_of


def test_a_record_comes_back_as_the_objects_it_was_made_of() -> None:
    profiles = [a_profile("b", generation=4), a_profile("a")]
    record = record_of("abc", profiles, a_config())

    back = read_record(json.loads(json.dumps(record.data())))

    assert [(p.name, p.uid, p.generation, p.spec) for p in back.profiles] == [
        (p.name, p.uid, p.generation, p.spec) for p in reversed(profiles)
    ]
    assert back.config is not None
    assert back.name == record.name


def test_its_name_says_the_revision_and_changes_with_the_content() -> None:
    one = record_of("abc", [a_profile("a")], None)
    other = record_of("abc", [a_profile("a", generation=2)], None)

    assert one.name.startswith("cubesched-policy-abc-")
    assert one.name != other.name
    assert one.name == record_of("abc", [a_profile("a")], None).name


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"format": 2, "profiles": []},
        {"format": 1, "profiles": {}},
        {"format": 1, "profiles": [7]},
        {"format": 1, "profiles": [{"name": "a"}]},
        {"format": 1, "profiles": [], "config": "x"},
    ],
)
def test_what_is_no_record_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"not|no name"):
        read_record(data)
