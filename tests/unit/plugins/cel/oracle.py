"""cel-expr-python (Google's C++ runtime) as the judge of our expressions, on hostile nodes."""

from __future__ import annotations

import math
import random
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cel_expr_python import cel
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot
from tests.unit.plugins.cel.generating import LABEL_KEYS, TEXTS, Generator, mutated

from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Safety, Snapshot
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT
from cubesched.plugins.cel.facts import NODE_FACTS, REQUEST_FACTS, ZONE_LABEL
from cubesched.plugins.cel.problems import ExpressionInvalid
from cubesched.plugins.cel.program import Program, compile_expression
from cubesched.plugins.cel.values import is_column

NUMBER_OF_NODES = 24
_MIB = 1 << 20
_ERROR = object()
_TYPES = {
    "string": cel.Type.STRING, "bool": cel.Type.BOOL, "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "map(string, string)": cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
}  # fmt: skip
_NAMES = {"BOOL": BOOL, "INT": INT, "DOUBLE": DOUBLE}
_HAS_FACT = re.compile(r"has\(node\.(\w+)\)")
OUR_LIMITS = re.compile(
    "not supported|costs too much|only a literal before|nested too deeply|within one another"
    "|has a meaning already|that is written down|known are all"
)
"""What we refuse of what CEL allows."""


def hostile_nodes(rng: random.Random) -> list[NodeFacts]:
    """Return nodes with the values that break naive code."""
    return [_hostile(rng, number) for number in range(NUMBER_OF_NODES)]


def _hostile(rng: random.Random, number: int) -> NodeFacts:
    big = (0, 1, 3, 8, 9, 60, (1 << 31), (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), -7)
    bytes_ = (0, 1, _MIB - 1, _MIB, _MIB + 1, 5 << 30, (1 << 62))
    real = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 59.999, 60.0, 1e300, -1e300, 5e-324)
    labels = {key: rng.choice(TEXTS) for key in LABEL_KEYS[:-1] if rng.random() < 0.7}
    if rng.random() < 0.6:
        labels[ZONE_LABEL] = rng.choice(TEXTS)
    return a_node(
        rng.choice(("node", "é", "a", "zone-a", "")) + (f"-{number}" if number else "x"),
        labels=labels,
        address=rng.choice(("", "10.0.0.1", "a", "12")),
        instance_type=rng.choice(("", "cubebox", "a", "é")),
        safety=rng.choice((Safety.OK, Safety.STALE, Safety.OK)),
        templates=("t",) if rng.random() < 0.5 else (),
        snapshot_storage_writable=rng.choice((1, 0, -1)),
        cpu_util_percent=rng.choice(real),
        cpu_load=rng.choice(real),
        data_disk_percent=rng.choice(real),
        storage_disk_percent=rng.choice(real),
        system_disk_percent=rng.choice(real),
        memory_really_used_bytes=rng.choice((math.nan, 0.0, 1.0, 1048576.0, 5e9, 1e18)),
        cpus=rng.choice((0.0, 0.5, 4.0, 64.0)),
        cpu_limit_millis=rng.choice(big),
        cpu_used_millis=rng.choice(big),
        memory_capacity_bytes=rng.choice(bytes_),
        memory_limit_bytes=rng.choice(bytes_),
        memory_used_bytes=rng.choice(bytes_),
        creating=rng.choice(big),
        creating_own=rng.choice(big),
        sandboxes=rng.choice(big),
    )


def hostile_requests() -> list[Request]:
    """Return requests with and without labels, of ordinary and extreme sizes."""
    top = (1 << 63) - 1
    return [
        a_request("u1", template_id="t", labels={"zone": "a", "num": "12"}),
        a_request("u2", template_id="zone", instance_type="é", priority=-7, labels={"gpu": ""}),
        a_request("u3", cpu_millis=top, memory_bytes=top, disk_bytes=60, labels={"zone": "é"}),
    ]


