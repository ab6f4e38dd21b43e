"""Fits support code to its calls: a parameter that decides something and that no call passes becomes its default, and what that leaves unused goes.

Callers come first, so that what their own folding leaves is what counts. Whatever is used in other ways than by plain calls stays general.
"""
import ast
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from migrate.fitting.cleaning import Cleaning
from migrate.fitting.fitted import Fitted, Known, Values
from migrate.fitting.folding import CannotFold, Folder
from migrate.fitting.shape import Decisive, Families, Place, function_of, is_super, names_in, parameters, parsed, uses_in
from migrate.fitting.uses import Call, Uses, call_of, read
from migrate.fitting.values import nodes_of, same

SAVES = 2  # lines that a check of arguments has to be worth


@dataclass(eq=False)
class Fitting:
    """The definitions of a module, by name, while they are fitted. `words`: the uses by the code that it is for; `roots`: what that names."""

    texts: dict[str, str]
    roots: Collection[str]
    words: Collection[str]
    done: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, dict[str, int | None]] = field(default_factory=dict)  # definition -> the parameters that went, with their positions

    @cached_property
    def explicit(self) -> Uses:
        """The uses by the code alone."""
        return read(self.words, self.roots)

    @cached_property
    def uses(self) -> Uses:
        """The uses by the code and by the definitions that are done."""
        found = read(self.words, self.roots)
        for n, d in self.families.nodes.items():
            if isinstance(d, ast.ClassDef) and len(d.bases) > 1:  # whose constructor calls whose is not told by the bases alone
                found.values |= {n} | names_in(d) & self.families.nodes.keys()
        if "type()" in self.words:
            found.values |= {n for n, d in self.families.nodes.items() if isinstance(d, ast.ClassDef)}
        return found

    @cached_property
    def families(self) -> Families:
        """The definitions as they are in general."""
        return Families({n: parsed(t) for n, t in self.texts.items()}, self.words, self.roots)

    @cached_property
    def decisive(self) -> Decisive:
        """Which parameters decide something."""
        return Decisive(self.families)

    def run(self) -> dict[str, str]:
        """The new texts of the definitions that are left."""
        for name in self.families.callers_first():
            if name in self.uses.calls or name in self.uses.values:
                self.done[name], known = self._fitted(name)
                self._read_uses(name, known)
        return Cleaning(self.families, self.done, self.dropped, self.words).run()

    def _fitted(self, name: str) -> tuple[str, Known]:
        """The text of a definition for its calls, and what is known in it."""
        text, node = self.texts[name], self.families.nodes[name]
        function = function_of(node)
        if name in self.uses.values or self.families.calls_itself(name) or getattr(node, "decorator_list", None) or not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return text, {}
        gone, sets = self._known(name, function, isinstance(node, ast.ClassDef)) if function else ({}, {})
        if not gone and not sets and not names_in(node) & self.families.absent:
            return text, {}
        try:
            plain = Fitted(self.families, name, text, gone).run()
            checked = Fitted(self.families, name, text, gone, sets, self._explicit(name)).run() if sets else plain
        except CannotFold:
            return text, {}
        best = checked if checked.text.count("\n") <= plain.text.count("\n") - SAVES else plain
        if best.gone:
            self.dropped[name] = {p: i for p, i, _ in self.families.places(name) if p in best.gone}
        return best.text, best.known

    def _known(self, name: str, function: ast.FunctionDef, method: bool) -> tuple[Known, Known]:
        """Parameters that are one constant in all calls, and can go; those of a few constants, which calls of the code pass."""
        gone: Known = {}
        sets: Known = {}
        explicit = self._explicit(name)
        for place in parameters(function, method):
            values = _values(self.uses.calls.get(name, []), place)
            if values is None or len(values) > 4:
                continue
            if len(values) == 1 and place[0] not in explicit:
                gone[place[0]] = values
            else:
                sets[place[0]] = values
        return {p: v for p, v in gone.items() if self.decisive.decides(name, p) or not _mentioned(function, p)}, sets

    def _explicit(self, name: str) -> set[str]:
        """The parameters that calls of the code pass."""
        calls = [c for n, calls in self.explicit.calls.items() if self.families.owner(n) == name for c in calls]
        return {p for p, i, _ in self.families.places(name) if any(p in c.keywords or i is not None and i < len(c.args) for c in calls)}

    def _read_uses(self, name: str, known: Known) -> None:
        """Takes what a definition calls for uses, with what is known of the arguments."""
        node = parsed(self.done[name])
        reader = Folder(self.done[name].split("\n"), known)
        plain: set[int] = set()
        for n in nodes_of(node):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in self.texts and not _starred(n):
                plain.add(id(n.func))
                self._add(n.func.id, call_of(n, reader.outcomes))
            elif isinstance(n, ast.Call) and is_super(n) and name in self.families.bases:
                base = self.families.bases[name]
                self._value(base) if _starred(n) else self._add(base, call_of(n, reader.outcomes))
        if isinstance(node, ast.ClassDef):
            plain.update(id(b) for b in node.bases)
            if (parent := self.families.bases.get(name)) and function_of(node) is None:
                self._inherit(name, parent)
            elif parent:
                self.uses.calls.setdefault(parent, [])
        for mentioned in names_in(node) & self.texts.keys():
            self.uses.calls.setdefault(mentioned, [])
        for n in uses_in(node):
            if id(n) not in plain and n.id in self.texts and n.id != name:
                self._value(n.id)

    def _add(self, name: str, call: Call) -> None:
        self.uses.add(name, call)

    def _value(self, name: str) -> None:
        self.uses.values.add(name)

    def _inherit(self, name: str, base: str) -> None:
        """The calls of a class without a constructor are those of its base's."""
        self.uses.calls.setdefault(base, []).extend(self.uses.calls.get(name, []))
        if name in self.uses.values:
            self._value(base)


def _values(calls: list[Call], place: Place) -> Values | None:
    """The constants that a parameter is in some calls, or None."""
    name, position, default = place
    found: list[object] = []
    for c in calls:
        given = c.keywords.get(name, MISSING)
        if given is MISSING and position is not None and position < len(c.args):
            given = c.args[position]
        if given is MISSING:
            given = (default.value,) if isinstance(default, ast.Constant) else None
        if given is None:
            return None
        found += [v for v in given if not any(same(v, f) for f in found)]  # type: ignore[attr-defined]
    return tuple(found) or None


MISSING: object = object()


def _mentioned(function: ast.FunctionDef, name: str) -> bool:
    return name in names_in(function)


def _starred(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
