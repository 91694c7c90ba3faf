from __future__ import annotations

import pytest
from tests.unit.manifests.looking import lines_of

BODY = """\
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata:
  name: burst
spec:
  route: {labels: {workload: burst}}
"""
NO_NAME = (
    "is no object name: use at most 253 of a-z, 0-9, '-' and '.', each part between dots beginning"
    " and ending with a letter or digit"
)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "cubesched.io/v1alpha1",
            "cubesched.io/v1",
            '1 apiVersion: must be "cubesched.io/v1alpha1", not "cubesched.io/v1"',
        ),
        (
            "apiVersion: cubesched.io/v1alpha1\n",
            "",
            '1 apiVersion: missing; write "cubesched.io/v1alpha1"',
        ),
        ("spec:", "status: {}\nspek: 1\nspec:", '6 spek: unknown field; did you mean "spec"?'),
        ("  name: burst", "  7", "3 metadata: must be an object"),
        (" burst", " 7", '4 metadata.name: must be text: quote it, as in "7"'),
        (" burst", " yes", '4 metadata.name: must be text: quote it, as in "true"'),
        (" burst", " Burst", f'4 metadata.name: "Burst" {NO_NAME}'),
        (" burst", " a..b", f'4 metadata.name: "a..b" {NO_NAME}'),
        (" burst", ' "a\\nb"', f'4 metadata.name: "a?b" {NO_NAME}'),
        (
            "burst\n",
            "burst\n  namespace: A\n",
            (
                "5 metadata.namespace: \"A\" is no namespace: use at most 63 of a-z, 0-9 and '-',"
                " beginning and ending with a letter or digit"
            ),
        ),
        ("burst\n", "burst\n  labels: [a]\n", "5 metadata.labels: must be an object"),
        (
            "burst\n",
            "burst\n  labels:\n    a: b\n    b: 1\n",
            '7 metadata.labels.b: must be text: quote it, as in "1"',
        ),
        (
            "burst\n",
            "burst\n  labels: {a b: c}\n",
            (
                "5 metadata.labels.a b: is no label key, as in workload or"
                " topology.kubernetes.io/zone"
            ),
        ),
        (
            "burst\n",
            "burst\n  labels: {a: b c}\n",
            '5 metadata.labels.a: "b c" is no label value: at most 63 of A-Z, a-z, 0-9, -_.',
        ),
    ],
)
def test_each_error_beside_the_spec_names_its_field(old: str, new: str, line: str) -> None:
    (found,) = lines_of(BODY.replace(old, new, 1))

    place, _, rest = found.partition(" ")
    title, _, detail = rest.partition(": ")
    assert title.startswith("SchedulerProfile/")
    assert f"{place.removeprefix('a.yaml:')} {detail}" == line


@pytest.mark.parametrize(
    "metadata", ["metadata: {}", "metadata: {generateName: x-}", "", "metadata: {name: }"]
)
def test_an_object_without_a_name_is_judged_all_the_same(metadata: str) -> None:
    head = "apiVersion: cubesched.io/v1alpha1\nkind: SchedulerProfile\n"
    text = f"{head}{metadata}\nspec: {{ordr: 1}}\n"

    found = lines_of(text, text)
    assert len(found) == 6
    assert [line.partition(": ")[2] for line in found[:3]] == [
        "metadata.name: missing: every object needs one",
        "spec.route: needs instanceTypes or labels, unless default is true",
        'spec.ordr: unknown field; did you mean "order"?',
    ]
    assert {line.partition(" ")[2].partition(":")[0] for line in found} == {
        "SchedulerProfile/(unnamed)"
    }


def test_requests_may_be_given_the_beginning_of_a_name() -> None:
    text = "apiVersion: cubesched.io/v1alpha1\nkind: SandboxRequest\nmetadata: {generateName: r-}\n"

    assert lines_of(f"{text}spec: {{resources: {{cpu: 1, memory: 1Gi}}}}\n") == []
