"""What kubectl shows of a node: the columns, the conditions, and how few writes that takes."""

from __future__ import annotations

import time
from typing import Any

from redis import Redis
from tests.e2e.operating import Operating, a_request, wait_until

from cubesched.adapters.nodemetrics.keys import CUBEMASTER_PREFIX

COLUMNS = ["NAME", "READY", "SCHEDULABLE", "CPU%", "MEM%", "SANDBOXES", "CREATING"]
COLUMNS += ["METRICS-AGE", "AGE"]


def rows(operating: Operating) -> dict[str, list[str]]:
    header, *lines = operating.kubectl("get", "sandboxnodes").stdout.splitlines()
    assert header.split() == COLUMNS
    return {line.split()[0]: line.split()[1:] for line in lines}


def condition(operating: Operating, node: str, kind: str) -> dict[str, Any]:
    conditions = operating.get("sbn", node).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def has_reason(operating: Operating, node: str, kind: str, reason: str) -> bool:
    return condition(operating, node, kind).get("reason") == reason


def capacity(operating: Operating, node: str) -> tuple[str, str]:
    told = operating.get("sbn", node)["status"]["effectiveCapacity"]
    return told["cpu"], told["memory"]


def status_writes(operating: Operating) -> float:
    """Return how many statuses of nodes were applied since the API server started."""
    lines = operating.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith("apiserver_request_total{")
        and 'resource="sandboxnodes"' in line
        and 'subresource="status"' in line
        and 'verb="APPLY"' in line
    )


def a_config(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SchedulerConfig",
        "metadata": {"name": "default"},
        "spec": spec,
    }


def test_a_node_is_shown_from_its_first_report_to_its_silence(operating: Operating) -> None:
    operating.apply(a_config(guards={"metricsMaxAge": "5s"}, overcommit={"cpu": 2}))
    operating.start_replica()
    operating.start_nodes(2, "--cpu", "4", "--memory", "8Gi")
    operating.apply(a_request("r1", cpu="2", memory="2Gi"))
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    node = operating.get("sbr", "r1")["status"]["nodeName"]

    wait_until(
        lambda: rows(operating)[node][:6] == ["True", "True", "25", "25", "1", "0"],
        what="the columns of the node that runs r1",
    )
    assert capacity(operating, node) == ("8", "8Gi")
    assert has_reason(operating, node, "MetricsComplete", "Complete")

    operating.apply(a_config(guards={"metricsMaxAge": "5s"}, overcommit={"cpu": 1}))
    wait_until(lambda: capacity(operating, node) == ("4", "8Gi"), what="the lower limit")
    operating.kubectl(
        "patch", "sbn", node, "--type=merge", "-p", '{"spec":{"capacity":{"cpu":"1"}}}'
    )
    wait_until(
        lambda: has_reason(operating, node, "Overcommitted", "CapacityShrunk"),
        what="over-committed",
    )
    message = condition(operating, node, "Overcommitted")["message"]
    assert message == "Confirmed requests take cpu 2 of 1; nothing new is placed here."
    assert operating.metric("a", "cubesched_overcommitted_nodes") == 1

    operating.processes.kill("nodes-node-")
    wait_until(lambda: rows(operating)[node][1] == "StaleMetrics", what="stale")
    assert has_reason(operating, node, "MetricsComplete", "Stale")


def test_an_idle_fleet_is_hardly_written(operating: Operating) -> None:
    operating.start_replica()
    operating.start_nodes(10)
    wait_until(
        lambda: all(row[1] == "True" for row in rows(operating).values()), what="all schedulable"
    )
    time.sleep(6)  # what came of the last changes is written by then

    before = status_writes(operating)
    time.sleep(20)

    assert status_writes(operating) - before <= 10


def test_a_fleet_that_reports_as_cubemasters_nodes_do_takes_requests(operating: Operating) -> None:
    operating.launch_replica("a", "--node-metrics-layout", "cubemaster")
    operating.wait_ready("a")
    operating.apply(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SandboxNode",
            "metadata": {"name": "ins-1"},
            "spec": {"capacity": {"cpu": "4", "memory": "8Gi"}},
        }
    )
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Told",'
    ready += '"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    operating.kubectl("patch", "sbn", "ins-1", "--subresource=status", "--type=merge", "-p", ready)
    redis = Redis.from_url(operating.cluster.redis_url)
    operating.apply(a_request("fits", cpu="1"), a_request("too-much", cpu="2"))

    def told() -> bool:
        redis.hset(
            f"{CUBEMASTER_PREFIX}ins-1",
            mapping={"update_at": str(time.time()), "quota_cpu_usage": "2500", "mvm_num": "3"},
        )
        return operating.phase("fits") == "Bound" and operating.reason("too-much") != ""

    wait_until(told, what="one is bound, the other waits", every=0.5)
    redis.close()

    assert operating.reason("too-much") == "Unschedulable"
    wait_until(
        lambda: has_reason(operating, "ins-1", "MetricsComplete", "FieldsMissing"),
        what="the fields that are missing",
    )
    message = condition(operating, "ins-1", "MetricsComplete")["message"]
    assert "quota_mem_mb_usage, cpu_util, cpu_load_usage" in message
