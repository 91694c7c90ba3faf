"""What this process must be allowed to do, from the same table as the generated role."""

from __future__ import annotations

from cubesched.adapters.cluster.probing import Right
from cubesched.api.rights import GRANTS, OPERATOR


def operator_rights(namespace: str) -> list[Right]:
    """Return every right of the operator's role; the local ones hold in `namespace`."""
    return [
        _right(verb, resource, group=grant.group, namespace=namespace if grant.is_local else "")
        for grant in GRANTS
        if grant.role == OPERATOR
        for resource in grant.resources
        for verb in grant.verbs
    ]


def _right(verb: str, resource: str, *, group: str, namespace: str) -> Right:
    plural, _, subresource = resource.partition("/")
    return Right(verb, plural, group=group, subresource=subresource, namespace=namespace)
