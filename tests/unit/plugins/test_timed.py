from __future__ import annotations

from collections.abc import Callable

from tests.unit.builders import a_node, a_request, a_snapshot

from cubesched.core.cycle import decide
from cubesched.plugins.timed import Record, timed
from cubesched.policy.compiler import compile_set


def test_every_plugin_of_a_decision_is_timed_under_its_profile_and_kind() -> None:
    policy = compile_set([], None).policy
    assert policy is not None
    times: dict[tuple[str, str, str], list[float]] = {}
    ticks = iter(range(1000))

    def recorder(profile: str, kind: str, plugin: str) -> Record:
        return times.setdefault((profile, kind, plugin), []).append

    clock: Callable[[], float] = lambda: float(next(ticks))  # noqa: E731
    plain = policy.profiles[-1].pipeline
    pipeline = timed(plain, recorder=recorder, clock=clock)
    fleet, request = a_snapshot(nodes=[a_node("n1"), a_node("n2")]), a_request()

    decision = decide(fleet, request, pipeline)

    assert decision == decide(fleet, request, plain)
    assert times["mixed_binpack", "guard", "cpu"] == [1.0]
    assert {kind for _, kind, _ in times} == {"guard", "constraint", "score"}
    assert all(len(seen) == 1 for seen in times.values())
