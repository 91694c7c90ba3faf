"""The binding protocol with one rule broken: patches of the real source, each of which must be
caught by the schedules.

A patch names the exact text it replaces, so a mutant whose place has changed fails by name
instead of testing nothing.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

OPERATOR = Path(__file__).parents[2] / "operator"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in one file below `operator/cubesched`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken version of the package."""

    name: str
    theme: str
    """The schedules that show it soonest."""
    edits: tuple[Edit, ...]
    may_patch: bool = False
    """Whether the replicas' rights let them patch a status, as they do not otherwise."""
    shows_as: str = "was confirmed though its reservation never fitted"
    """What the violation must say: a mutant that merely crashes has shown nothing."""

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of the run that is to catch it."""
        rights = ("--may-patch",) if self.may_patch else ()
        return ("--theme", self.theme, "--until", self.shows_as, *rights)

    def write_to(self, folder: Path) -> None:
        """Copy the package to `folder` with the edits made."""
        package = folder / "cubesched"
        shutil.copytree(
            OPERATOR / "cubesched", package, ignore=shutil.ignore_patterns("__pycache__")
        )
        for edit in self.edits:
            path = package / edit.file
            text = path.read_text()
            found = text.count(edit.old)
            assert found == 1, f"{self.name}: the text to replace is {found} times in {edit.file}"
            path.write_text(text.replace(edit.old, edit.new))


EVALUATE_ON_THE_REPLY = Mutant(
    "evaluate on the reply of the write, not on meeting the reservation in the stream",
    "mixed",
    (
        Edit(
            "scheduling/inflight.py",
            "            write.landed_reply = outcome is Outcome.LANDED\n",
            """            write.landed_reply = outcome is Outcome.LANDED
            if write.landed_reply and write.intent in {Intent.RESERVE, Intent.MOVE}:
                import msgspec

                entry = write.entry
                metadata = {
                    "uid": entry.uid,
                    "namespace": entry.namespace,
                    "name": entry.name,
                    "resourceVersion": version,
                }
                spec = msgspec.Raw(entry.spec_raw)
                stored = {"metadata": metadata, "spec": spec, "status": write.status}
                ledger = self.on_settled.__self__.fleet.ledger
                ledger.event("MODIFIED", msgspec.json.encode(stored), int(version))
                return
""",
        ),
    ),
)
COUNT_BOUND_ONLY = Mutant(
    "count bound requests only",
    "mixed",
    (
        Edit(
            "fleet/ledger.py",
            "        used = self.usage(entry.node)\n",
            """        used = Usage(unreadable=self.usage(entry.node).unreadable)
        for other in self.on_node(entry.node):
            if other.uid == entry.uid or other.phase != "Reserved":
                used.add(other.weight, creating=other.phase in CREATING)
