from __future__ import annotations

import pytest

from cubesched.cli import main


@pytest.mark.parametrize(
    "variable",
    ["CUBESCHED_LOG_LEVEL", "CUBESCHED_LOG_STYLE", "CUBESCHED_NODE_METRICS_LAYOUT"],
)
def test_the_environment_may_say_no_more_than_a_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    monkeypatch.setenv(variable, "loud")

    assert main(["run"]) == 2

    error = capsys.readouterr().err
    assert error.startswith(f"cubesched: {variable} is 'loud'; allowed are ")
    assert error.count("\n") == 1


def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--http-port", "65536"]) == 2

    assert "--http-port: '65536' is not a whole number from 0 to 65535" in capsys.readouterr().err
