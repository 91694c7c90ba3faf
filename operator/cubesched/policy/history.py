"""The last sets that ran, as they are kept in the cluster: to run on after a restart.

A record holds the stored objects themselves, so whoever reads it compiles them as always and
believes nothing else that it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from cubesched.policy.objects import CONFIG_KIND, PROFILE_KIND, PolicyObject

FORMAT: Final = 1
MAX_RECORD_BYTES: Final = 1_000_000
"""Beyond this a set is not kept: etcd takes 1.5 MiB an object."""


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The objects of one set."""

    revision: str
    """Hash of the specs, as the running set has it."""
    profiles: tuple[PolicyObject, ...]
    config: PolicyObject | None

    @property
    def name(self) -> str:
        """A name that only this content has."""
        return f"cubesched-policy-{self.revision}-{_digest(self.data())}"

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "format": FORMAT,
            "revision": self.revision,
            "profiles": [_stored(profile) for profile in self.profiles],
            "config": _stored(self.config) if self.config else None,
        }


def record_of(
    revision: str, profiles: Sequence[PolicyObject], config: PolicyObject | None
) -> PolicyRecord:
    """Return the record of a set that has just been activated."""
    return PolicyRecord(revision, tuple(sorted(profiles, key=lambda p: p.name)), config)


def read_record(data: object) -> PolicyRecord:
    """Return what a record holds; raises ValueError where it is not one of ours."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f"not a policy record of format {FORMAT}")
    profiles, config = data.get("profiles"), data.get("config")
    if not isinstance(profiles, list):
        raise ValueError("profiles is not a list")
    return PolicyRecord(
        revision=str(data.get("revision", "")),
        profiles=tuple(_read(PROFILE_KIND, stored) for stored in profiles),
        config=None if config is None else _read(CONFIG_KIND, config),
    )


def _stored(subject: PolicyObject) -> dict[str, Any]:
    return {
        "name": subject.name,
        "uid": subject.uid,
        "generation": subject.generation,
        "spec": subject.spec,
    }


def _read(kind: str, stored: object) -> PolicyObject:
    if not isinstance(stored, Mapping):
        raise ValueError(f"a {kind} is not an object")
    name, uid, generation = stored.get("name"), stored.get("uid"), stored.get("generation")
    if not isinstance(name, str) or not isinstance(uid, str) or type(generation) is not int:
        raise ValueError(f"a {kind} has no name, uid and generation")
    return PolicyObject(kind, name, uid, generation, "", stored.get("spec"))


def _digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return blake2b(text.encode(), digest_size=4).hexdigest()
