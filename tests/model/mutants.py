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
    edits: tuple[Edit, ...]

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
    (
        Edit(
            "fleet/ledger.py",
            "        used = self.usage(entry.node)\n        return (",
            """        used = Usage(unreadable=self.usage(entry.node).unreadable)
        for other in self.on_node(entry.node):
            if other.uid == entry.uid or other.phase != "Reserved":
                used.add(other.weight, creating=other.phase in CREATING)
        return (""",
        ),
    ),
)
CONFIRM_WITHOUT_ID = Mutant(
    "confirm whatever reservation is met, not the one that was evaluated",
    (
        Edit(
            "adapters/cluster/writes.py",
            '''        """Replace the whole status if the object still is at `resource_version`."""
''',
            '''        """Replace the whole status."""
        if status.get("phase") == "Bound":
            raw = await get_raw(self._transport, self._resource, name, namespace=namespace)
            stored = msgspec.json.decode(raw or b"{}")
            if stored.get("status", {}).get("phase") == "Reserved":
                resource_version = stored["metadata"]["resourceVersion"]
                status = {**stored["status"], "phase": "Bound"}
''',
        ),
    ),
)
USE_THE_INCONSISTENT_TOKEN = Mutant(
    "go on with an inconsistent continue token",
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
    (
        Edit(
            "fleet/ledger.py",
            "    def _put(self, entry: Entry) -> None:\n",
            """    def _put(self, entry: Entry) -> None:
        if entry.unreadable:
            return
""",
        ),
    ),
)
EVALUATE_WHILE_LISTING = Mutant(
    "evaluate while the list is incomplete",
    (
        Edit("fleet/ledger.py", "            self.exact\n            and not", "            not"),
        Edit(
            "scheduling/reservations.py",
            "        if not ledger.exact or ledger.blind:\n",
            "        if ledger.blind:\n",
        ),
    ),
)
KEEP_THE_ID_ON_A_MOVE = Mutant(
    "keep the reservation's id on the direct move",
    (
        Edit(
            "scheduling/reservations.py",
            "            reservation_id=self.new_id(),\n",
            "            reservation_id=entry.reservation_id or self.new_id(),\n",
        ),
    ),
)
FORGET_THE_OVERDUE = Mutant(
    "leave overdue reservations to their writers",
    (
        Edit(
            "scheduling/scheduler.py",
            "            self.reservations.evaluate_overdue()\n",
            "",
        ),
    ),
)

MUTANTS = (
    EVALUATE_ON_THE_REPLY,
    COUNT_BOUND_ONLY,
    CONFIRM_WITHOUT_ID,
    USE_THE_INCONSISTENT_TOKEN,
    SKIP_THE_UNREADABLE,
    EVALUATE_WHILE_LISTING,
    KEEP_THE_ID_ON_A_MOVE,
    FORGET_THE_OVERDUE,
)
