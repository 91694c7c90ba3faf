"""Values of options, read and checked: what is refused names what was found and what is allowed."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Final

MAX_PREFIX_CHARS: Final = 200
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PREFIX: Final = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-a-z0-9]*)?")


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range, both ends included."""

    def read(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def name_prefix(text: str) -> str:
    """Read the beginning of object names that end in a number."""
    if len(text) > MAX_PREFIX_CHARS or not _PREFIX.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} begins no object name: use at most {MAX_PREFIX_CHARS} of a-z, 0-9, '-' "
            "and '.', beginning with a letter or digit"
        )
    return text


def object_name(text: str) -> str:
    """Read the name of an object: what is none would make another path of the URL."""
    if not _NAME.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} is no object name: use at most 253 of a-z, 0-9, '-' and '.', beginning and"
            " ending with a letter or digit"
        )
    return text


def request_name(text: str) -> tuple[str, str]:
    """Read NAMESPACE/NAME, or NAME in the namespace default."""
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise ArgumentTypeError(f"{text!r} is not of the form NAMESPACE/NAME")
    return object_name(namespace or "default"), object_name(name)
