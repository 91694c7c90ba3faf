"""Kubeconfig files: self-contained, one identity each."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from cubesched.local.pki import Credential, write_private


def write_kubeconfig(
    path: Path, *, name: str, server: str, authority: bytes, credential: Credential
) -> Path:
    """Write a kubeconfig with one cluster, user and context, all called `name`; return its path.

    JSON is YAML: every reader of kubeconfigs takes it, and nothing needs quoting rules.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": _encode(authority)},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _encode(credential.certificate),
                    "client-key-data": _encode(credential.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return write_private(path, json.dumps(content, indent=2).encode() + b"\n")


def _encode(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