""",
        ),
    ),
)
CONFIRM_WITHOUT_ID = Mutant(
    "confirm whatever reservation is met, by a patch without a version, with the right to patch",
    "late",
    (
        Edit(
            "adapters/cluster/writes.py",
            """            return await send(
                self._transport,
                "PUT",
""",
            """            if status.get("phase") == "Bound":
                return await send(
                    self._transport,
                    "PATCH",
                    self._resource.path(name, namespace=namespace, subresource="status"),
                    params={},
                    body=b'{"status": {"phase": "Bound"}}',
                    content_type="application/merge-patch+json",
                )
            return await send(
                self._transport,
                "PUT",
""",
        ),
    ),
    may_patch=True,
    shows_as="to Bound",
)
USE_THE_INCONSISTENT_TOKEN = Mutant(
    "go on with an inconsistent continue token",
    "listing",
    (
        Edit(
            "adapters/cluster/listwatch.py",
            """            raise error_of(response, "list")
""",
            """            import json

            offered = json.loads(response.body).get("metadata", {}).get("continue", "")
            if response.status == 410 and offered:
                return await self._get_page(offered)
            raise error_of(response, "list")
""",
        ),
        Edit(
            "adapters/cluster/listwatch.py",
            "            if version not in {None, page.version}:\n",
            "            if version == -1:\n",
        ),
    ),
)
SKIP_THE_UNREADABLE = Mutant(
    "skip an object that cannot be read",
    "unreadable",
    (
        Edit(
            "fleet/ledger.py",
            "            entry = read_entry(raw)\n            self._seen",
            """            entry = read_entry(raw)
            if entry.unreadable:
                return
            self._seen""",
        ),
        Edit(
            "fleet/ledger.py",
            "        entry = read_entry(raw)\n        before",
            """        entry = read_entry(raw)
        if entry.unreadable:
            return
        before""",
        ),
    ),
)
KEEP_THE_ID_ON_A_MOVE = Mutant(
    "keep the reservation's id on the direct move",
    "mixed",
    (
        Edit(
            "scheduling/reservations.py",
            "uid,\n            reservation_id=self.new_id(),\n",
            "uid,\n            reservation_id=entry.reservation_id or self.new_id(),\n",
        ),
    ),
    shows_as="changed its node under the same reservation id",
)
FORGET_THE_OVERDUE = Mutant(
    "leave overdue reservations to their writers",
    "late",
    (
        Edit(
            "scheduling/scheduler.py",
            "            self.reservations.evaluate_overdue()\n",
            "",
        ),
    ),
    shows_as="is still Reserved",
)
FORGET_THE_EVICTED = Mutant(
    "count what is being evicted as nothing",
    "draining",
    (
        Edit(
            "fleet/entries.py",
            '_OFF_NODE = frozenset({"Pending", "Succeeded", "Failed"})',
            '_OFF_NODE = frozenset({"Pending", "Succeeded", "Failed", "Evicting"})',
        ),
    ),
)
EVICT_STRAIGHT_TO_PENDING = Mutant(
    "take what runs straight back, without its agent",
    "draining",
    (
        Edit(
            "scheduling/draining.py",
            "self._move(entry, statuses.evicting)",
            "self._move(entry, statuses.pending)",
        ),
    ),
    shows_as="went from Running to Pending",
)
GIVE_BACK_BEFORE_STOPPING = Mutant(
    "give back what is evicted before it is stopped",
    "draining",
    (
        Edit(
            "agent/steps.py",
            """        await self._let_go(sandbox)
        await self.statuses.write(entry, statuses.evicted)
""",
            """        import asyncio

        await self.statuses.write(entry, statuses.evicted)
        await asyncio.sleep(0.5)
        await self._let_go(sandbox)
""",
        ),
    ),
    shows_as="is started twice",
)

KEEP_THE_ID_ON_A_RESUME = Mutant(
    "keep the reservation's id when a paused sandbox is to be resumed",
    "pausing",
    (
        Edit(
            "scheduling/reservations.py",
            """            reservation_id=self.new_id(),
            replica=self.identity,
            confirmation=self.modes.exact,
""",
            """            reservation_id=entry.reservation_id,
            replica=self.identity,
            confirmation=self.modes.exact,
""",
        ),
    ),
    shows_as="was reserved again under the same id",
)
RESUME_AT_THE_PAUSED_WEIGHT = Mutant(
    "count one that is to be resumed as what it weighs while it is paused",
    "pausing",
    (
        Edit(
            "fleet/entries.py",
            '_PAUSED = frozenset({"Paused", "Evicting"})',
            '_PAUSED = frozenset({"Paused", "Evicting", "Reserved"})',
        ),
        Edit(
            "scheduling/resumability.py",
            "        if needed > free:\n",
            "        if needed > free and free < 0:\n",
        ),
    ),
)
PAUSED_BEFORE_LETTING_GO = Mutant(
    "write Paused before the machine has let go",
    "pausing",
    (
        Edit(
            "agent/pausing.py",
            """        await self._pause(sandbox_of(entry), keeping)
        return keeping
""",
            """        self._is_paused.pop(sandbox_of(entry), None)
        return keeping
""",
        ),
    ),
    shows_as="was written Paused before the machine let go",
)
RESUME_WITHOUT_A_RESERVATION = Mutant(
    "resume what is paused when the machine has the room, without a reservation",
    "pausing",
    (
        Edit(
            "agent/steps.py",
            """        if await self._is_there(entry):
            await self.pausing.keep_paused(entry)
""",
            """        if await self._is_there(entry) and entry.wishes.is_paused:
            await self.pausing.keep_paused(entry)
        elif not entry.wishes.is_paused:
            await self._resume(entry)
""",
        ),
    ),
    shows_as="went from Paused to Running",
)
TAKE_BACK_WHAT_IS_CLAIMED = Mutant(
    "give what a silent node's agent has claimed to another node",
    "dying",
    (
        Edit(
            "scheduling/lostnodes.py",
            '_UNSTARTED = frozenset({"Reserved", "Bound"})',
            '_UNSTARTED = frozenset({"Reserved", "Bound", "Starting"})',
        ),
    ),
    shows_as="is started twice",
)
EXPIRE_WHAT_RUNS = Mutant(
    "count the time to live of what has not finished",
    "dying",
    (
        Edit(
            "scheduling/expiry.py",
            '_FINISHED = frozenset({"Succeeded", "Failed"})',
            '_FINISHED = frozenset({"Succeeded", "Failed", "Running"})',
        ),
    ),
    shows_as="was deleted while Running",
)

MUTANTS = (
    EVALUATE_ON_THE_REPLY,
    COUNT_BOUND_ONLY,
    CONFIRM_WITHOUT_ID,
    USE_THE_INCONSISTENT_TOKEN,
    SKIP_THE_UNREADABLE,
    KEEP_THE_ID_ON_A_MOVE,
    FORGET_THE_OVERDUE,
    FORGET_THE_EVICTED,
    EVICT_STRAIGHT_TO_PENDING,
    GIVE_BACK_BEFORE_STOPPING,
    KEEP_THE_ID_ON_A_RESUME,
    RESUME_AT_THE_PAUSED_WEIGHT,
    PAUSED_BEFORE_LETTING_GO,
    RESUME_WITHOUT_A_RESERVATION,
    TAKE_BACK_WHAT_IS_CLAIMED,
    EXPIRE_WHAT_RUNS,
)
