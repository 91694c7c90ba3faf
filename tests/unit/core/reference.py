"""The pipeline once more, node by node in plain Python: what the columns must agree with.

Written for reading: no arrays, no sharing with the real code but the request, the draw of an
attempt and the names of reasons. Operations stand in the same order as in the real code where
rounding could otherwise turn a tie into an order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from tests.unit.builders import NodeFacts

from cubesched.core.request import Request
from cubesched.core.snapshot import Safety

MAX_CPU_UTIL_PERCENT = 80.0
DISK_USAGE_MAX_PERCENT = 80.0


@dataclass(frozen=True)
class Policy:
    """What a pipeline is made of, by name."""

    scores: tuple[tuple[str, Mapping[str, object], float], ...] = ()
    filters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    method: str = "highest"
    top_n: int = 1


@dataclass(frozen=True)
class Outcome:
    """The chosen node's name, or the reason; what each stage rejected first; who was feasible."""

    node: str
    reason: str
    score: float
    counts: dict[str, int]
    feasible: int


def decide(
    nodes: Sequence[NodeFacts], request: Request, policy: Policy, *, prefer_own: bool = False
) -> Outcome:
    counts: Counter[str] = Counter()
    feasible = []
    for node in nodes:
        stage = first_failing_stage(node, request, policy)
        if stage:
            counts[stage] += 1
        else:
            feasible.append(node)
    if not feasible:
        return Outcome("", why_none(nodes, request), 0.0, dict(counts), 0)
    spread = spread_of_images(nodes, request)
    scores = [blended_score(node, request, policy, spread) for node in feasible]
    chosen = choose(feasible, scores, request, policy, prefer_own)
    return Outcome(feasible[chosen].name, "", scores[chosen], dict(counts), len(feasible))


# Stages


def first_failing_stage(node: NodeFacts, request: Request, policy: Policy) -> str:
    for name, stays in STAGES:
        if not stays(node, request):
            return name
    for name, args in policy.filters.items():
        if not FILTERS[name](node, request, args):
            return name
    return ""


def is_safe(node: NodeFacts, request: Request) -> bool:
    if node.safety != Safety.OK:
        return False
    if node.sandboxes >= node.sandbox_limit:
        return False
    is_known = not (math.isnan(node.cpu_load) or math.isnan(node.cpus))
    return not (is_known and node.cpu_load > node.cpus)


def has_cpu(node: NodeFacts, request: Request) -> bool:
    if node.cpu_used_millis + request.cpu_millis > node.cpu_limit_millis:
        return False
    return math.isnan(node.cpu_util_percent) or node.cpu_util_percent < MAX_CPU_UTIL_PERCENT


def has_memory(node: NodeFacts, request: Request) -> bool:
    if node.memory_used_bytes + request.memory_bytes > node.memory_limit_bytes:
        return False
    if math.isnan(node.memory_really_used_bytes):
        return True
    free = node.memory_capacity_bytes - node.memory_really_used_bytes
    return free >= request.memory_bytes + node.memory_reserved_bytes


def has_disk(node: NodeFacts, request: Request) -> bool:
    if node.disk_used_bytes + request.disk_bytes > node.disk_limit_bytes:
        return False
    for percent in (node.data_disk_percent, node.storage_disk_percent, node.system_disk_percent):
        if not math.isnan(percent) and percent >= DISK_USAGE_MAX_PERCENT:
            return False
    return True


def has_template(node: NodeFacts, request: Request) -> bool:
    if request.template_node_scope and node.name not in request.template_node_scope:
        return False
    if not request.template_id or request.allow_non_local_template:
        return True
    return request.template_id in node.templates


def can_create(node: NodeFacts, request: Request) -> bool:
    return node.creating < node.create_limit


def has_not_refused(node: NodeFacts, request: Request) -> bool:
    return node.name not in request.refused_nodes


def accepts_type(node: NodeFacts, request: Request) -> bool:
    return node.instance_type in ("", request.instance_type)


def is_selected(node: NodeFacts, request: Request) -> bool:
    return all(node.labels.get(key) == value for key, value in request.node_selector)


def is_tolerated(node: NodeFacts, request: Request) -> bool:
    for taint in node.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        for toleration in request.tolerations:
            if (
                toleration.effect in ("", taint.effect)
                and toleration.key in ("", taint.key)
                and (toleration.operator == "Exists" or toleration.value == taint.value)
            ):
                break
        else:
            return False
    return True


STAGES: tuple[tuple[str, Callable[[NodeFacts, Request], bool]], ...] = (
    ("node_safety", is_safe),
    ("cpu", has_cpu),
    ("mem", has_memory),
    ("disk", has_disk),
    ("template_locality", has_template),
    ("realtime_create_num", can_create),
    ("refused", has_not_refused),
    ("instance_type", accepts_type),
    ("node_selector", is_selected),
    ("taints", is_tolerated),
)


def carries_labels(node: NodeFacts, request: Request, args: Mapping[str, object]) -> bool:
    wanted = args["matchLabels"]
    assert isinstance(wanted, dict)
    return all(node.labels.get(key) == value for key, value in wanted.items())


