"""A whole configuration file of CubeMaster as policy objects that compile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cubesched.api import API_VERSION
from cubesched.core.errors import UsageError
from cubesched.plugins.listing import Surroundings
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.compiler import CompileResult, compile_set
from cubesched.policy.legacy import PROFILE_NAME
from cubesched.policy.migration.keys import KEYS
from cubesched.policy.migration.legacy_block import legacy_spec, scarce_label
from cubesched.policy.migration.notes import Fate, Note, Notes
from cubesched.policy.migration.profiles import Profile, profile_specs, score_tree
from cubesched.policy.migration.score_settings import score_conf
from cubesched.policy.migration.settings import settings_spec
from cubesched.policy.migration.yamltree import Block, Scalar, read_tree
from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, PROFILE_KIND, PolicyObject

POLICY_KEYS: Final = ("filter", "score", "postscore")
PICKING_KEYS: Final = ("priority_select_num", "least_select_name")
SECTIONS: Final = frozenset(
    {
        "common",
        "auth",
        "log",
        "cubelet_conf",
        "ossdb_config",
        "instance_db_config",
        "redis",
        "redis_read",
        "redis_write",
        "redis_metadata",
        "extra_conf",
        "req_template_conf",
        "hook_whitelist",
    }
)
"""Sections of the file that hold nothing of placement, but for one key of cubelet_conf."""
_GONE: Final = {key.path: key for key in KEYS if not key.here}
_NAMES: Final = frozenset(key.path.rsplit(".", 1)[-1].removesuffix("[]") for key in KEYS) - {"*"}
_FACTORY: Final = "no policy of its own: the factory Profiles run, there as here"
_UNUSED: Final = "a Profile is the default, so it is not used"
_POSTSCORE: Final = "adjusts only what legacy places; there, what Profiles place as well"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object to be written, and what to know of it."""

    kind: str
    name: str
    spec: Mapping[str, Any]
    notes: tuple[Note, ...]

    @property
    def body(self) -> dict[str, Any]:
        """The object as the API server takes it."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {"name": self.name},
            "spec": dict(self.spec),
        }


@dataclass(frozen=True, slots=True)
class Migration:
    """What a file becomes."""

    manifests: tuple[Manifest, ...]
    """The SchedulerConfig first."""
    notes: Notes
    compiled: CompileResult
    """What the compiler says of them; nothing is to be written where it has problems."""


def migrate(text: str, around: Surroundings | None = None) -> Migration:
    """Translate a file; raises UsageError where it is none of CubeMaster's."""
    notes = Notes()
    root = read_tree(text, notes)
    scheduler, cubelet = _parts(root)
    conf, scarce = score_conf(scheduler), scarce_label(scheduler)
    listed = scheduler.values.get("profiles")
    has_profiles = isinstance(listed, list) and bool(listed)
    has_default = any(
        isinstance(each, Block) and each.flag("default")
        for each in (listed if isinstance(listed, list) else ())
    )
    spec = settings_spec(scheduler, cubelet)
    with_legacy = not has_default and (
        has_profiles or "disableFactoryProfiles" in spec or any(k in scheduler for k in POLICY_KEYS)
    )
    reserved = {PROFILE_NAME} if with_legacy else set()
    profiles = profile_specs(scheduler, conf, scarce=scarce, reserved=reserved)
    if tree := score_tree(conf, profiles):
        spec["score"] = tree
    if with_legacy:
        spec["legacy"] = legacy_spec(scheduler, conf)
    _note_unused(scheduler, with_legacy=with_legacy, has_profiles=has_profiles)
    _note_rest(scheduler)
    manifests = tuple(_manifests(spec, profiles, notes))
    return Migration(manifests, notes, _compiled(manifests, around))


def _parts(root: Block) -> tuple[Block, Block | None]:
    """Return the scheduler's block and the one of cubelet_conf; the file may be the former."""
    known = {key.path.split(".")[1].removesuffix("[]") for key in KEYS if key.path[0] == "s"}
    if "scheduler" in root.values or SECTIONS & set(root.values):
        empty = Block("scheduler", root.notes)
        return root.block("scheduler") or empty, root.block("cubelet_conf")
    if known & set(root.values):
        return _moved(root), None
    raise UsageError(
        "is no configuration of CubeMaster: there is neither scheduler nor any key of it"
    )


def _moved(block: Block) -> Block:
    """Return the root as the scheduler's block that it is."""

    def move(value: Any) -> Any:
        if isinstance(value, list):
            return [move(item) for item in value]
        return _below(value) if isinstance(value, Block) else value

    def _below(child: Block) -> Block:
        child.path = f"scheduler.{child.path}" if child.path else "scheduler"
        for value in child.values.values():
            move(value)
        return child

    return _below(block)


def _note_unused(scheduler: Block, *, with_legacy: bool, has_profiles: bool) -> None:
    """Note what the old pipeline would have used, had there been one."""
    if with_legacy:
        if has_profiles and not _is_nothing(scheduler.values.get("postscore")):
            scheduler.note("postscore", Fate.CHANGED, _POSTSCORE)
        return
    for key in (*POLICY_KEYS, *PICKING_KEYS):
        if key in scheduler and key not in scheduler.taken:
            fate = Fate.LOST if key == "postscore" else Fate.IGNORED
            why = _POSTSCORE if key == "postscore" else _UNUSED if has_profiles else _FACTORY
            scheduler.note(key, fate, why)


def _note_rest(block: Block) -> None:
    """Note every key that nobody has read, as the table says or as unknown."""
    for name, value in list(block.values.items()):
        if name not in block.taken and value is not None:
            _note_unread(block, name, value)
        elif name in block.taken:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, Block):
                    _note_rest(child)


def _note_unread(block: Block, name: str, value: Any) -> None:
    key = _GONE.get(block.at(name))
    if key is not None and not _is_nothing(value):
        block.note(name, key.fate, key.why)
    elif key is None and name in _NAMES:
        block.note(name, Fate.IGNORED, "not used beside the rest")
    elif key is None:
        close = did_you_mean(name, _NAMES)
        hint = f"; {close}" if close.startswith("did you mean") else ""
        block.note(name, Fate.LOST, f"unknown key{hint}")


def _is_nothing(value: Any) -> bool:
    """Tell whether the key is set to what it is without being set."""
    if isinstance(value, Scalar):
        return value.text.lower() in ("", "false", "0", "-1")
    return not (value.values if isinstance(value, Block) else value)  # an empty mapping or list


def _manifests(spec: dict[str, Any], profiles: list[Profile], notes: Notes) -> Iterator[Manifest]:
    of_profiles = [notes.below(profile.path) for profile in profiles]
    taken = {note for each in of_profiles for note in each}
    rest = tuple(note for note in sorted(notes.found) if note not in taken)
    yield Manifest(CONFIG_KIND, CONFIG_NAME, spec, rest)
    for profile, own in zip(profiles, of_profiles, strict=True):
        yield Manifest(PROFILE_KIND, profile.name, profile.spec, tuple(own))


def _compiled(manifests: tuple[Manifest, ...], around: Surroundings | None) -> CompileResult:
    config, *profiles = (
        PolicyObject.from_body(manifest.kind, manifest.body) for manifest in manifests
    )
    return compile_set(profiles, config, around)
