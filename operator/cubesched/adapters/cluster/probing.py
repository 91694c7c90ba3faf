"""What must be there before the work starts: our kinds in the API, and the right to use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from typing_extensions import override

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.api import API_VERSION, Resource
from cubesched.core.errors import ApiError, UsageError

POLL_SECONDS: Final = 1.0
ONE_WATCH: Final = {"watch": "1", "timeoutSeconds": "1"}
REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class _ServedResource(msgspec.Struct, frozen=True):
    name: str


class _Served(msgspec.Struct, frozen=True):
    resources: list[_ServedResource] = []


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that the operator must be allowed to do."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    """Empty means everywhere."""

    @override
    def __str__(self) -> str:
        """Return it as a person would look for it in a role."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        group = f" in group {self.group}" if self.group else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{group}{where}"


async def wait_for_api(
    transport: Transport,
    resources: Iterable[Resource],
    *,
    timeout_seconds: float,
    on_wait: Callable[[str], None],
) -> None:
    """Wait until the API serves all the kinds; UsageError names those still missing at the end.

    `on_wait` hears once what is being waited for, and again whenever that changes.
    """
    wanted = [resource.plural for resource in resources]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    told = ""
    while waiting := await _why_not_served(transport, wanted):
        if loop.time() >= deadline:
            raise UsageError(f"{waiting}; install the CRDs (kubectl apply -f crds/)")
        if waiting != told:
            told = waiting
            on_wait(waiting)
        await asyncio.sleep(POLL_SECONDS)


async def wait_for_watches(
    transport: Transport, resources: Iterable[Resource], *, on_wait: Callable[[str], None]
) -> None:
    """Wait until the server gives out watches of these kinds: just started, it refuses them."""
    for resource in resources:
        while True:
            try:
                async with transport.stream(resource.path(), params=ONE_WATCH, idle_seconds=5.0):
                    break
            except ApiError as error:
                on_wait(f"no watch of {resource.plural} yet: {error}")
                await asyncio.sleep(POLL_SECONDS)


async def _why_not_served(transport: Transport, wanted: Sequence[str]) -> str:
    """Say what is missing; empty when nothing is."""
    try:
        response = await transport.request("GET", f"/apis/{API_VERSION}")
    except ApiError as error:
        return str(error)
    if response.status not in {200, 404}:
        return str(error_of(response, f"reading /apis/{API_VERSION}"))
    served: set[str] = set()
    if response.status == 200:
        listed = msgspec.json.decode(response.body, type=_Served)
        served = {resource.name for resource in listed.resources}
    missing = [plural for plural in wanted if plural not in served]
    return f"the API does not serve {', '.join(missing)} of {API_VERSION}" if missing else ""


async def missing_rights(transport: Transport, rules: Iterable[Right]) -> list[str]:
    """Ask the API server which of these rights this identity lacks; each as one readable line."""
    rules = list(rules)
    allowed = await asyncio.gather(*(_is_allowed(transport, rule) for rule in rules))
    return [str(rule) for rule, ok in zip(rules, allowed, strict=True) if not ok]


async def _is_allowed(transport: Transport, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "namespace": right.namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    response = await transport.request("POST", REVIEWS_PATH, body=msgspec.json.encode(review))
    if response.status != 201:
        raise error_of(response, f"asking for the right to {right}")
    return msgspec.json.decode(response.body, type=_Review).status.allowed
