"""Builds the servers from Go modules, once a version: the result stays in the user's cache.

`modules/` holds one go.mod and go.sum for each product; they pin every source by hash.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cubesched.core.errors import CubeschedError
from cubesched.local.locking import locked
from cubesched.local.paths import cache_root
from cubesched.local.toolchain import Report, find_go, go_environment

REPORT_EVERY_SECONDS = 10.0
_MODULES = Path(__file__).with_name("modules")
_ERROR_LINES = 15


@dataclass(frozen=True, slots=True)
class Product:
    """What one of our go.mod files can build."""

    module: str
    version: str
    packages: dict[str, str]
    """Binary name to Go package."""
    usual_duration: str
    ldflags: str = "-s -w"

    @property
    def directory(self) -> Path:
        """Where go.mod and go.sum lie."""
        return _MODULES / self.module


# Without the version flags kubectl and helm refuse the server's version.
KUBERNETES = Product(
    module="kubernetes",
    version="v1.36.0",
    packages={
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kubectl")
    },
    usual_duration="5-8 min on two cores",
    ldflags="-s -w"
    " -X k8s.io/component-base/version.gitVersion=v1.36.0"
    " -X k8s.io/component-base/version.gitMajor=1"
    " -X k8s.io/component-base/version.gitMinor=36",
)
ETCD = Product(
    module="etcd",
    version="v3.6.8",
    packages={"etcd": "go.etcd.io/etcd/server/v3"},
    usual_duration="1 min on two cores",
)


class BuildFailed(CubeschedError):
    """The Go compiler refused; the message ends with what it said."""


def ensure(product: Product, names: list[str], *, report: Report) -> dict[str, Path]:
    """Return the path of each named binary, building those that the cache lacks."""
    directory = cache_root() / "bin" / f"{product.module}-{product.version}-{cache_key(product)}"
    paths = {name: directory / name for name in names}
    lock = directory.with_name(f"{directory.name}.lock")
    with locked(lock, on_wait=lambda: report(f"{product.module}: another process builds it")):
        missing = [name for name in names if not paths[name].exists()]
        if missing:
            _build(product, missing, directory=directory, report=report)
    return paths


def cache_key(product: Product) -> str:
    """Hash everything that decides what comes out: sources, flags and platform."""
    parts = [
        (product.directory / "go.mod").read_bytes(),
        (product.directory / "go.sum").read_bytes(),
        product.ldflags.encode(),
        f"{platform.system()} {platform.machine()}".encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _build(product: Product, names: list[str], *, directory: Path, report: Report) -> None:
    go = find_go(product.directory, report=report)
    directory.mkdir(parents=True, exist_ok=True)
    staging = directory / f".building-{os.getpid()}"
    staging.mkdir()
    argv = [str(go), "build", "-v", "-trimpath", "-ldflags", product.ldflags, "-o", f"{staging}/"]
    argv += [product.packages[name] for name in names]
    title = f"{', '.join(names)} {product.version}"
    report(f"building {title} from source, once: usually {product.usual_duration}")
    try:
        _run(argv, cwd=product.directory, title=title, report=report)
        for name in names:
            _built(staging, product.packages[name]).replace(directory / name)
    finally:
        _remove(staging)


def _built(staging: Path, package: str) -> Path:
    """Return what `go build` made of a package: it names it after the last part but a version."""
    parts = package.split("/")
    return staging / (parts[-2] if parts[-1].startswith("v") else parts[-1])


def _remove(staging: Path) -> None:
    for leftover in staging.iterdir():
        leftover.unlink()
    staging.rmdir()


@dataclass(slots=True)
class _Progress:
    """What `go build -v` has printed so far: one line a module fetched or a package compiled."""

    fetched: int = 0
    compiled: int = 0
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_ERROR_LINES))

    def read(self, line: str) -> None:
        if line.startswith("go: downloading "):
            self.fetched += 1
        elif line and " " not in line:
            self.compiled += 1
        else:
            self.last_lines.append(line)


def _run(argv: list[str], *, cwd: Path, title: str, report: Report) -> None:
    progress = _Progress()
    started = time.monotonic()
    with _telling(progress, title=title, started=started, report=report):
        code = _follow(argv, cwd=cwd, progress=progress)
    if code != 0:
        raise BuildFailed(f"cannot build {title}: " + "\n".join(progress.last_lines))
    report(f"built {title} in {_clock(started)}")


def _follow(argv: list[str], *, cwd: Path, progress: _Progress) -> int:
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=go_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                progress.read(line.rstrip())
            return process.wait()
        finally:
            process.kill()  # when interrupted; else it has ended


@contextmanager
def _telling(progress: _Progress, *, title: str, started: float, report: Report) -> Iterator[None]:
    """Report progress every few seconds from a thread, while the caller reads the compiler."""
    done = threading.Event()
    arguments = (progress, title, started, done, report)
    thread = threading.Thread(target=_tell, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tell(
    progress: _Progress, title: str, started: float, done: threading.Event, report: Report
) -> None:
    while not done.wait(REPORT_EVERY_SECONDS):
        counts = f"{progress.fetched} modules fetched, {progress.compiled} packages compiled"
        report(f"  {title}: {_clock(started)}, {counts}")


def _clock(started: float) -> str:
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    return f"{minutes}m{seconds:02d}s"