def is_not_scarce(node: NodeFacts, request: Request, args: Mapping[str, object]) -> bool:
    keys = args["labels"]
    assert isinstance(keys, list)
    selected = [key for key, _ in request.node_selector]
    for key in keys:
        if key in node.labels and node.labels[key] not in ("false", "0") and key not in selected:
            return False
    return True


FILTERS: dict[str, Callable[[NodeFacts, Request, Mapping[str, object]], bool]] = {
    "node_labels": carries_labels,
    "scarce_resource": is_not_scarce,
}


def why_none(nodes: Sequence[NodeFacts], request: Request) -> str:
    if not nodes:
        return "NoNodes"
    unseen = ("NOT_READY", "NEVER_REPORTED", "STALE", "CLOCK_SKEW", "AWAITING_REPORT")
    if all(node.safety.name in unseen for node in nodes):
        return "StaleMetrics"
    for node in nodes:
        if (
            request.cpu_millis <= node.cpu_limit_millis
            and request.memory_bytes <= node.memory_limit_bytes
            and request.disk_bytes <= node.disk_limit_bytes
        ):
            return "Unschedulable"
    return "NeverFits"


# Scores


def blended_score(
    node: NodeFacts, request: Request, policy: Policy, spread: Mapping[str, float]
) -> float:
    answers = []
    for name, args, weight in policy.scores:
        score = score_of(name, args, node, request, spread)
        if score is not None:
            answers.append((score, weight))
    if not answers:
        return 0.0
    largest = max(weight for _, weight in answers)
    shares = [weight / largest for _, weight in answers]
    total = 0.0
    for (score, _), part in zip(answers, shares, strict=True):
        total += score * (part / sum(shares))
    return min(total, 100.0)


def score_of(
    name: str,
    args: Mapping[str, object],
    node: NodeFacts,
    request: Request,
    spread: Mapping[str, float],
) -> float | None:
    if name == "image_score":
        return image_score(node, request, args, spread)
    return SCORES[name](node, request, args)


def clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def free(used: float, limit: float) -> float:
    """How much of the limit is free, in percent; the worst where either is unknown."""
    if math.isnan(used) or math.isnan(limit) or limit == 0:
        return 0.0
    return clamp(100.0 - used * (100.0 / limit), 0.0, 100.0)


def left(used: int, limit: int, requested: int) -> float:
    if limit <= 0:
        return 0.0
    return max(free(used, limit) - requested * (100.0 / limit), 0.0)


def cpu_left(node: NodeFacts, request: Request) -> float:
    return left(node.cpu_used_millis, node.cpu_limit_millis, request.cpu_millis)


def memory_left(node: NodeFacts, request: Request) -> float:
    return left(node.memory_used_bytes, node.memory_limit_bytes, request.memory_bytes)


def free_by_factor(name: str, node: NodeFacts, request: Request) -> float:  # noqa: C901, PLR0911
    if name == "mvm_num":
        return free(node.sandboxes, node.sandbox_limit)
    if name == "local_create_num":
        return free(node.creating_ledger, node.create_limit)
    if name == "realtime_create_num":
        return free(node.creating, node.create_limit)
    if name == "quota_cpu_usage":
        return free(node.cpu_used_millis, node.cpu_limit_millis)
    if name == "quota_mem_usage":
        return free(node.memory_used_bytes, node.memory_limit_bytes)
    if name == "req_cpu":
        return cpu_left(node, request)
    if name == "req_mem":
        return memory_left(node, request)
    if name in ("cpu_util", "cpu_usage"):
        return free(node.cpu_util_percent, 100.0)
    if name == "mem_usage":
        return free(node.memory_really_used_bytes, node.memory_capacity_bytes)
    if name == "cpu_load":
        return free(node.cpu_load, node.cpus)
    if name == "data_disk_usage":
        return free(node.data_disk_percent, 100.0)
    if name == "storage_disk_usage":
        return free(node.storage_disk_percent, 100.0)
    assert name == "sys_disk_usage"
    return free(node.system_disk_percent, 100.0)


DEFAULT_FACTORS = {"mvm_num": 1, "local_create_num": 1, "cpu_util": 1, "quota_mem_usage": 1}


def weights_of(args: Mapping[str, object], default: Mapping[str, float]) -> Mapping[str, float]:
    factors = args.get("factors", default)
    if isinstance(factors, list):
        return dict.fromkeys(factors, 1)
    assert isinstance(factors, dict)
    return factors


def weighted_average(node: NodeFacts, request: Request, args: Mapping[str, object]) -> float | None:
    factors = weights_of(args, DEFAULT_FACTORS)
    largest = max(factors.values(), default=0)
    if largest == 0:
        return None
    weights = {name: weight / largest for name, weight in factors.items() if weight > 0}
    total = 0.0
    for name, weight in weights.items():
        total += free_by_factor(name, node, request) * weight
    scale: float = 1.0 / sum(weights.values())
    return min(total * scale, 100.0)


