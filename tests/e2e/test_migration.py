"""What `cubesched import` writes runs on the real API server as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.operating import Operating, a_request, wait_until
from tests.unit.policy.migration.files import EVERYTHING, FACTORY


def imported(text: str, folder: Path) -> list[str]:
    """Import into the folder, and return what `kubectl apply` and `kubectl delete` take."""
    conf = folder / "conf.yaml"
    conf.write_text(text)
    command = [sys.executable, "-m", "cubesched", "import", str(conf), "-o", str(folder / "out")]
    subprocess.run(command, check=True, capture_output=True)
    return ["-f", str(folder / "out")]


def test_the_old_pipeline_and_its_profiles_place(operating: Operating, tmp_path: Path) -> None:
    files = imported(EVERYTHING, tmp_path)
    operating.start_replica()
    operating.start_nodes(3)
    try:
        operating.kubectl("apply", *files)
        names = ("sconf/default", "sprof/burst", "sprof/rest")
        operating.kubectl("wait", "--for=condition=Active", *names, "--timeout=10s")
        operating.apply(a_request("plain"))
        wait_until(lambda: operating.phase("plain") == "Running")

        assert operating.get("sbr", "plain")["status"]["profile"] == "default"
        info = "cubesched_profile_info"
        wait_until(lambda: operating.metric("a", info, profile="default", source="legacy") == 1.0)
        assert operating.metric("a", info, profile="burst", source="custom") == 1.0
        assert operating.metric("a", info, source="factory") == 0.0
    finally:
        operating.kubectl("delete", "--ignore-not-found", *files)


def test_the_factory_file_runs_under_names_that_objects_may_have(
    operating: Operating, tmp_path: Path
) -> None:
    files = imported(FACTORY, tmp_path)
    operating.start_replica()
    try:
        operating.kubectl("apply", *files)
        names = ("sprof/burst-balance", "sprof/template-reuse", "sprof/mixed-binpack")
        operating.kubectl("wait", "--for=condition=Active", *names, "--timeout=10s")
    finally:
        operating.kubectl("delete", "--ignore-not-found", *files)
