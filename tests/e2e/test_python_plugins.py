"""The example package beside a real operator: its Profile runs, and is refused when wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.e2e.operating import Operating, a_request, wait_until

from cubesched.local.demo import processes

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "python-plugin"


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package where the operator's process finds it, and this one does not."""
    target = tmp_path / "site-packages"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    more = ("--no-build-isolation", "--disable-pip-version-check", "--target", str(target))
    subprocess.run([*pip, *more, str(EXAMPLE)], check=True, timeout=120)
    monkeypatch.setattr(
        processes, "_PACKAGE_ROOT", f"{processes._PACKAGE_ROOT}{os.pathsep}{target}"
    )


HANGS = """
import time
from cubesched.plugins.python import ColumnFilter

class Hangs(ColumnFilter):
    def keep(self, fleet, request):
        time.sleep(3600)
"""


@pytest.fixture
def _hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package whose filter never returns."""
    info = tmp_path / "hanging" / "hangs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hangs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cubesched.plugins]\nhangs = hangs:Hangs\n")
    (info.parent / "hangs.py").write_text(HANGS)
    root = f"{processes._PACKAGE_ROOT}{os.pathsep}{info.parent}"
    monkeypatch.setattr(processes, "_PACKAGE_ROOT", root)


def condition(operating: Operating, name: str) -> tuple[str, str]:
    found = operating.get("sprof", "racks").get("status", {}).get("conditions", ())
    return next(((c["status"], c["reason"]) for c in found if c["type"] == name), ("", ""))


@pytest.mark.usefixtures("_installed")
def test_the_example_places_by_its_filter_and_its_score(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "8", "--memory", "64Gi")
    operating.start_replica()
    operating.kubectl("apply", "-f", str(EXAMPLE / "profile.yaml"))
    wait_until(lambda: condition(operating, "Active") == ("True", "Running"), what="Active")

    operating.create_all(a_request(f"r{n}", labels={"workload": "racks"}) for n in range(6))
    wait_until(lambda: operating.phases()["Running"] == 6, what="all run")

    statuses = [item["status"] for item in operating.items()]
    assert {status["profile"] for status in statuses} == {"racks"}
    assert all("memory_headroom" in status["explanation"] for status in statuses)
    for kind, plugin in (("filter", "rack_pace"), ("score", "memory_headroom")):
        name = "scheduler_plugin_duration_seconds_count"
        assert operating.metric("a", name, kind=kind, plugin=plugin) >= 6
    assert operating.metric("a", "cubesched_plugin_failures_total") == 0
    assert condition(operating, "RiskAccepted") == ("True", "FailOpen")
    assert condition(operating, "PluginsHealthy") == ("True", "Healthy")


@pytest.mark.usefixtures("_installed")
def test_a_profile_with_a_plugin_that_is_not_installed_keeps_the_last_set(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "8", "--memory", "64Gi")
    operating.start_replica()
    profile = yaml.safe_load((EXAMPLE / "profile.yaml").read_text())
    operating.apply(profile)
    wait_until(lambda: condition(operating, "Active") == ("True", "Running"), what="Active")
    profile["spec"]["filters"][0] |= {"name": "rack_pase"}
    profile["spec"]["scores"][0]["args"] = {"reserve": 1}
    operating.apply(profile)
    wait_until(lambda: condition(operating, "Active") == ("False", "SetRejected"), what="refused")

    missing = 'no installed package offers the python filter "rack_pase"'
    assert operating.get("sprof", "racks")["status"]["problems"] == [
        f'spec.filters[0].name: {missing}; did you mean "rack_pace"?',
        'spec.scores[0].args.reserve: unknown argument; did you mean "reserve_mb"?',
    ]
    operating.apply(a_request("r1", labels={"workload": "racks"}))
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.get("sbr", "r1")["status"]["profile"] == "racks"
    assert all(json.loads(line) for line in operating.log("a").splitlines())


@pytest.mark.usefixtures("_hanging")
def test_a_plugin_that_hangs_holds_up_its_own_requests_and_nothing_else(
    operating: Operating,
) -> None:
    operating.start_nodes(3, "--cpu", "8", "--memory", "64Gi")
    operating.start_replica()
    operating.apply(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SchedulerProfile",
            "metadata": {"name": "racks"},
            "spec": {
                "route": {"labels": {"workload": "hangs"}},
                "filters": [{"name": "hangs", "type": "python", "timeout": "50ms"}],
            },
        },
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SchedulerProfile",
            "metadata": {"name": "others"},
            "spec": {"default": True},
        },
    )
    wait_until(lambda: condition(operating, "Active") == ("True", "Running"), what="Active")

    operating.create_all(a_request(f"h{n}", labels={"workload": "hangs"}) for n in range(5))
    operating.create_all(a_request(f"r{n}", cpu="100m") for n in range(20))
    wait_until(lambda: operating.phases() == {"Running": 20, "Pending": 5}, what="others run")
    wait_until(lambda: operating.reason("h0") == "PluginFailed", what="the reason")
    wait_until(
        lambda: condition(operating, "PluginsHealthy") == ("False", "CircuitOpen"),
        what="the health",
    )
    assert operating.probe("a", "readyz")[0] == 200

    assert operating.processes.stop("replica-a")[0] == 0
