from __future__ import annotations

import pytest

from cubesched.manifests.nodes import Document, Node
from cubesched.manifests.places import place_of
from cubesched.manifests.tree import read_documents

TEXT = """\
kind: SchedulerProfile
metadata: {name: burst}
spec:
  route:
    labels:
      topology.kubernetes.io/zone: z1
      topology: z2
  filters:
  - name: a
    expr: node.creating < 8
  - name: b
    expr: |
      node.creating < 8 &&
        node.nope
  "a\\tb": 1
"""


def root() -> Node:
    (document,) = read_documents(TEXT)
    assert isinstance(document, Document)
    return document.root


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", (1, 1)),
        ("apiVersion", (1, 1)),
        ("metadata.name", (2, 12)),
        ("metadata.labels.a", (2, 1)),
        ("spec", (3, 1)),
        ("spec.order", (3, 1)),
        ("spec.route.labels.topology.kubernetes.io/zone", (6, 7)),
        ("spec.route.labels.topology", (7, 7)),
        ("spec.filters[0]", (9, 5)),
        ("spec.filters[7].name", (8, 3)),
        ("spec.filters[0].weight", (9, 5)),
        ("spec.filters[0].expr 1:6", (10, 5)),
        ("spec.filters[1].expr 2:8", (14, 5)),
        ("spec.a?b", (15, 3)),
        ("spec.filters.name", (8, 3)),
        ("spec.filtersx", (3, 1)),
        ("[0]", (1, 1)),
    ],
)
def test_a_path_leads_to_its_field_or_to_the_block_that_lacks_it(
    path: str, place: tuple[int, int]
) -> None:
    assert place_of(root(), path) == place
