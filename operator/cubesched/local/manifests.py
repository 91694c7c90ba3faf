"""What every cluster needs before cubesched can run in it: kinds, roles, admission rules."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cubesched.core.errors import UsageError

_INSTALLED = Path(__file__).parents[1] / "_manifests"
_CHECKOUT = Path(__file__).parents[3]


def manifest_paths() -> list[Path]:
    """Return the generated manifests in the order to apply them, from a wheel or a checkout."""
    if _INSTALLED.is_dir():
        crds, rest = _INSTALLED / "crds", _INSTALLED
    else:
        crds, rest = _CHECKOUT / "crds", _CHECKOUT / "deploy"
    return [*sorted(crds.glob("*.yaml")), rest / "rbac.yaml", rest / "admission.yaml"]


def deploy_path(name: str) -> Path:
    """Return the path of one file under `deploy/`, from a wheel or a checkout."""
    return (_INSTALLED if _INSTALLED.is_dir() else _CHECKOUT / "deploy") / name


def install_manifests(
    kubeconfig: Path | None, *, kubectl: Path | str = "kubectl", context: str | None = None
) -> None:
    """Apply all manifests; return when the server serves the kinds.

    Without `kubeconfig`, as kubectl finds it.
    """
    target = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    target += ["--context", context] if context else []
    command = [str(kubectl), *target]
    paths = manifest_paths()
    _run([*command, "apply", "--server-side", "--force-conflicts", *_files(paths)])
    crds = [path for path in paths if path.parent.name == "crds"]
    _run([*command, "wait", "--for=condition=Established", "--timeout=30s", *_files(crds)])


def _files(paths: list[Path]) -> list[str]:
    return [argument for path in paths for argument in ("-f", str(path))]


def _run(argv: list[str]) -> None:
    # A discovery cache is keyed by address: a new server on a used port would be taken for the old.
    environment = os.environ | {"KUBECACHEDIR": os.devnull}
    answer = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if answer.returncode != 0:
        raise UsageError(f"cannot install the manifests: {answer.stderr.strip()}")
