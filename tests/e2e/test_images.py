"""Nodes say which images they store, and requests go there when the score tree says so."""

from __future__ import annotations

from typing import Any

from tests.e2e.operating import Operating, a_request, wait_until

GIB = 1 << 30
HEAD = {"apiVersion": "cubesched.io/v1alpha1"}
BY_IMAGES = {
    **HEAD,
    "kind": "SchedulerProfile",
    "metadata": {"name": "by-images"},
    "spec": {
        "default": True,
        "scores": [{"name": "image_score"}],
        "selection": {"method": "highest"},
    },
}


def a_config(**score: Any) -> dict[str, Any]:
    spec = {"score": score}
    return {**HEAD, "kind": "SchedulerConfig", "metadata": {"name": "default"}, "spec": spec}


def test_requests_go_where_their_images_are_once_the_tree_rates_by_them(
    operating: Operating,
) -> None:
    operating.start_nodes(3, prefix="bare-")
    operating.start_nodes(1, "--images", "app:1=40Gi", "--image-share", "1", prefix="with-")
    tree = {"plugins": {"image_score": {"factors": ["image_id"]}}}
    operating.apply(BY_IMAGES, a_config(**tree))
    operating.start_replica()
    assert operating.get("sbn", "with-000")["status"]["images"] == [
        {"name": "app:1", "sizeBytes": 40 * GIB}
    ]

    operating.create_all(a_request(f"r{n}", images=["app:1"]) for n in range(6))
    wait_until(lambda: operating.phases()["Running"] == 6, what="all run")

    assert {item["status"]["nodeName"] for item in operating.items()} == {"with-000"}
    # 40960 MiB on one node of four: (10240 - 23) / (80000 - 23) of 100.
    assert {item["status"]["score"] for item in operating.items()} == {"12.77"}


def test_a_wrong_name_in_the_tree_keeps_the_set_from_running_and_is_told(
    operating: Operating,
) -> None:
    operating.start_replica()
    operating.apply(a_config(resourceWeights={"cpu_utl": 1}))

    def problems() -> list[str]:
        found: list[str] = operating.get("sconf", "default").get("status", {}).get("problems", [])
        return found

    wait_until(problems, what="the problem shows")

    assert problems() == [
        'spec.score.resourceWeights.cpu_utl: unknown factor "cpu_utl"; did you mean "cpu_util"?'
    ]
    operating.apply(a_config(resourceWeights={"cpu_util": 2}))
    wait_until(lambda: not problems(), what="the mended one runs")
