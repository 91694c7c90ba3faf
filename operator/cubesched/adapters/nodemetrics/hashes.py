"""CubeMaster's layout: a hash for each node, asked for by the names of the nodes known here.

A node is looked up under the key of newer builds first, and under its bare id where that holds
nothing. Thousands of HMGETs go out in slices, so that no buffer grows with the fleet; each names
the fields that are read, so that no reply does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from redis.exceptions import ResponseError
from typing_extensions import override

from cubesched.adapters.nodemetrics.client import BlockingClient, packed_word
from cubesched.adapters.nodemetrics.keys import CUBEMASTER_PREFIX
from cubesched.adapters.nodemetrics.reader import Source
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.cubemaster_layout import FIELDS, Answer, decode_hashes
from cubesched.fleet.metrics_layout import Decoded

SLICE: Final = 500
_HEAD: Final = b"*%d\r\n" % (2 + len(FIELDS)) + packed_word(b"HMGET")
_FIELDS: Final = b"".join(packed_word(field.encode()) for field in FIELDS)
_NOTHING: Final = [None] * len(FIELDS)


class HashReports(Source):
    """Reads the hash of every node that is known."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    @override
    def read(self, names: Sequence[str]) -> Decoded:
        """Read the reports of `names`; those without any are left out."""
        answers = dict(zip(names, self._ask(CUBEMASTER_PREFIX, names), strict=True))
        absent = [name for name, answer in answers.items() if answer == _NOTHING]
        answers.update(zip(absent, self._ask("", absent), strict=True))
        return decode_hashes(names, list(answers.values()))

    def _ask(self, prefix: str, names: Sequence[str]) -> Iterator[Answer]:
        for start in range(0, len(names), SLICE):
            part = names[start : start + SLICE]
            commands = b"".join(_hmget(f"{prefix}{name}".encode()) for name in part)
            yield from map(_answer, self._client.exchange(commands, len(part)))

    @override
    def close(self) -> None:
        """Give a read under way up."""
        self._client.close()


def _hmget(key: bytes) -> bytes:
    return _HEAD + packed_word(key) + _FIELDS


def _answer(reply: Any) -> Answer:
    """Return a reply's values; None for a key that holds something else than a hash."""
    if not isinstance(reply, ResponseError):
        values: Answer = reply
        return values
    if str(reply).startswith("WRONGTYPE"):
        return None
    raise StoreUnavailable(f"Redis: {reply}")
