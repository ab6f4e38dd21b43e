"""What the parts of a project tell each other: facts of the whole, and which of them can matter to which part."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from migrate.infer.facts import Facts
from migrate.port.parts import Part
from migrate.port.scan import unpack_facts

if TYPE_CHECKING:
    from migrate.port.run import Plan


class Exchanged:
    """The facts of all parts: what the quick look told, and what the conversions found."""

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self.every = Facts()
        for s in plan.scans.values():
            self.every |= s.facts
        self._swaps = any(s.swaps for s in plan.scans.values())
        self._opening: set[str] = set()  # the files that were seen where a Sequential is opened
        self._swapping: set[str] = set()

    def learn(self, part: Part, result: Mapping[str, Any]) -> None:
        """Takes in what the conversion of a part found."""
        found = unpack_facts(result["facts"])
        self.every |= replace(found, opened_sequentials=False, swapped_layers=False)
        if found.opened_sequentials:
            self._opening.update(result["seen"])
        if found.swapped_layers:
            self._swapping.update(result["seen"])

    def given(self, part: Part) -> Facts:
        """The facts that can matter to a part, so that others may change without it."""
        scans = [self.plan.scans[p] for p in part.files if p in self.plan.scans]
        modules = {self.plan.layout.modules[p] for p in part.files if p in self.plan.layout.modules}
        imported = frozenset(n for n in self.every.imported_names if n.rpartition(".")[0] in modules)
        imports = {i for s in scans for i in s.imports}
        if scans and not any(i.partition(".")[0] == "torch" or self.plan.layout.find(part.root, i) for i in imports):
            return Facts(imported_names=imported)
        stored = {a for s in scans for a in s.attributes}
        texts = self.every.texts if any(s.looks_up for s in scans) or not scans else frozenset()
        known = replace(self.every, opened_attributes=self.every.opened_attributes & stored, imported_names=imported, texts=texts)
        if part.cut:  # what the other parts open is not worth a second conversion of a large package: the careful form holds for all of it
            return replace(known, opened_sequentials=True, swapped_layers=self._swaps)
        opened, swapped = not self._opening.isdisjoint(part.files), not self._swapping.isdisjoint(part.files)
        return replace(known, opened_sequentials=opened, swapped_layers=swapped)

    def holds(self, part: Part, result: Mapping[str, Any] | None) -> bool:
        """Whether a part was converted with the facts as they are now, or with others that make no difference to it."""
        if result is None or result.get("failed"):
            return result is not None
        found = unpack_facts(result["facts"])
        had, now = unpack_facts(result["given"]) | found, self.given(part) | found
        if not result["asked"]:
            had, now = (replace(f, opened_sequentials=False, swapped_layers=False) for f in (had, now))
        return had == now
