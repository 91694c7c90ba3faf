from __future__ import annotations

import base64
from pathlib import Path

import yaml

from cubesched.local.kubeconfigs import write_kubeconfig
from cubesched.local.pki import Credential


def test_a_kubeconfig_holds_all_it_needs_under_one_name(tmp_path: Path) -> None:
    path = write_kubeconfig(
        tmp_path / "kubeconfig",
        name="mine",
        server="https://127.0.0.1:1",
        authority=b"the authority",
        credential=Credential(certificate=b"the certificate", key=b"the key"),
    )

    content = yaml.safe_load(path.read_text())
    assert content["current-context"] == "mine"
    assert content["contexts"] == [{"name": "mine", "context": {"cluster": "mine", "user": "mine"}}]
    assert content["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    user = content["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == b"the certificate"
    assert base64.b64decode(user["client-key-data"]) == b"the key"
