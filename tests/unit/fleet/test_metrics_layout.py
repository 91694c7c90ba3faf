"""Reports: exact for good ones, nothing at all for garbage, no exception for anything."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubesched.fleet.metrics_layout import DTYPE, NodeReport, decode_all, encode, uid_bytes

UID = "3f2b8a52-7a5f-4f0e-9d63-0a9f7b6f1c11"
GOOD = NodeReport(
    node_uid=UID,
    stamp_ms=1_700_000_000_123,
    applied_version=77,
    foreign_cpu_millis=1_500,
    foreign_memory_bytes=1 << 34,
    foreign_disk_bytes=0,
    foreign_sandboxes=2,
    cpu_util_percent=12.5,
    cpu_load=3.0,
    memory_used_bytes=1 << 35,
    data_disk_percent=1.0,
    storage_disk_percent=2.0,
    system_disk_percent=3.0,
    sandboxes=40,
    creating=3,
)


def test_a_report_comes_back_as_it_was_sent() -> None:
    decoded = decode_all({b"node-1": encode(GOOD)})

    (row,) = decoded.table
    assert decoded.names == ["node-1"]
    assert decoded.problems == {}
    assert bytes(row["node_uid"]) == uid_bytes(UID)
    for name in set(GOOD.__slots__) - {"node_uid", "snapshot_storage_writable"}:
        assert row[name] == getattr(GOOD, name)


@pytest.mark.parametrize(("writable", "flags"), [(None, 0), (False, 1), (True, 3)])
def test_whether_snapshots_can_be_written_is_told_in_two_bits(
    writable: bool | None, flags: int
) -> None:
    told = replace(GOOD, snapshot_storage_writable=writable)

    (row,) = decode_all({b"node-1": encode(told)}).table

    assert row["flags"] == flags


def test_the_wire_form_does_not_change_unnoticed() -> None:
    packed = encode(GOOD)

    assert len(packed) == DTYPE.itemsize == 136
    assert packed[:8] == bytes([1, 0, 0, 0, 0, 0, 0, 0])
    assert packed[24:40] == struct.pack("<qQ", 1_700_000_000_123, 77)
    assert packed[-16:] == struct.pack("<qq", 40, 3)


def test_what_an_agent_does_not_know_switches_off_only_itself() -> None:
    decoded = decode_all({b"n": encode(NodeReport(node_uid=UID, stamp_ms=5))})

    (row,) = decoded.table
    assert decoded.problems == {}
    assert row["foreign_cpu_millis"] == row["sandboxes"] == -1
    assert math.isnan(row["cpu_util_percent"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "length"),
        (b"\x01", "length"),
        (encode(GOOD) + b"\x00", "length"),
        (b"\x02" + encode(GOOD)[1:], "version"),
        (b'{"cpu": 1}', "version"),
        (encode(replace(GOOD, stamp_ms=0)), "stamp"),
        (encode(replace(GOOD, stamp_ms=-5)), "stamp"),
        (encode(replace(GOOD, stamp_ms=(1 << 63) - 1)), "stamp"),
        (encode(replace(GOOD, sandboxes=-2)), "range"),
        (encode(replace(GOOD, foreign_memory_bytes=(1 << 63) - 1)), "range"),
        (encode(replace(GOOD, cpu_util_percent=-0.1)), "range"),
        (encode(replace(GOOD, cpu_load=math.inf)), "range"),
        (encode(replace(GOOD, applied_version=1 << 63)), "range"),
        (encode(GOOD)[:8] + bytes(16) + encode(GOOD)[24:], "uid"),
    ],
)
def test_garbage_is_left_out_and_counted(value: bytes, reason: str) -> None:
    decoded = decode_all({b"bad": value, b"good": encode(GOOD)})

    assert decoded.names == ["good"]
    assert decoded.problems == {reason: 1}


@pytest.mark.parametrize("field", [b"", b"n\xff", "knöten".encode(), b"x" * 254])
def test_a_field_that_is_no_node_name_is_left_out(field: bytes) -> None:
    assert decode_all({field: encode(GOOD)}).problems == {"name": 1}


def test_nothing_stored_is_nothing_reported() -> None:
    decoded = decode_all({})

    assert decoded.names == []
    assert len(decoded.table) == 0


@given(st.dictionaries(st.binary(max_size=8), st.binary(min_size=130, max_size=140), max_size=6))
def test_no_bytes_raise(values: dict[bytes, bytes]) -> None:
    decoded = decode_all(values)

    assert len(decoded.names) == len(decoded.table)
    assert len(decoded.names) + sum(decoded.problems.values()) == len(values)


@given(st.binary(min_size=135, max_size=135))
def test_whatever_is_believed_is_in_range(rest: bytes) -> None:
    decoded = decode_all({b"n": b"\x01" + rest})

    for row in decoded.table:
        for name in DTYPE.names or ():
            if DTYPE[name].kind == "i":
                assert -1 <= row[name] <= 1 << 56
            elif DTYPE[name].kind == "f":
                assert np.isnan(row[name]) or 0 <= row[name] <= 1 << 56


def test_any_text_can_be_a_uid_and_different_ones_differ() -> None:
    assert uid_bytes(UID) != uid_bytes("u-1") != uid_bytes("u-2")
    assert len(uid_bytes("\ud800")) == 16
