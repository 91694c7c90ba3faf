"""The operator's own judgement of manifests, alone or over what a cluster holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cubesched.api import NODES, REQUESTS
from cubesched.api.v1alpha1 import Model, SandboxNodeSpec, SandboxRequestSpec
from cubesched.manifests.findings import (
    CLUSTER,
    Finding,
    Judged,
    Report,
    Severity,
    Skipped,
    finding_of,
)
from cubesched.manifests.identity import check_identity
from cubesched.manifests.objects import Manifest
from cubesched.plugins.kinds import is_missing
from cubesched.plugins.listing import Surroundings
from cubesched.policy.compiler import compile_set
from cubesched.policy.objects import (
    CONFIG_KIND,
    CONFIG_NAME,
    PROFILE_KIND,
    PolicyObject,
    Problem,
    ProblemList,
    printable,
)
from cubesched.policy.policyset import PolicySet
from cubesched.policy.reading import entries, read

PLUGIN_NOT_INSTALLED: Final = "PluginNotInstalled"

_MODELS: Final[Mapping[str, type[Model]]] = {
    NODES.kind: SandboxNodeSpec,
    REQUESTS.kind: SandboxRequestSpec,
}


@dataclass(frozen=True, slots=True)
class Held:
    """The policy that a cluster holds; files win over it by name."""

    profiles: Sequence[PolicyObject] = ()
    config: PolicyObject | None = None


Look = Callable[[PolicySet], Iterable[Problem]]
"""What the live fleet shows to be odd about a set."""


def judge(
    found: Iterable[Manifest | Skipped | Finding],
    held: Held,
    around: Surroundings,
    look: Look = lambda _: (),
) -> Report:
    """Return everything that is wrong or worth a warning; no socket is contacted."""
    everything = list(found)
    manifests = [item for item in everything if isinstance(item, Manifest)]
    findings = [item for item in everything if isinstance(item, Finding)]
    around = replace(around, missing_is_elsewhere=True)
    policy = _Policy(held)
    for manifest in manifests:
        findings += _by_itself(manifest, around)
        findings += policy.take(manifest)
    findings += policy.compiled(around, look)
    return Report(
        sorted(findings, key=_order),
        [Judged(m.title, m.source) for m in manifests] + policy.from_cluster(),
        [item for item in everything if isinstance(item, Skipped)],
    )


def _by_itself(manifest: Manifest, around: Surroundings) -> Iterator[Finding]:
    """Yield what one object shows, but for what the compiler says about policy."""
    problems = ProblemList(manifest.subject())
    check_identity(manifest, problems)
    if manifest.kind in _MODELS:
        read(_MODELS[manifest.kind], problems)
    yield from (manifest.finding(problem) for problem in problems.found)
    for warning in _missing_plugins(manifest, around):
        yield manifest.finding(warning, "warning")


def _missing_plugins(manifest: Manifest, around: Surroundings) -> Iterator[Problem]:
    subject = manifest.subject()
    for field in ("filters", "scores") if manifest.kind == PROFILE_KIND else ():
        for path, entry in entries(subject.spec, field):
            name = entry.get("name")
            if isinstance(name, str) and is_missing(entry.get("type"), name, around):
                message = (
                    f'no package here offers the python plugin "{printable(name)}": neither it nor'
                    " its args are checked, and the operator's image must have it"
                )
                yield Problem(
                    subject.kind, subject.name, f"{path}.name", message, PLUGIN_NOT_INSTALLED
                )


class _Policy:
    """The Profiles and the SchedulerConfig that are compiled as one unit, files over cluster."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._first: dict[tuple[str, str], Manifest] = {}
        self._set: list[Manifest] = []
        self._alone: list[Manifest] = []

    def take(self, manifest: Manifest) -> Iterator[Finding]:
        """Take it into the set; what cannot be in it beside the others is judged alone."""
        key = manifest.kind, manifest.name
        first = self._first.setdefault(key, manifest) if manifest.has_name else manifest
        if first is not manifest:
            line = first.place_of("metadata.name").line
            where = f"line {line}" if first.source == manifest.source else f"{first.source}:{line}"
            message = f"there is a {manifest.kind} of this name already, in {printable(where)}"
            yield manifest.finding(Problem(*key, "metadata.name", message))
        if manifest.kind in (PROFILE_KIND, CONFIG_KIND):
            is_other = manifest.kind == CONFIG_KIND and manifest.name != CONFIG_NAME
            is_alone = first is not manifest or not manifest.has_name or is_other
            (self._alone if is_alone else self._set).append(manifest)

    def compiled(self, around: Surroundings, look: Look) -> Iterator[Finding]:
        """Yield what the compiler says about the set, and about what stands alone."""
        config = self._config()
        result = compile_set(self._profiles(), config, around)
        warnings = [*result.warnings, *(look(result.policy) if result.policy else ())]
        yield from (self._finding(problem, "error") for problem in result.problems)
        yield from (self._finding(warning, "warning") for warning in warnings)
        for manifest in self._alone:
            subject = manifest.subject()
            if manifest.kind == PROFILE_KIND:
                alone = compile_set([subject], config, around)
            else:
                alone = compile_set((), subject, around)
            for problem in alone.problems:
                # A name that is missing is told already.
                is_told = problem.path == "metadata.name" and not manifest.has_name
                if problem.title == subject.title and not is_told:
                    yield manifest.finding(problem)

    def _finding(self, problem: Problem, severity: Severity) -> Finding:
        """Return it with its place, where a file holds the object."""
        for manifest in self._set:
            if (manifest.kind, printable(manifest.name)) == (problem.kind, problem.name):
                return manifest.finding(problem, severity)
        return finding_of(problem, CLUSTER, None, severity)

    def from_cluster(self) -> list[Judged]:
        """Return the objects that no file replaces."""
        config = self._held.config
        kept = [p for p in self._held.profiles if not self._is_replaced(p)]
        if config and not self._is_replaced(config):
            kept.append(config)
        return [Judged(each.title, CLUSTER) for each in kept]

    def _profiles(self) -> list[PolicyObject]:
        files = [m.subject() for m in self._set if m.kind == PROFILE_KIND]
        return files + [p for p in self._held.profiles if not self._is_replaced(p)]

    def _config(self) -> PolicyObject | None:
        files = [m.subject() for m in self._set if m.kind == CONFIG_KIND]
        return files[0] if files else self._held.config

    def _is_replaced(self, held: PolicyObject) -> bool:
        return (held.kind, held.name) in self._first


def _order(finding: Finding) -> tuple[bool, str, int, int]:
    line, column = finding.place or (0, 0)
    return finding.source == CLUSTER, finding.source, line, column
