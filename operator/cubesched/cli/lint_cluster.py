"""What `cubesched lint --cluster` puts the files over, and the nodes it tries them on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.app.livestate import Objects, read_objects, read_reports, state_under
from cubesched.manifests.judging import Held
from cubesched.policy.compiler import CompileResult
from cubesched.policy.livelints import look_at_set
from cubesched.policy.objects import Problem
from cubesched.policy.policyset import PolicySet


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of a cluster, and where its nodes report."""

    objects: Objects
    redis_url: str
    layout: str

    @classmethod
    async def read(
        cls, kubeconfig: str | None, context: str | None, *, redis_url: str, layout: str
    ) -> Cluster:
        """List everything; raises CubeschedError when that cannot be done."""
        connection = await connect(kubeconfig, context)
        async with AiohttpTransport(connection) as transport:
            return cls(await read_objects(transport), redis_url, layout)

    @property
    def held(self) -> Held:
        """The policy that it holds."""
        return Held(self.objects.profiles, self.objects.config)

    def look(self, policy: PolicySet) -> Iterator[Problem]:
        """Yield what its live nodes show to be odd about a set; without reports a line says so."""
        state = state_under(CompileResult(policy), self.objects)
        if not state.node_names:
            return
        asyncio.run(read_reports(self.redis_url, self.layout, state))
        if state.metrics_problem:
            sys.stderr.write(f"cubesched: no node report was read: {state.metrics_problem}\n")
        yield from look_at_set(policy, state.fleet.snapshot, is_measured=not state.metrics_problem)
