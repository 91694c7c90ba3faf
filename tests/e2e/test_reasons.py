"""Every way of waiting has its own reason, and it changes when the cause does."""

from __future__ import annotations

from tests.e2e.operating import Operating, a_request, wait_until

PROFILE = """
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {name: only-batch}
spec:
  route: {labels: {workload: batch}}
"""


def _waits_for(operating: Operating, name: str, reason: str) -> None:
    wait_until(
        lambda: operating.reason(name) == reason,
        what=f"{name} waits for {reason}, not {operating.reason(name)!r}",
    )


def test_without_nodes_the_reason_is_no_nodes_and_a_node_that_joins_helps(
    operating: Operating,
) -> None:
    operating.start_replica()
    operating.apply(a_request("r1"))
    _waits_for(operating, "r1", "NoNodes")

    operating.start_nodes(1)

    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.metric("a", "cubesched_flush_rescues_total") == 0


def test_nodes_that_fell_silent_are_stale(operating: Operating) -> None:
    operating.apply(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SchedulerConfig",
            "metadata": {"name": "default"},
            "spec": {"guards": {"metricsMaxAge": "5s"}},
        }
    )
    operating.start_nodes(2)
    operating.start_replica()
    operating.processes.kill("nodes-node-")
    wait_until(
        lambda: operating.metric("a", "cubesched_nodes", state="stale") == 2, what="both stale"
    )

    operating.apply(a_request("r1"))

    _waits_for(operating, "r1", "StaleMetrics")
    message = operating.get("sbr", "r1")["status"]["conditions"][0]["message"]
    assert "2 stale metrics" in message


def test_too_big_for_any_node_never_fits_and_a_bigger_node_helps(operating: Operating) -> None:
    operating.start_nodes(2, "--cpu", "4", "--memory", "8Gi")
    operating.start_replica()
    operating.apply(a_request("big", cpu="6"), a_request("r2", memory="6Gi"))
    _waits_for(operating, "big", "NeverFits")
    explanation = operating.get("sbr", "big")["status"]["explanation"]
    assert "needs 6000m" in explanation

    operating.start_nodes(1, "--cpu", "8", "--memory", "8Gi", prefix="large-")

    wait_until(lambda: operating.phase("big") == "Running", what="big runs")
    assert operating.get("sbr", "big")["status"]["nodeName"] == "large-000"
    assert operating.phase("r2") == "Running"


def test_counts_name_what_rejected_each_node(operating: Operating) -> None:
    operating.start_nodes(2, "--cpu", "4", "--memory", "8Gi", "--zones", "z1")
    operating.start_nodes(1, "--cpu", "8", "--memory", "32Gi", "--zones", "z2", prefix="zone2-")
    operating.start_replica()
    zone = {"topology.kubernetes.io/zone": "z1"}

    operating.apply(a_request("r1", cpu="5", memory="1Gi", nodeSelector=zone))

    _waits_for(operating, "r1", "Unschedulable")
    message = operating.get("sbr", "r1")["status"]["conditions"][0]["message"]
    assert message.startswith("0/3 nodes are available: 2 insufficient cpu, 1 ")


def test_no_matching_profile_has_its_own_reason_and_the_label_helps(operating: Operating) -> None:
    operating.start_nodes(1)
    operating.kubectl("apply", "-f", "-", input=PROFILE)
    operating.start_replica()
    operating.apply(a_request("r1"))
    _waits_for(operating, "r1", "NoProfile")

    operating.kubectl("label", "sbr", "r1", "workload=batch")

    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.get("sbr", "r1")["status"]["profile"] == "only-batch"


def test_after_a_restart_with_an_invalid_set_nothing_is_placed(operating: Operating) -> None:
    broken = PROFILE + "  scores: [{name: real_time_weighted_averag}]\n"
    operating.kubectl("apply", "-f", "-", input=broken)
    operating.start_nodes(1)
    operating.launch_replica()
    operating.apply(a_request("r1", labels={"workload": "batch"}))
    _waits_for(operating, "r1", "NoActivePolicy")
    assert operating.probe("a", "readyz")[0] == 503

    operating.kubectl("apply", "-f", "-", input=PROFILE)

    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.probe("a", "readyz")[0] == 200
