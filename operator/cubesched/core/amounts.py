"""Amounts as people write them in Kubernetes: `2000m`, `1536Mi`."""

from __future__ import annotations

from collections.abc import Callable

_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def millis(amount: int) -> str:
    """Return millicores as text, `2000m`."""
    return f"{amount}m"


def binary_bytes(amount: int) -> str:
    """Return bytes as text: exact where a unit divides them, else down to one decimal."""
    for unit, size in _BINARY:
        if amount >= size:
            whole, rest = divmod(amount, size)
            return f"{whole}.{rest * 10 // size}{unit}" if rest else f"{whole}{unit}"
    return str(amount)


def told_apart(needed: int, have: int, show: Callable[[int], str]) -> tuple[str, str]:
    """Return both amounts as text, in plain bytes where rounding would hide the difference."""
    if show is binary_bytes and have < needed < have + needed / 20:
        return f"{needed} bytes", f"{have} bytes"
    return show(needed), show(have)


def rounded_down(amount: int) -> tuple[int, str]:
    """Return bytes at most `amount`, and the short text that names exactly so many.

    At most a tenth is lost, and nothing of what a unit divides.
    """
    for unit, size in _BINARY:
        whole, rest = divmod(amount, size)
        if whole and not rest:
            return amount, f"{whole}{unit}"
        if whole >= 10:
            return whole * size, f"{whole}{unit}"
    return amount, str(amount)