def resource_fit_score(node: NodeFacts, request: Request, args: Mapping[str, object]) -> float:
    penalty = args.get("imbalance_penalty", 0.5)
    assert isinstance(penalty, float)
    cpu, memory = cpu_left(node, request), memory_left(node, request)
    # 100 - (cpu + memory) / 2 - penalty * |cpu - memory|
    cost = max(cpu, memory) * (0.5 + penalty) + min(cpu, memory) * (0.5 - penalty)
    return max(100.0 - cost, 0.0)


def least_allocated(node: NodeFacts, request: Request, args: Mapping[str, object]) -> float:
    return (cpu_left(node, request) + memory_left(node, request)) * 0.5


def most_allocated(node: NodeFacts, request: Request, args: Mapping[str, object]) -> float:
    return 100.0 - (cpu_left(node, request) + memory_left(node, request)) * 0.5


def balanced_allocation(node: NodeFacts, request: Request, args: Mapping[str, object]) -> float:
    return 100.0 - abs(cpu_left(node, request) - memory_left(node, request))


def create_concurrency_score(
    node: NodeFacts, request: Request, args: Mapping[str, object]
) -> float:
    if node.creating_reported < 0:
        return 0.0
    creating = node.creating_reported
    if args.get("include_local_create", True):
        creating += node.creating_ledger
    return free(creating, node.create_limit)


MIB = 1024 * 1024


def spread_of_images(nodes: Sequence[NodeFacts], request: Request) -> dict[str, float]:
    """The share of healthy nodes that hold each image."""
    healthy = [node for node in nodes if node.safety == Safety.OK]
    spread = {}
    for image in request.images:
        holders = [node for node in healthy if node.images.get(image, 0) > 0]
        spread[image] = len(holders) / len(healthy)
    return spread


def image_score(
    node: NodeFacts, request: Request, args: Mapping[str, object], spread: Mapping[str, float]
) -> float | None:
    weights = weights_of(args, {"template_id": 1})
    of_template = weights.get("template_id", 0) if request.template_id else 0
    of_images = weights.get("image_id", 0) if request.images else 0
    if of_template + of_images == 0:
        return None
    by_template = 100.0 if request.template_id in node.templates else 0.0
    if of_images == 0:
        return by_template
    by_images = image_size_by_spread(node, request, spread)
    if of_template == 0:
        return by_images
    share = of_template / (of_template + of_images)
    return min(by_images * (1.0 - share) + by_template * share, 100.0)


def image_size_by_spread(node: NodeFacts, request: Request, spread: Mapping[str, float]) -> float:
    scaled = 0.0
    for image in request.images:
        scaled += node.images.get(image, 0) * spread[image]
    least, most = 23.0 * MIB, 80_000.0 * MIB * len(request.images)
    return (clamp(scaled, least, most) - least) * 100.0 / (most - least)


def template_local_pressure(
    node: NodeFacts, request: Request, args: Mapping[str, object]
) -> float | None:
    if not request.template_id:
        return None
    creating = node.template_creating.get(request.template_id, 0)
    return free(creating, node.create_limit)


SCORES: dict[str, Callable[[NodeFacts, Request, Mapping[str, object]], float | None]] = {
    "real_time_weighted_average": weighted_average,
    "multi_factor_weighted_average": weighted_average,
    "resource_fit_score": resource_fit_score,
    "least_allocated": least_allocated,
    "most_allocated": most_allocated,
    "balanced_allocation": balanced_allocation,
    "create_concurrency_score": create_concurrency_score,
    "template_local_pressure": template_local_pressure,
}


# Selection


def choose(
    feasible: Sequence[NodeFacts],
    scores: Sequence[float],
    request: Request,
    policy: Policy,
    prefer_own: bool,
) -> int:
    digest = blake2b(f"{request.uid}/{request.attempt}".encode(), digest_size=16).digest()
    size = len(feasible)
    start = int.from_bytes(digest[:8], "big") % size
    fraction = (int.from_bytes(digest[8:], "big") >> 11) / 2**53
    order = sorted(range(size), key=lambda place: (-scores[place], (place - start) % size))
    top_n = size if policy.top_n == -1 else policy.top_n
    if prefer_own:
        own = [place for place in order[: max(top_n, 8)] if feasible[place].own]
        order = own or order
    return pick(order[:top_n], feasible, scores, policy.method, fraction)


def pick(
    candidates: Sequence[int],
    feasible: Sequence[NodeFacts],
    scores: Sequence[float],
    method: str,
    fraction: float,
) -> int:
    if method == "highest":
        return candidates[0]
    if method == "spread":
        return min(candidates, key=lambda place: feasible[place].sandboxes)
    if method == "uniform":
        return candidates[int(fraction * len(candidates))]
    total = 0.0
    for place in candidates:
        total += scores[place]
    if total == 0.0:
        return candidates[int(fraction * len(candidates))]
    reached = 0.0
    for place in candidates:
        reached += scores[place]
        if reached > fraction * total:
            return place
    return [place for place in candidates if scores[place] > 0.0][-1]
