from __future__ import annotations

import subprocess
import sys

import pytest

from cubesched.cli import COMMANDS, main


def test_no_command_shows_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    answer = capsys.readouterr().out
    assert all(f"\n    {name} " in answer for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself_with_examples(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main([name, "--help"]) == 0

    answer = capsys.readouterr().out
    assert answer.startswith(f"usage: cubesched {name}")
    assert f"examples:\n  cubesched {name}" in answer


def test_an_unknown_command_is_one_line_with_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lcoal", "up"]) == 2

    error = capsys.readouterr().err
    assert error.startswith("cubesched: unknown command 'lcoal'; did you mean 'local'? Commands: ")
    assert error.count("\n") == 1


def test_a_wrong_argument_is_one_line_that_names_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["local", "status", "-o", "xml"]) == 2

    error = capsys.readouterr().err
    assert "invalid choice: 'xml'" in error
    assert error.endswith("see `cubesched local status --help`\n")
    assert error.count("\n") == 1


def test_a_part_of_an_option_is_not_taken_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drain", "n1", "--al"]) == 2

    error = capsys.readouterr().err
    assert error == ("cubesched: unrecognized arguments: --al; see `cubesched drain --help`\n")


def test_an_unknown_option_before_a_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nonsense"]) == 2

    assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0

    assert capsys.readouterr().out.startswith("cubesched ")


def test_kubectl_sees_its_plugin_under_its_own_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-cubesched"])

    assert main(["local", "--help"]) == 0

    assert capsys.readouterr().out.startswith("usage: kubectl cubesched local ")


def test_the_list_of_commands_loads_none_of_them() -> None:
    program = (
        "import sys; from cubesched.cli import main; main(['--help']);"
        "sys.exit(bool({'kopf', 'numpy', 'aiohttp', 'cryptography'} & sys.modules.keys()))"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert answer.returncode == 0, answer.stderr


def test_an_argument_too_many_names_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "--chekc"]) == 2

    assert "--chekc; see `cubesched generate --help`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [(">&-", 0, ""), (">&- 2>&-", 0, ""), ("> /dev/full", 2, "No space left on device")],
)
def test_a_closed_or_full_stdout_ends_without_a_traceback(
    redirection: str, code: int, error: str
) -> None:
    program = "import sys; from cubesched.cli import main; sys.exit(main(['plugins']))"

    answer = subprocess.run(
        ["sh", "-c", f'"$1" -c "$2" {redirection}', "sh", sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stderr.count("\n")) == (code, 1 if error else 0)
    assert error in answer.stderr
