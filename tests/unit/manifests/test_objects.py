from __future__ import annotations

import pytest
from tests.unit.manifests.looking import PROFILE, lines_of, profile, report_of

from cubesched.manifests.findings import Judged, Skipped

REQUEST = """\
apiVersion: cubesched.io/v1alpha1
kind: SandboxRequest
metadata: {name: r, namespace: team}
spec: {resources: {cpu: 1, memory: 1Gi}}
"""


def test_objects_are_found_among_others_in_many_documents() -> None:
    report = report_of(
        f"---\n{PROFILE}---\n---\nkind: ConfigMap\napiVersion: v1\n---\nreplicas: 3\n---\n{REQUEST}"
    )

    assert report.findings == []
    assert report.objects == [
        Judged("SchedulerProfile/burst", "a.yaml"),
        Judged("SandboxRequest/team/r", "a.yaml"),
    ]
    assert report.skipped == [Skipped("a.yaml", "ConfigMap"), Skipped("a.yaml", "")]


def test_lists_hold_objects() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret}
- apiVersion: cubesched.io/v1alpha1
  kind: SchedulerProfile
  metadata: {name: burst}
  spec: {route: {labels: {workload: x}}, ordr: 1}
- 7
"""
    assert lines_of(text) == [
        'a.yaml:8 SchedulerProfile/burst: spec.ordr: unknown field; did you mean "order"?',
        "a.yaml:9 items[2]: must be an object, with apiVersion and kind",
    ]
    assert report_of(text).skipped == [Skipped("a.yaml", "Secret")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- 1\n", "a.yaml:1 must be an object, with apiVersion and kind"),
        (
            "apiVersion: cubesched.io/v1alpha1\nkind: SchedulerProfil\n",
            "a.yaml:2 kind: unknown 'SchedulerProfil'; did you mean \"SchedulerProfile\"?",
        ),
        (
            "\nmetadata: {}\napiVersion: cubesched.io/v1\n",
            (
                "a.yaml:2 kind: missing; known are SandboxNode, SandboxRequest, SchedulerConfig,"
                " SchedulerProfile"
            ),
        ),
        (
            f"{PROFILE}  order: 1\n  order: 2\n",
            'a.yaml:7 the key "order" stands twice, first in line 6',
        ),
        (
            "kind: [\n",
            "a.yaml:2 not YAML: while parsing a flow node, did not find expected node content",
        ),
    ],
)
def test_what_is_wrong_with_a_document_is_told_with_its_line(text: str, line: str) -> None:
    assert lines_of(text) == [line]


def test_documents_of_others_are_not_judged() -> None:
    assert lines_of("kind: ConfigMap\na: 1\na: 2\n") == []


def test_two_objects_of_one_name_are_told_and_both_are_judged() -> None:
    other = profile(spec="  route: {labels: {workload: z}}\n  ordr: 1\n")

    assert lines_of(PROFILE, f"{other}---\n{REQUEST}---\n{REQUEST}") == [
        (
            "b.yaml:3 SchedulerProfile/burst: metadata.name: there is a SchedulerProfile of this"
            " name already, in a.yaml:3"
        ),
        'b.yaml:6 SchedulerProfile/burst: spec.ordr: unknown field; did you mean "order"?',
        (
            "b.yaml:15 SandboxRequest/team/r: metadata.name: there is a SandboxRequest of this name"
            " already, in line 10"
        ),
    ]


def test_requests_of_one_name_in_two_namespaces_are_two() -> None:
    assert lines_of(REQUEST, REQUEST.replace("team", "other")) == []
