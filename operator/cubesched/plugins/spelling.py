"""The name somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean "cpu_load"?`, or the list of what is known when nothing is close."""
    choices = sorted(known)
    close = get_close_matches(name, choices, n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known are {', '.join(choices)}" if choices else "there are none"
