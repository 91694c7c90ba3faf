"""Every manifest under deploy/examples applies as it stands, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.operating import Operating

EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_applies(path: Path, operating: Operating) -> None:
    answer = operating.kubectl("apply", "-f", str(path))

    assert "created" in answer.stdout
    assert answer.stderr == ""


def test_there_are_examples_of_every_kind() -> None:
    text = "\n".join(path.read_text() for path in EXAMPLES)

    for kind in ("SchedulerProfile", "SchedulerConfig", "SandboxNode", "SandboxRequest"):
        assert f"kind: {kind}\n" in text
