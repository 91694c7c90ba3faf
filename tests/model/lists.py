"""Lists: pages at one revision, continue tokens that expire, and lists from an older cache."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from random import Random

import orjson
from tests.model.resources import Refusal, Selector, Target, selector
from tests.model.store import Key, Object, Store

NEWEST = -1
"""The revision inside an inconsistent continue token: whatever is newest when it is used."""
CACHE_LAG = 3
"""A list "from the cache" (resourceVersion=0) is up to so many revisions old."""


def encode_token(revision: int, start: Key) -> str:
    """Return an opaque continue token: go on with `start`, at `revision`."""
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "\0".join(start)})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def decode_token(token: str) -> tuple[int, Key]:
    """Return what `encode_token` put in; 400 for anything else."""
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        value = orjson.loads(text)
        return value["rv"], Key(*value["start"].split("\0"))
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(400, "BadRequest", f"continue key is not valid: {error}") from error


def serve_list(
    store: Store,
    target: Target,
    params: Mapping[str, str],
    *,
    cache_floor: int,
    most_per_page: int,
    rng: Random,
) -> Object:
    """Answer one list request."""
    chosen = selector(target.kind, params)
    limit = min(int(params.get("limit", "0")), most_per_page)
    token = params.get("continue", "")
    if token:
        if params.get("resourceVersion", "") not in {"", "0"}:
            raise Refusal(
                400, "BadRequest", "specifying resource version is not allowed with continue"
            )
        revision, start = _position(store, token)
    else:
        revision, start = _first_page(store, params, cache_floor=cache_floor, rng=rng), None
        if params.get("resourceVersion") == "0":
            limit = 0
    return _page(store, target, chosen, revision=revision, start=start, limit=limit)


def _position(store: Store, token: str) -> tuple[int, Key]:
    revision, start = decode_token(token)
    if revision == NEWEST:
        return store.revision, start
    _refuse_future(store, revision)
    if revision < store.compacted:
        raise Refusal(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter, or use the continue token "
            "in this response to retrieve the remainder of the results. Continuing with the "
            "provided token results in an inconsistent list - objects that were created, "
            "modified, or deleted between the time the first chunk was returned and now may "
            "show up in the list.",
            continue_token=encode_token(NEWEST, start),
        )
    return revision, start


def _first_page(store: Store, params: Mapping[str, str], *, cache_floor: int, rng: Random) -> int:
    wanted = params.get("resourceVersion", "")
    if wanted == "":
        return store.revision
    oldest = max(cache_floor, store.compacted, store.revision - CACHE_LAG)
    if wanted == "0":
        return rng.randint(oldest, store.revision)
    revision = int(wanted)
    _refuse_future(store, revision)
    match = params.get("resourceVersionMatch", "Exact" if params.get("limit") else "")
    if match != "Exact":
        return rng.randint(max(oldest, revision), store.revision)
    if revision < store.compacted:
        raise Refusal(410, "Expired", "The resourceVersion for the provided list is too old.")
    return revision


def _refuse_future(store: Store, revision: int) -> None:
    if revision > store.revision:
        raise Refusal(
            504,
            "Timeout",
            f"Too large resource version: {revision}, current: {store.revision}",
            retry_after_seconds=1,
        )


def _page(
    store: Store, target: Target, chosen: Selector, *, revision: int, start: Key | None, limit: int
) -> Object:
    state = store.state_at(revision)
    keys = sorted(
        key
        for key, obj in state.items()
        if target.holds(key) and chosen.matches(obj) and (start is None or key >= start)
    )
    shown, rest = (keys[:limit], keys[limit:]) if limit else (keys, [])
    metadata: dict[str, object] = {"resourceVersion": str(revision), "continue": ""}
    if rest:
        metadata["continue"] = encode_token(revision, rest[0])
        if not chosen.terms:
            metadata["remainingItemCount"] = len(rest)
    return {
        "kind": f"{target.kind.kind}List",
        "apiVersion": target.kind.group_version,
        "metadata": metadata,
        "items": [state[key] for key in shown],
    }