def facts_of(node: NodeFacts, request: Request) -> dict[str, Any]:
    """Return what the expression sees, worked out from the plain node; unknown ones are absent."""
    said: dict[str, Any] = {
        "id": node.name,
        "ip": node.address,
        "zone": node.labels.get(ZONE_LABEL, ""),
        "instance_type": node.instance_type,
        "healthy": node.safety == Safety.OK,
        "template_local": request.template_id in node.templates,
        "labels": dict(node.labels),
        "cpu_util": node.cpu_util_percent,
        "cpu_load": node.cpu_load,
        "cpu_total": math.floor(node.cpus),
        "quota_cpu": node.cpu_limit_millis,
        "allocated_cpu": node.cpu_used_millis,
        "mem_total_mb": node.memory_capacity_bytes // _MIB,
        "quota_mem_mb": node.memory_limit_bytes // _MIB,
        "allocated_mem_mb": -(-node.memory_used_bytes // _MIB),
        "creating": node.creating,
        "local_creating": node.creating_own,
        "mvm_num": node.sandboxes,
        "data_disk_usage": node.data_disk_percent,
        "storage_disk_usage": node.storage_disk_percent,
        "system_disk_usage": node.system_disk_percent,
    }
    if node.snapshot_storage_writable >= 0:
        said["snapshot_storage_writable"] = node.snapshot_storage_writable == 1
    if not math.isnan(node.memory_really_used_bytes):
        said["mem_usage_mb"] = math.ceil(node.memory_really_used_bytes / _MIB)
    return {name: value for name, value in said.items() if value == value}  # noqa: PLR0124 - NaN


def request_facts(request: Request) -> dict[str, Any]:
    """Return what an expression sees of a request."""
    return {
        "instance_type": request.instance_type,
        "template_id": request.template_id,
        "cpu_millis": request.cpu_millis,
        "memory_bytes": request.memory_bytes,
        "system_disk_size": request.disk_bytes,
        "priority": request.priority,
        "labels": dict(request.labels),
    }


class Oracle:
    """The same facts declared to the C++ runtime, one activation for each node and request."""

    def __init__(self, nodes: Sequence[NodeFacts], requests: Sequence[Request]) -> None:
        variables = {f"node.{fact.name}": _TYPES[fact.type.name] for fact in NODE_FACTS}
        variables |= {f"known.{fact.name}": cel.Type.BOOL for fact in NODE_FACTS}
        variables |= {f"request.{fact.name}": _TYPES[fact.type.name] for fact in REQUEST_FACTS}
        self._env = cel.NewEnv(variables=variables)
        self._activations = [[self._activation(n, r) for n in nodes] for r in requests]

    def _activation(self, node: NodeFacts, request: Request) -> Any:
        facts = facts_of(node, request)
        data = {f"node.{name}": value for name, value in facts.items()}
        data |= {f"known.{fact.name}": fact.name in facts for fact in NODE_FACTS}
        data |= {f"request.{name}": value for name, value in request_facts(request).items()}
        return self._env.Activation(data)

    def compile(self, text: str) -> Any:
        """Return the compiled expression, or None when the runtime refuses it."""
        try:
            return self._env.compile(_HAS_FACT.sub(r"known.\1", text))
        except Exception:
            return None

    def values(self, compiled: Any, request: int) -> list[Any]:
        """Return the value for each node, `_ERROR` where it is one."""
        results = []
        for activation in self._activations[request]:
            value = compiled.eval(activation)
            kind = value.type().name()
            results.append(_ERROR if kind == "ERROR" else value.plain_value())
        return results


def our_values(
    program: Program, fleet: Snapshot, request: Request, rows: Ints | None = None
) -> list[Any]:
    """Return our value for each of the rows (None: all), `_ERROR` where it is one."""
    value, error = program.run(fleet, request, rows)
    size = len(fleet) if rows is None else rows.size
    values = value.tolist() if is_column(value) else [value] * size
    errors = np.broadcast_to(np.asarray(error), (size,)).tolist()
    return [_ERROR if failed else each for each, failed in zip(values, errors, strict=True)]


def agree(ours: Any, theirs: Any) -> bool:
    """Tell whether two values are the same to the bit; NaN is NaN."""
    if ours is _ERROR or theirs is _ERROR:
        return ours is theirs
    if isinstance(ours, float) and isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or struct.pack("d", ours) == struct.pack("d", theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


@dataclass
class Outcome:
    """What a run of comparisons found."""

    compared: int = 0
    results: int = 0
    errors: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


class Trial:
    """Random expressions, ours beside theirs."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.nodes = sorted(hostile_nodes(rng), key=lambda node: node.name)
        self.requests = hostile_requests()
        self.fleet = a_snapshot(self.nodes)
        self.oracle = Oracle(self.nodes, self.requests)
        self.generator = Generator(seed)
        self.random = rng
        self.outcome = Outcome()

    def compare(self, wanted: int) -> Outcome:
        """Compare so many random expressions that both sides take."""
        while self.outcome.compared < wanted:
            text = self.generator.expression()
            try:
                program = compile_expression(text, (BOOL, INT, DOUBLE))
            except ExpressionInvalid as error:
                self._note_refusal(text, error)
                continue
            self._compare_one(text, program)
            self.outcome.used += self.generator.used
        return self.outcome

    def _note_refusal(self, text: str, error: ExpressionInvalid) -> None:
        for problem in error.problems:
            found = OUR_LIMITS.search(problem.message)
            if found is None:
                self.outcome.disagreements.append(f"refused: {text}: {error}")
            else:
                self.outcome.refused[found[0]] += 1

    def _compare_one(self, text: str, program: Program) -> None:
        compiled = self.oracle.compile(text)
        if compiled is None or _NAMES.get(compiled.return_type().name()) != program.root.type:
            self.outcome.disagreements.append(f"accepted: {text!r}")
            return
        number = self.random.randrange(len(self.requests))
        order = np.array(self.random.sample(range(len(self.nodes)), len(self.nodes)))
        rows = order if self.random.random() < 0.3 else None
        ours = our_values(program, self.fleet, self.requests[number], rows)
        theirs = self.oracle.values(compiled, number)
        if rows is not None:
            theirs = [theirs[row] for row in rows.tolist()]
        self.outcome.compared += 1
        self.outcome.results += len(ours)
        self.outcome.errors += sum(value is _ERROR for value in theirs)
        nodes = self.nodes if rows is None else [self.nodes[row] for row in rows.tolist()]
        for node, mine, their in zip(nodes, ours, theirs, strict=True):
            if not agree(mine, their):
                where = f"{text!r} on {node.name!r}, request {number}"
                self.outcome.disagreements.append(f"{where}: {_shown(mine)} not {_shown(their)}")

    def mutate(self, wanted: int) -> tuple[int, int]:
        """Look at so many mutated expressions; return how many we and both of us accept."""
        ours = both = 0
        for _ in range(wanted):
            text = mutated(self.generator.expression(), self.random, self.generator.expression())
            try:
                program = compile_expression(text, (BOOL, INT, DOUBLE))
            except ExpressionInvalid:
                continue
            ours += 1
            before = self.outcome.compared
            self._compare_one(text, program)
            both += self.outcome.compared - before
        return ours, both


def _shown(value: Any) -> str:
    return "an error" if value is _ERROR else repr(value)
