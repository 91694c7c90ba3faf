from __future__ import annotations

from cubesched.relay.window import LINE_OVERHEAD_BYTES, Told, Window

LINE = b"x" * 50
COST = len(LINE) + LINE_OVERHEAD_BYTES


def a_window(lines: int) -> Window:
    window = Window(most_bytes=lines * COST)
    window.restart(10)
    return window


def test_each_node_gets_its_own_lines_after_a_version_in_order() -> None:
    window = a_window(10)
    for version, node in ((11, "a"), (12, "b"), (13, "a"), (13, "b"), (14, "a")):
        window.add(Told(version, node, b"%d" % version))

    assert window.since(11, node="a") == [b"13", b"14"]
    assert window.since(10, node="b") == [b"12", b"13"]
    assert window.since(14, node="a") == []


def test_the_oldest_go_first_and_the_floor_rises_with_them() -> None:
    window = a_window(3)
    for version in range(11, 16):
        window.add(Told(version, "a", LINE))

    assert window.floor == 12
    assert window.size_bytes == 3 * COST
    assert len(window.since(12, node="a")) == 3


def test_a_line_larger_than_the_window_is_not_kept() -> None:
    window = a_window(1)
    window.add(Told(11, "a", b"x" * 5000))

    assert (window.floor, window.size_bytes) == (11, 0)


def test_a_new_list_begins_with_nothing() -> None:
    window = a_window(3)
    window.add(Told(11, "a", LINE))
    window.restart(5)

    assert (window.floor, window.size_bytes) == (5, 0)
    assert window.since(5, node="a") == []
