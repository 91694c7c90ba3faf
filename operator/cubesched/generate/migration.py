"""The reference page of CubeMaster's keys, from the table that `cubesched import` works by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cubesched.generate.markdown import code, first_lines, table
from cubesched.policy.legacy import HINTS
from cubesched.policy.migration.keys import GONE, LEGACY, PROFILES, SETTINGS, Key
from cubesched.policy.migration.notes import Fate

_WHAT: Final = """\
What `cubesched import` makes of each key of CubeMaster's configuration file. `*` stands for a name,
`[]` for each entry of a list. [Migrate from CubeMaster](../migrate-from-cubemaster.md) says how to
use it, and what places differently."""

_CARRIED: Final = (
    ("Settings", "Fields of `SchedulerConfig.spec`.", SETTINGS),
    (
        "The filter, score and postscore blocks",
        (
            "Fields of `SchedulerConfig.spec`, where no Profile is the default. What Profiles rate"
            " by (`resource_weights`, `plugin_conf`) is in `score.resourceWeights` and"
            " `score.plugins` as well."
        ),
        LEGACY,
    ),
    ("Profiles", "Fields of `SchedulerProfile.spec`.", PROFILES),
)
_GONE: Final = (
    ("Not carried over", "They have an effect there and none here.", Fate.LOST),
    ("Without a meaning here", "They do not change where a request goes.", Fate.IGNORED),
)


def migration_page() -> str:
    """Return the Markdown page of all keys."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Keys of CubeMaster", _WHAT)
    for title, what, keys in _CARRIED:
        yield from _carried(title, what, keys)
    every = (*LEGACY, *GONE)
    for title, what, fate in _GONE:
        rows = [(code(key.path), key.why) for key in every if not key.here and key.fate is fate]
        yield from ("", f"## {title}", "", what)
        yield from table(("key", "why"), rows)
    yield from ("", "## Names without a meaning here", "", "Filters and scores.")
    yield from table(
        ("name", "why"), [(code(n), why.removesuffix(": take it out")) for n, why in HINTS.items()]
    )


def _carried(title: str, what: str, keys: Sequence[Key]) -> Iterator[str]:
    rows = [(code(key.path), key.here, key.why) for key in keys if key.here]
    yield from ("", f"## {title}", "", what)
    if any(why for _, _, why in rows):
        yield from table(("key", "here", "to know"), rows)
    else:
        yield from table(("key", "here"), [row[:2] for row in rows])
