"""CubeMaster's hashes: every field optional, garbage unknown and counted, stamps in any form."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest
from tests.unit.fleet.objects import hashes

from cubesched.fleet.cubemaster_layout import FIELDS, decode_hashes, stamp_ms
from cubesched.fleet.unreported import missing_parts, parts_in

STAMP = "2026-11-30T10:00:00Z"
STAMP_MS = 1_796_032_800_000
MIB = 1 << 20
WHOLE = {
    "ins_id": "n1",
    "update_at": STAMP,
    "quota_cpu_usage": "12000",
    "quota_mem_mb_usage": "2048",
    "cpu_util": "12.5",
    "cpu_load_usage": "3.25",
    "mem_load_mb_usage": "1024",
    "data_disk_usage_per": "33",
    "storage_disk_usage_per": "0",
    "sys_disk_usage_per": "45.5",
    "mvm_num": "12",
    "realtime_create_num": "1",
}


def test_a_whole_hash_is_read_in_our_units() -> None:
    decoded = hashes({"n1": WHOLE})

    assert decoded.names == ["n1"]
    assert decoded.problems == {}
    assert dict(zip(decoded.table.dtype.names or (), decoded.table[0].tolist(), strict=True)) == {
        "stamp_ms": STAMP_MS,
        "allocated_cpu_millis": 12_000,
        "allocated_memory_bytes": 2048 * MIB,
        "memory_used_bytes": 1024 * MIB,
        "sandboxes": 12,
        "creating": 1,
        "cpu_util_percent": 12.5,
        "cpu_load": 3.25,
        "data_disk_percent": 33.0,
        "storage_disk_percent": 0.0,
        "system_disk_percent": 45.5,
    }


def test_a_fraction_of_use_rounds_up() -> None:
    decoded = hashes({"n1": WHOLE | {"quota_cpu_usage": "0.25", "quota_mem_mb_usage": "1.5"}})

    assert decoded.table["allocated_cpu_millis"].tolist() == [1]
    assert decoded.table["allocated_memory_bytes"].tolist() == [MIB + MIB // 2]


def test_a_field_that_was_never_sent_is_unknown_and_no_problem() -> None:
    decoded = hashes({"n1": {"update_at": STAMP, "mvm_num": "0"}, "n2": WHOLE | {"ins_id": "n2"}})

    first = decoded.table[0]
    assert first["sandboxes"] == 0
    assert first["allocated_cpu_millis"] == first["creating"] == first["memory_used_bytes"] == -1
    assert isnan(first["cpu_util_percent"])
    assert decoded.problems == {}
    assert [part.field for part in parts_in(int(missing_parts(decoded.table)[0]))] == [
        "quota_cpu_usage", "quota_mem_mb_usage", "cpu_util", "cpu_load_usage", "mem_load_mb_usage",
        "data_disk_usage_per", "storage_disk_usage_per", "sys_disk_usage_per",
        "realtime_create_num",
    ]  # fmt: skip
    assert missing_parts(decoded.table)[1] == 0


@pytest.mark.parametrize(
    ("value", "problem"),
    [("", "number"), ("abc", "number"), ("NaN", "number"), ("-5", "range"), ("1e400", "range"),
     ("-inf", "range"), ("0x10", "number"), ("1e30", "range"), ("\N{SUPERSCRIPT TWO}", "number")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("field", "column"), [("quota_mem_mb_usage", "allocated_memory_bytes"), ("cpu_util", None)]
)
def test_garbage_is_unknown_and_counted_and_hides_nothing_else(
    value: str, problem: str, field: str, column: str | None
) -> None:
    decoded = hashes({"n1": WHOLE | {field: value}, "n2": WHOLE | {"ins_id": "n2"}})

    assert decoded.names == ["n1", "n2"]
    assert decoded.problems == {problem: 1}
    told = decoded.table[column or "cpu_util_percent"].tolist()
    assert told[0] == -1 if column else isnan(told[0])
    assert told[1] == (2048 * MIB if column else 12.5)
    assert decoded.table["sandboxes"].tolist() == [12, 12]


def test_a_hash_that_is_not_there_is_left_out_without_a_problem() -> None:
    decoded = decode_hashes(["n1", "n2"], [[None] * len(FIELDS), [None] * len(FIELDS)])

    assert (decoded.names, decoded.problems, len(decoded.table)) == ([], {}, 0)
    assert decode_hashes([], []).names == []


def test_a_key_of_another_type_is_counted() -> None:
    assert decode_hashes(["n1"], [None]).problems == {"type": 1}


def test_another_nodes_data_is_left_out() -> None:
    decoded = hashes({"n1": WHOLE | {"ins_id": "n2"}, "n2": WHOLE | {"ins_id": ""}})

    assert decoded.names == ["n2"]
    assert decoded.problems == {"name": 1}


@pytest.mark.parametrize(
    "stamp",
    ["", "soon", "0", "-1", "NaN", "1e40", "2026-11-30", "0001-01-01T00:00:00Z",
     "2026-13-01T00:00:00Z", "1970-01-01T00:00:00Z"],
)  # fmt: skip
def test_a_hash_without_a_usable_stamp_is_left_out(stamp: str) -> None:
    decoded = hashes({"n1": WHOLE | {"update_at": stamp}})

    assert decoded.names == []
    assert decoded.problems == {"stamp": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STAMP, STAMP_MS),
        ("2026-11-30t10:00:00z", STAMP_MS),
        (" 2026-11-30T10:00:00Z\n", STAMP_MS),
        ("2026-11-30T18:00:00+08:00", STAMP_MS),
        ("2026-11-30T04:30:00-05:30", STAMP_MS),
        ("2026-11-30T10:00:00.5Z", STAMP_MS + 500),
        ("2026-11-30T10:00:00.123456789Z", STAMP_MS + 123),
        ("2026-11-30T10:00:00.001+00:00", STAMP_MS + 1),
        ("2026-11-30 10:00:00", STAMP_MS),
        ("1796032800", STAMP_MS),
        ("1796032800.25", STAMP_MS + 250),
        ("1796032800000", STAMP_MS),
        ("1796032800000000", STAMP_MS),
        ("1796032800000000000", STAMP_MS),
        ("1", 1000),
        ("1970-01-01T00:00:01Z", 1000),
        ("2100-01-01T00:00:00Z", 4_102_444_800_000),
        ("4102444800", 4_102_444_800_000),
        ("4102444800000", 4_102_444_800_000),
    ],
)
def test_a_stamp_is_read_in_any_form(text: str, expected: int) -> None:
    assert stamp_ms(text.encode()) == expected


def test_no_bytes_at_all_break_the_decoder() -> None:
    junk: list[Any] = [b"\xff\xfe", b"\0" * 300, b"1" * 5000, b"1_0", "ünicode".encode()]
    for value in junk:
        decode_hashes(["n1"], [[value] * len(FIELDS)])
        decode_hashes(["n1"], [[b"n1", STAMP.encode(), *[value] * (len(FIELDS) - 2)]])
