"""What an exception of somebody's code says, in one line of bounded length."""

from __future__ import annotations

MOST_CHARACTERS = 200


def told(error: BaseException) -> str:
    """Return `KeyError: 'zone'`; never raises, whatever the exception's own text does."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # an exception of anybody's code may fail at that as well
        text = "without words"
    line = " ".join(text.split())
    whole = f"{kind}: {line}" if line else kind
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[: MOST_CHARACTERS - 3]}..."
