"""The committed code is what plugin.proto says, and every column is told of there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cubesched
from cubesched.plugins.cel.facts import NODE, REQUEST
from cubesched.plugins.rpc import columns, wire
from cubesched.plugins.rpc import plugin_pb2 as pb

ROOT = Path(cubesched.__file__).parents[1]
PROTO = Path("cubesched/plugins/rpc/plugin.proto")


def test_the_generated_code_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT), f"--python_out={tmp_path}",
         f"--pyi_out={tmp_path}", str(ROOT / PROTO)],
        check=True,
    )  # fmt: skip

    for name in ("plugin_pb2.py", "plugin_pb2.pyi"):
        made = (tmp_path / PROTO.with_name(name)).read_text()
        assert made == (ROOT / PROTO.with_name(name)).read_text(), (
            "run: cd operator && python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. "
            f"{PROTO}"
        )


def test_every_column_says_its_type_as_it_is_written() -> None:
    text = (ROOT / PROTO).read_text()
    told = re.findall(r"  // (\w+)[^\n]*\n(?:  //[^\n]*\n)*  bytes (\w+) = ", text)
    kinds = {"u1": "u8", "i1": "i8", "<u4": "u32", "<i8": "i64", "<f8": "f64"}

    written = {
        column.name: kinds[column.dtype.str.removeprefix("|")]
        for column in (*columns.FACTS, *columns.STATE)
    }
    assert {name: kind for kind, name in told if name in written} == written


def test_the_protocol_has_every_fact_that_expressions_have() -> None:
    own = {"id": "names", "template_local": "templates"}
    fields = {*pb.Facts.DESCRIPTOR.fields_by_name, *pb.State.DESCRIPTOR.fields_by_name}

    assert {own.get(fact, fact) for fact in NODE} <= fields
    assert set(pb.Request.DESCRIPTOR.fields_by_name) == REQUEST.keys()


@pytest.mark.parametrize("message", [pb.FilterRequest, pb.ScoreRequest])
def test_both_questions_are_written_alike(message: type[pb.FilterRequest]) -> None:
    numbers = {name: field.number for name, field in message.DESCRIPTOR.fields_by_name.items()}

    assert numbers == {
        name: field.number for name, field in pb.FilterRequest.DESCRIPTOR.fields_by_name.items()
    }
    assert (numbers["facts"], numbers["state"]) == (wire.FACTS_FIELD, wire.STATE_FIELD)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000, 3_000_000])
def test_a_field_put_in_whole_reads_as_any_other(size: int) -> None:
    state = pb.State(snapshot_version=1, cpu_util=b"x" * size)

    spliced = pb.FilterRequest.FromString(
        pb.FilterRequest(plugin="it").SerializeToString()
        + wire.as_field(wire.STATE_FIELD, state.SerializeToString())
    )

    assert spliced == pb.FilterRequest(plugin="it", state=state)
