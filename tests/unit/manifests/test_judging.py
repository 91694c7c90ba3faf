from __future__ import annotations

import socket
import tempfile

import pytest
from tests.unit.manifests.looking import PROFILE, lines_of, profile, report_of
from tests.unit.policy.builders import a_config, a_profile

from cubesched.manifests.findings import CLUSTER, Judged
from cubesched.manifests.judging import Held, judge
from cubesched.manifests.objects import read_objects
from cubesched.manifests.sources import Source
from cubesched.plugins.listing import Surroundings
from cubesched.policy.objects import PROFILE_KIND, Problem
from cubesched.policy.policyset import PolicySet

NODE = """\
apiVersion: cubesched.io/v1alpha1
kind: SandboxNode
metadata: {name: n1}
spec:
  capacity:
    cpu: 64
    memory: 256Gi
"""


def test_the_compiler_judges_policy_and_each_error_stands_in_its_line() -> None:
    text = profile(
        spec="""\
  route: {labels: {workload: burst}}
  filters:
  - name: quiet
    type: expr
    expr: node.nope < 8
  scores:
  - name: most_allocated
    weight: 0
"""
    )

    assert lines_of(text) == [
        "a.yaml:9 SchedulerProfile/burst: spec.filters[0].expr 1:6: undefined field 'nope' of node",
        (
            "a.yaml:12 SchedulerProfile/burst: spec.scores[0].weight: input should be greater than"
            " 0, not 0"
        ),
    ]


def test_all_files_are_one_set() -> None:
    default = "  default: true\n"

    assert lines_of(profile("one", spec=default), profile("two", spec=default)) == [
        "a.yaml:5 SchedulerProfile/one: spec.default: two is the default as well",
        "b.yaml:5 SchedulerProfile/two: spec.default: one is the default as well",
    ]


def test_the_config_of_the_files_decides_on_labels() -> None:
    team = profile(spec="  route: {labels: {team: x}}\n")
    config = profile("default", kind="SchedulerConfig", spec="  profileRouteLabelKeys: [team]\n")

    assert len(lines_of(team)) == 1
    assert lines_of(team, config) == []


def test_a_config_of_another_name_is_told_and_judged_by_itself() -> None:
    other = profile("mine", kind="SchedulerConfig", spec="  overcommit: {cpu: 20}\n")

    assert lines_of(PROFILE, other) == [
        (
            'b.yaml:3 SchedulerConfig/mine: metadata.name: must be "default": there is one'
            " SchedulerConfig"
        ),
        (
            "b.yaml:5 SchedulerConfig/mine: spec.overcommit.cpu: input should be less than or equal"
            " to 16, not 20"
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("64", "0.5", "6 spec.capacity.cpu: 0.5 is a YAML float: quote it, as in '0.5'"),
        ("    cpu: 64\n", "", "5 spec.capacity.cpu: Field required"),
        ("64", '64\n  quotas: {}', '7 spec.quotas: unknown field; did you mean "quota"?'),
    ],
)  # fmt: skip
def test_nodes_and_requests_are_judged_by_their_models(old: str, new: str, line: str) -> None:
    assert lines_of(NODE) == []
    if "quotas" in new:
        text = f"{NODE}  quotas: {{}}\n"
        line = line.replace("7 ", "8 ")
    else:
        text = NODE.replace(old, new)
    number, _, rest = line.partition(" ")
    assert lines_of(text) == [f"a.yaml:{number} SandboxNode/n1: {rest}"]


@pytest.mark.parametrize("spec", ["spec: 7", "spec: ", "", "spec: [a]"])
def test_a_spec_that_is_none_is_told(spec: str) -> None:
    found = lines_of(
        f"{NODE.partition('spec')[0]}{spec}\n", f"{PROFILE.partition('spec')[0]}{spec}\n"
    )

    assert {line.split()[0][:6] for line in found} == {"a.yaml", "b.yaml"}


def test_files_win_over_the_cluster_by_name() -> None:
    held = Held(
        [a_profile("burst", ordr=1), a_profile("other")], a_config(profileRouteLabelKeys=["team"])
    )

    assert lines_of(profile(spec="  route: {labels: {team: x}}\n"), held=held) == [
        (
            "cluster SchedulerProfile/other: spec.route.labels.workload: not in"
            " profileRouteLabelKeys of SchedulerConfig/default; allowed: team"
        )
    ]
    assert report_of(PROFILE, held=held).objects == [
        Judged("SchedulerProfile/burst", "a.yaml"),
        Judged("SchedulerProfile/other", CLUSTER),
        Judged("SchedulerConfig/default", CLUSTER),
    ]


def test_the_config_of_the_files_wins_as_well() -> None:
    config = profile("default", kind="SchedulerConfig", spec="  profileRouteLabelKeys: [team]\n")
    held = Held([a_profile("burst", route={"labels": {"team": "x"}})], a_config())

    assert lines_of(config, held=held) == []
    assert len(lines_of(PROFILE.replace("burst", "b"), held=held)) == 1


def test_warnings_of_the_set_are_no_errors() -> None:
    (finding,) = report_of(f"{PROFILE}  scores: []\n").findings

    assert (finding.severity, finding.place and finding.place.line) == ("warning", 6)
    assert "NoScores" in finding.text


def test_a_python_plugin_that_is_not_installed_here_is_a_warning() -> None:
    text = (
        f"{PROFILE}  filters:\n  - {{name: nowhere, type: python, args: {{a: 1}}}}\n"
        "  scores:\n  - {name: nowhere-either, type: python}\n  - {name: nope}\n"
    )

    report = report_of(text)
    assert [(f.severity, f.lint, f.path) for f in report.findings] == [
        ("warning", "PluginNotInstalled", "spec.filters[0].name"),
        ("warning", "PluginNotInstalled", "spec.scores[0].name"),
        ("error", "", "spec.scores[1].name"),
    ]
    assert report.findings[0].message == (
        'no package here offers the python plugin "nowhere": neither it nor its args are checked,'
        " and the operator's image must have it"
    )


def test_a_grpc_plugin_is_judged_and_not_called() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/a.sock")
        server.listen()
        server.setblocking(False)
        entry = f"  - {{name: far, type: grpc, socketPath: {folder}/a.sock}}\n"
        text = f"{PROFILE}  filters:\n{entry}"

        assert report_of(text, around=Surroundings(plugin_directory=folder)).findings == []
        assert "is not within /run/cube" in report_of(text).findings[0].message
        with pytest.raises(BlockingIOError):
            server.accept()


def test_what_live_nodes_show_stands_in_the_line_of_the_object() -> None:
    def look(policy: PolicySet) -> list[Problem]:
        return [
            Problem(PROFILE_KIND, profile.name, "spec.filters[0]", "is odd", "FilterPassesNoNode")
            for profile in policy.profiles
        ]

    text = profile(spec="  default: true\n  filters:\n  - name: scarce_resource\n")
    found = list(read_objects(Source("a.yaml", text)))
    held = Held([a_profile("held")])

    assert [
        (f.source, f.place and f.place.line, f.severity, f.text)
        for f in judge(found, held, Surroundings(), look).findings
    ] == [
        (
            "a.yaml",
            7,
            "warning",
            "SchedulerProfile/burst: FilterPassesNoNode: spec.filters[0]: is odd",
        ),
        (
            CLUSTER,
            None,
            "warning",
            "SchedulerProfile/held: FilterPassesNoNode: spec.filters[0]: is odd",
        ),
    ]
