"""A replica without its rights waits, names the missing ones, and starts when they come."""

from __future__ import annotations

from tests.e2e.operating import Operating, wait_until

BINDING = ("clusterrolebinding", "cubesched-operator")


def test_missing_rights_are_named_and_waited_for(operating: Operating) -> None:
    role = operating.kubectl("get", *BINDING, "-o", "yaml").stdout
    operating.kubectl("delete", *BINDING)
    try:
        operating.launch_replica("a")
        wait_until(
            lambda: "update sandboxrequests/status" in operating.probe("a", "readyz")[1],
            what="the missing right is named",
        )
        assert operating.probe("a", "livez")[0] == 200
    finally:
        operating.kubectl("create", "-f", "-", input=role)

    operating.wait_ready("a")
