"""Agents that confirm, and modes that change, each with one rule broken."""

from __future__ import annotations

from tests.model.mutants import Edit, Mutant

CLAIM_BEFORE_ACKNOWLEDGED = Mutant(
    "let the agent start what it is to confirm before its claim is acknowledged",
    "agent",
    (
        Edit(
            "agent/steps.py",
            "            if self.confirming.may_claim(entry):\n",
            """            if self.confirming.may_claim(entry):
                await self.room.admit(order)
                await self._create(order)
""",
        ),
    ),
    shows_as="is started before it is claimed",
)
NO_ROOM_CHECK = Mutant(
    "let the agent claim and start without asking what the machine really holds",
    "agent",
    (
        Edit(
            "agent/room.py",
            "    used = total(taken.values())\n",
            "    used, taken = NOTHING, {}\n",
        ),
        Edit(
            "agent/confirming.py",
            "            if sandbox not in explained:\n",
            "            if not sandbox:\n",
        ),
    ),
    shows_as="is over its limits",
)
TAKE_BACK_CLAIMED = Mutant(
    "take back what an agent has claimed but not started in time",
    "agent",
    (
        Edit(
            "scheduling/deadlines.py",
            '    return entry.phase == "Bound" or',
            '    return entry.phase in {"Bound", "Starting"} or',
        ),
    ),
    shows_as="is started twice",
)
JUDGE_AN_INCOMPLETE_LIST = Mutant(
    "let the agent confirm before its list is complete",
    "agent",
    (
        Edit(
            "agent/requests.py",
            "        self._list.append(entry)\n",
            "        self._list.append(entry)\n        self.meet(entry)\n",
        ),
        Edit(
            "agent/requests.py",
            "        self.is_listed = False\n",
            "        self.is_listed = True\n",
        ),
        Edit("agent/nodeagent.py", "        await self._listed.wait()\n", ""),
    ),
)
JUDGE_BY_THE_SPEC = Mutant(
    "let the agent judge by what the spec asks for now, not by what was admitted",
    "agent",
    (
        Edit(
            "agent/confirming.py",
            "                usage.add(entry.weight, creating=entry.phase in CREATING)\n",
            """                from cubesched.fleet.entries import Weight

                asked = entry.request(attempt=0, refused_nodes=())
                weight = Weight(asked.cpu_millis, asked.memory_bytes, asked.disk_bytes)
                usage.add(weight, creating=entry.phase in CREATING)
""",
        ),
    ),
)
BIND_DIRECTLY_ALONE = Mutant(
    "bind directly before every Lease shows the revision that asks for it",
    "modes",
    (
        Edit(
            "scheduling/modes.py",
            "        return policy is not None and self._everyone_runs(policy.revision)\n",
            "        return policy is not None\n",
        ),
    ),
    shows_as="was bound directly before all Leases showed that mode",
)
CONFIRM_BY_THE_DIRECTLY_BOUND = Mutant(
    "count what was bound directly as nothing",
    "modes",
    (
        Edit(
            "fleet/entries.py",
            "        weight=_counted(status.phase, reservation) if counted else NOTHING,\n",
            """        weight=NOTHING
        if not counted or (reservation and reservation.confirmation == "none")
        else _counted(status.phase, reservation),
""",
        ),
    ),
)

MODE_MUTANTS = (
    CLAIM_BEFORE_ACKNOWLEDGED,
    NO_ROOM_CHECK,
    TAKE_BACK_CLAIMED,
    JUDGE_AN_INCOMPLETE_LIST,
    JUDGE_BY_THE_SPEC,
    BIND_DIRECTLY_ALONE,
    CONFIRM_BY_THE_DIRECTLY_BOUND,
)
