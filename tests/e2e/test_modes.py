"""Who confirms, on the real server: agents, nobody, and one after the other while requests come."""

from __future__ import annotations

from collections import Counter

from tests.e2e.operating import Operating, a_request, wait_until

NODES = 12


def ask_for(operating: Operating, mode: str) -> None:
    operating.apply(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SchedulerConfig",
            "metadata": {"name": "default"},
            "spec": {"confirmation": mode},
        }
    )


def told(operating: Operating) -> str:
    """Return what the running SchedulerConfig says of itself."""
    conditions = operating.get("sconf", "default").get("status", {}).get("conditions", ())
    return next((str(c["message"]) for c in conditions if c["type"] == "Active"), "")


def confirmed_by(operating: Operating, prefix: str) -> Counter[str]:
    return Counter(
        item["status"]["reservation"].get("confirmation", "operator")
        for item in operating.items()
        if item["metadata"]["name"].startswith(prefix) and "reservation" in item["status"]
    )


def both_say(operating: Operating, text: str) -> bool:
    """Tell whether the last that each replica said of its mode is this."""
    lines = [
        [line for line in operating.log(name).splitlines() if "cubesched.scheduling.modes" in line]
        for name in ("a", "b")
    ]
    return all(said and text in said[-1] for said in lines)


def two_replicas(operating: Operating, *flags: str) -> None:
    operating.start_nodes(NODES, "--cpu", "16", "--memory", "64Gi", *flags)
    operating.start_auditor()
    for name in ("a", "b"):
        operating.launch_replica(name)
    for name in ("a", "b"):
        operating.wait_ready(name)


def test_agents_confirm_a_burst_without_over_committing_a_node(operating: Operating) -> None:
    ask_for(operating, "agent")
    two_replicas(operating)

    # 192 cpus for 220 requests of one.
    operating.create_all(a_request(f"r{n:03}") for n in range(220))
    wait_until(
        lambda: operating.phases() == Counter(Running=192, Pending=28),
        seconds=120,
        what="the fleet is full",
    )

    assert confirmed_by(operating, "r") == Counter(agent=192)
    placed = next(item for item in operating.items() if item["status"]["phase"] == "Running")
    conditions = {c["type"]: (c["status"], c["reason"]) for c in placed["status"]["conditions"]}
    assert conditions["Scheduled"] == ("True", "Bound")
    assert conditions["Ready"] == ("True", "Running")
    summary = operating.audit()
    assert (summary["violations"], summary["over_committed_nodes"]) == (0, 0)
    assert summary["ran_twice"] == 0
    assert summary["starts"] >= 192


def test_the_mode_can_change_while_requests_come(operating: Operating) -> None:
    ask_for(operating, "operator")
    two_replicas(operating)

    for mode in ("operator", "agent", "none"):
        ask_for(operating, mode)
        # The first ones meet replicas that do not know of it yet, or wait for each other.
        operating.create_all(a_request(f"{mode}-early-{n:02}") for n in range(20))
        if mode == "none":
            wait_until(lambda: both_say(operating, "bound directly:"), what="both bind directly")
            wait_until(lambda: "bound directly:" in told(operating), what="the config says so")
        else:
            wait_until(lambda: "Runs in revision" in told(operating), what="the config runs")
            wait_until(lambda: operating.phases()["Running"] >= 20, what="the early ones run")
        operating.create_all(a_request(f"{mode}-late-{n:02}") for n in range(20))
        wait_until(
            lambda: operating.phases() == Counter(Running=len(operating.items())),
            seconds=60,
            what=f"all run under {mode}",
        )
    assert confirmed_by(operating, "operator-late") == Counter(operator=20)
    assert confirmed_by(operating, "agent-late")["agent"] > 0
    assert confirmed_by(operating, "none-late") == Counter(none=20)

    ask_for(operating, "operator")
    wait_until(lambda: both_say(operating, "are left:"), what="both have stopped")
    wait_until(lambda: "are left:" in told(operating), what="the config says so")
    operating.create_all(a_request(f"again-{n:02}") for n in range(20))
    wait_until(lambda: operating.phases() == Counter(Running=140), seconds=60, what="all run")
    assert confirmed_by(operating, "again") == Counter(operator=20)
    left = confirmed_by(operating, "")["none"]
    for name in ("a", "b"):
        assert operating.metric(name, "cubesched_directly_bound_requests") == left >= 20

    direct = [
        item["metadata"]["name"]
        for item in operating.items()
        if item["status"]["reservation"].get("confirmation") == "none"
    ]
    operating.kubectl("delete", "sbr", *direct)
    wait_until(lambda: "left" not in told(operating), what="the guarantee holds again")
    wait_until(lambda: both_say(operating, "every binding is confirmed"), what="both say so")
    for name in ("a", "b"):
        assert operating.metric(name, "cubesched_directly_bound_requests") == 0
    summary = operating.audit()
    assert (summary["violations"], summary["over_committed_nodes"]) == (0, 0)
    assert summary["directly_bound"] == left


def test_a_dead_agent_holds_no_reservation_for_ever(operating: Operating) -> None:
    ask_for(operating, "agent")
    operating.kubectl(
        "patch", "sconf", "default", "--type=merge", "-p", '{"spec": {"startDeadline": "4s"}}'
    )
    operating.start_nodes(1, "--cpu", "16", "--memory", "64Gi", prefix="dead-")
    operating.start_replica("a")
    operating.create_all([a_request("before")])
    wait_until(lambda: operating.phase("before") == "Running", what="the node is in use")
    operating.processes.kill("nodes-dead-")  # that it reports no more takes a while to show
    operating.create_all([a_request("r")])
    wait_until(lambda: operating.phase("r") == "Reserved", what="reserved on the dead node")

    operating.start_nodes(1, "--cpu", "16", "--memory", "64Gi", prefix="live-")
    operating.kubectl("patch", "sbn", "dead-000", "--type=merge", "-p",
                      '{"spec": {"unschedulable": true}}')  # fmt: skip
    wait_until(lambda: operating.phase("r") == "Running", seconds=40, what="it runs elsewhere")
    assert operating.get("sbr", "r")["status"]["nodeName"] == "live-000"
