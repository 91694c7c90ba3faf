from __future__ import annotations

from pathlib import Path

import pytest

from cubesched.agent.hostlock import only_agent
from cubesched.core.errors import UsageError


def test_a_second_agent_on_the_machine_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with only_agent(path), pytest.raises(UsageError, match="another agent"), only_agent(path):
        pass


def test_the_lock_is_free_again_after_the_first_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with only_agent(path):
        pass

    with only_agent(path):
        assert path.exists()


def test_a_lock_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no/where"), only_agent(tmp_path / "no/where"):
        pass
