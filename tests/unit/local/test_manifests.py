from __future__ import annotations

import yaml

from cubesched.local.manifests import manifest_paths


def test_kinds_come_before_what_refers_to_them() -> None:
    names = [path.name for path in manifest_paths()]

    assert names[-2:] == ["rbac.yaml", "admission.yaml"]
    assert "sandboxrequests.yaml" in names[:-2]


def test_every_crd_is_among_them() -> None:
    documents = [
        document for path in manifest_paths() for document in yaml.safe_load_all(path.read_text())
    ]

    kinds = {
        document["spec"]["names"]["kind"]
        for document in documents
        if document["kind"] == "CustomResourceDefinition"
    }
    assert kinds == {"SchedulerProfile", "SchedulerConfig", "SandboxNode", "SandboxRequest"}
