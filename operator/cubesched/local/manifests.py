"""What every cluster needs before cubesched can run in it: kinds, roles, admission rules."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cubesched.core.errors import UsageError

SYSTEM_NAMESPACE = "cubesched-system"
_INSTALLED = Path(__file__).parents[1] / "_manifests"
_CHECKOUT = Path(__file__).parents[3]
_NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {SYSTEM_NAMESPACE}
"""


def manifest_paths() -> list[Path]:
    """Return the generated manifests in the order to apply them, from a wheel or a checkout."""
    if _INSTALLED.is_dir():
        crds, rest = _INSTALLED / "crds", _INSTALLED
    else:
        crds, rest = _CHECKOUT / "crds", _CHECKOUT / "deploy"
    others = [rest / "rbac.yaml", rest / "admission.yaml"]
    return [*sorted(crds.glob("*.yaml")), *(path for path in others if path.exists())]


def deploy_path(name: str) -> Path:
    """Return the path of one file under `deploy/`, from a wheel or a checkout."""
    return (_INSTALLED if _INSTALLED.is_dir() else _CHECKOUT / "deploy") / name


def install_manifests(
    kubeconfig: Path | None, *, kubectl: Path | str = "kubectl", context: str | None = None
) -> None:
    """Apply all manifests and the system namespace; return when the server serves the kinds.

    Without `kubeconfig`, as kubectl finds it.
    """
    target = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    target += ["--context", context] if context else []
    command = [str(kubectl), *target]
    paths = manifest_paths()
    apply = [*command, "apply", "--server-side", "--force-conflicts", "-f", "-"]
    _run(apply, stdin=_NAMESPACE)
    if paths:
        files = [argument for path in paths for argument in ("-f", str(path))]
        _run([*apply[:-2], *files])
    crds = [
        argument for path in paths if path.parent.name == "crds" for argument in ("-f", str(path))
    ]
    if crds:
        _run([*command, "wait", "--for=condition=Established", "--timeout=30s", *crds])


def _run(argv: list[str], *, stdin: str | None = None) -> None:
    # A discovery cache is keyed by address: a new server on a used port would be taken for the old.
    environment = os.environ | {"KUBECACHEDIR": os.devnull}
    answer = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, env=environment
    )
    if answer.returncode != 0:
        raise UsageError(f"cannot install the manifests: {answer.stderr.strip()}")
