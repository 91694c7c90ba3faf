"""What every object has beside its spec: apiVersion, kind, metadata; told as the server would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cubesched.api import API_VERSION, REQUESTS
from cubesched.api.v1alpha1.values import LABEL_KEY, LABEL_KEY_MAX, LABEL_VALUE
from cubesched.manifests.objects import Manifest
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.objects import ProblemList

FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
MAX_NAME: Final = 253
MAX_NAMESPACE: Final = 63
MAX_LABEL_VALUE: Final = 63
_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")
_NAMESPACE: Final = re.compile(_PART)


def check_identity(manifest: Manifest, problems: ProblemList) -> None:
    """Note everything that is wrong outside the spec."""
    body = manifest.root.value
    for field in body:
        if field not in FIELDS:
            problems.add(field, f"unknown field; {did_you_mean(field, FIELDS)}")
    version = body.get("apiVersion")
    if version is None:
        problems.add("apiVersion", f'missing; write "{API_VERSION}"')
    elif version != API_VERSION:
        problems.add("apiVersion", f'must be "{API_VERSION}", not {_shown(version)}')
    if not isinstance(body.get("metadata", {}), Mapping):
        problems.add("metadata", "must be an object")
        return
    _check_name(manifest, problems)
    _check_namespace(manifest.metadata.get("namespace"), problems)
    _check_labels(manifest.metadata.get("labels"), problems)


def _check_name(manifest: Manifest, problems: ProblemList) -> None:
    name, prefix = manifest.metadata.get("name"), manifest.metadata.get("generateName")
    if name is None or name == "":
        if manifest.kind == REQUESTS.kind and isinstance(prefix, str) and prefix:
            return
        problems.add("metadata.name", "missing: every object needs one")
    elif not isinstance(name, str):
        problems.add("metadata.name", f'must be text: quote it, as in "{_shown(name)}"')
    elif len(name) > MAX_NAME or not _NAME.fullmatch(name):
        problems.add(
            "metadata.name",
            f"{_shown(name)} is no object name: use at most {MAX_NAME} of a-z, 0-9, '-' and '.',"
            " each part between dots beginning and ending with a letter or digit",
        )


def _check_namespace(namespace: Any, problems: ProblemList) -> None:
    if namespace is None or namespace == "":
        return
    is_text = isinstance(namespace, str) and len(namespace) <= MAX_NAMESPACE
    if not (is_text and _NAMESPACE.fullmatch(namespace)):
        problems.add(
            "metadata.namespace",
            f"{_shown(namespace)} is no namespace: use at most {MAX_NAMESPACE} of a-z, 0-9 and '-',"
            " beginning and ending with a letter or digit",
        )


def _check_labels(labels: Any, problems: ProblemList) -> None:
    if labels is None:
        return
    if not isinstance(labels, Mapping):
        problems.add("metadata.labels", "must be an object")
        return
    for key, value in labels.items():
        path = f"metadata.labels.{key}"
        if len(key) > LABEL_KEY_MAX or not re.fullmatch(LABEL_KEY, key):
            problems.add(path, "is no label key, as in workload or topology.kubernetes.io/zone")
        if not isinstance(value, str):
            problems.add(path, f'must be text: quote it, as in "{_shown(value)}"')
        elif len(value) > MAX_LABEL_VALUE or not re.fullmatch(LABEL_VALUE, value):
            problems.add(
                path, f"{_shown(value)} is no label value: at most 63 of A-Z, a-z, 0-9, -_."
            )


def _shown(value: Any) -> str:
    """Write a value as people would, cut where it is long."""
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"
    )
    if isinstance(value, str):
        text = f'"{text}"'
    return text if len(text) <= 60 else f"{text[:59]}…"
