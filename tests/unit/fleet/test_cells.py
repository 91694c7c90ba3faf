"""One row written as numbers equals the same row derived as columns."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import UNKNOWN, NodeFacts, a_node, a_snapshot

from cubesched.core.derived import Derived
from cubesched.core.snapshot import NO_LIMIT, Safety, Snapshot
from cubesched.fleet.cells import Cells
from cubesched.fleet.ledger import Usage
from cubesched.fleet.reported import Reported

sizes = st.one_of(st.integers(0, 8), st.integers(0, 1 << 45), st.sampled_from([NO_LIMIT]))
numbers = st.integers(0, 4)
percents = st.sampled_from([UNKNOWN, 0.0, 79.9, 80.0])
nodes = st.builds(
    a_node,
    cpu_limit_millis=sizes,
    memory_limit_bytes=sizes,
    disk_limit_bytes=sizes,
    sandbox_limit=numbers,
    create_limit=numbers,
    memory_reserved_bytes=sizes,
    cpu_load=st.sampled_from([UNKNOWN, 1.0, 65.0]),
    cpu_util_percent=percents,
    data_disk_percent=percents,
    memory_really_used_bytes=st.sampled_from([UNKNOWN, 0.0, float(1 << 36)]),
    safety=st.sampled_from([Safety.OK, Safety.OK, Safety.STALE]),
)
usages = st.builds(Usage, sizes, sizes, sizes, numbers, numbers)


def a_report(node: Snapshot, told: int, foreign: int, allocated: int) -> Reported:
    reported = Reported.empty(len(node))
    reported.sandboxes[:] = told
    reported.foreign_cpu_millis[:] = reported.foreign_memory_bytes[:] = foreign
    reported.allocated_cpu_millis[:] = reported.allocated_memory_bytes[:] = allocated
    return reported


@given(nodes, usages, usages, st.integers(-1, 4), st.integers(0, 1 << 40), st.integers(-1, 1 << 46))
def test_a_written_row_equals_the_derived_one(
    node: NodeFacts, used: Usage, plan: Usage, told: int, foreign: int, allocated: int
) -> None:
    node = replace(node, name="node", creating_reported=told)
    fleet = a_snapshot([a_node("before"), node, a_node("zone")])
    reported = a_report(fleet, told, foreign, allocated)
    cells = Cells(fleet, reported)

    cells.write(1, used, plan)

    assert fleet.sandboxes.tolist() == [0, max(told, used.sandboxes + plan.sandboxes), 0]
    assert fleet.creating.tolist() == [0, max(told, used.creating + plan.creating), 0]
    for total, ledger, counted, planned in (
        (fleet.cpu_used_millis, reported.ledger_cpu_millis, used.cpu_millis, plan.cpu_millis),
        (fleet.memory_used_bytes, reported.ledger_memory_bytes, used.memory_bytes,
         plan.memory_bytes),
    ):  # fmt: skip
        assert ledger.tolist() == [0, min(NO_LIMIT, counted), 0]
        most = max(min(NO_LIMIT, counted), allocated)
        assert total.tolist() == [0, min(NO_LIMIT, most + planned + foreign), 0]
    anew = replace(fleet).derived
    for column in fields(Derived):
        np.testing.assert_array_equal(
            getattr(fleet.derived, column.name), getattr(anew, column.name), err_msg=column.name
        )
