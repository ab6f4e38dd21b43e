"""Fits support code to its calls: a parameter that decides something and that no call passes becomes its default, and what that leaves unused goes.

Callers come first, so that what their own folding leaves is what counts. Whatever is used in other ways than by plain calls stays general.
"""
import ast
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from migrate.support.cleaning import Cleaning
from migrate.support.folding import ABSENT, WIDTH, CannotFold, Folder, literal, nodes_of, pairs, same
from migrate.support.shape import Decisive, Families, Place, function_of, is_own, is_super, names_in, parameters, parsed, uses_in
from migrate.support.uses import Call, Uses, call_of, read

Values = tuple[object, ...]
Known = dict[str, Values]
SAVES = 2  # lines that a check of arguments has to be worth
INDENT = "    "


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
            if (base := self.families.bases.get(name)) and function_of(node) is None:
                self._inherit(name, base)
            elif base:
                self.uses.calls.setdefault(base, [])
        for n in names_in(node) & self.texts.keys():
            self.uses.calls.setdefault(n, [])
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


class StillBound(Exception):
    """A parameter can't go: it may be looked up before it is bound."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(eq=False)
class Fitted:
    """One definition with some parameters gone and the values of others known; `explicit`: those that calls of the code pass."""

    families: Families
    name: str
    original: str
    gone: Known
    sets: Known = field(default_factory=dict)
    explicit: Collection[str] = ()
    known: Known = field(default_factory=dict)
    text: str = ""

    @property
    def absent(self) -> Known:
        """The classes without instances."""
        return dict.fromkeys(self.families.absent & names_in(self.families.nodes[self.name]), (ABSENT,))

    def run(self) -> "Fitted":
        """Writes it. Raises CannotFold."""
        node = self.families.nodes[self.name]
        lines = self.original.split("\n")
        self.gone = dict(self.gone)
        while True:
            try:
                new = self._class(lines, node) if isinstance(node, ast.ClassDef) else self._entry(lines, node)
            except StillBound as e:
                del self.gone[e.name]
            else:
                self.text = "\n".join(new)
                return self

    def _entry(self, lines: list[str], f: ast.stmt) -> list[str]:
        """The function, or the constructor, that takes the arguments."""
        assert isinstance(f, ast.FunctionDef)
        folder = Folder(lines, self.absent | self.gone | self.sets, self.gone.keys())
        body = folder.function(f)
        for p in self.gone:
            if not _bound_first(body, p):
                raise StillBound(p)
        self.known = {p: v for p, v in self.sets.items() if p not in folder.changing}
        margin = " " * f.body[0].col_offset
        checks = [margin + _check(p, v) for p, v in self.sets.items() if p in self.explicit and p in folder.folded]
        at = _docstring(f)
        return [*_head(lines, f, self.gone.keys()), *body[:at], *checks, *body[at:]]

    def _class(self, lines: list[str], node: ast.ClassDef) -> list[str]:
        new: dict[ast.FunctionDef, list[str]] = {}
        attributes: Known = {}
        if (init := function_of(node)) is not None:
            new[init] = self._entry(lines, init)
            attributes = self._attributes(new[init])
            if [t.strip() for t in new[init]] == ["def __init__(self):", "pass"] and self.families.is_plain(self.name) and self.name not in self.families.bases:
                new[init] = []
        self.known |= attributes
        for m in node.body:
            if isinstance(m, ast.FunctionDef) and m is not init and (attributes or self.absent):
                new[m] = [*lines[m.lineno - 1 : m.body[0].lineno - 1], *Folder(lines, self.absent | attributes).function(m)]
        return _with_methods(lines, new)

    def _attributes(self, init: list[str]) -> Known:
        """The attributes that the constructor gives one of a few constants, and that nothing changes."""
        body = _statements(init)[0].body  # type: ignore[attr-defined]
        folder = Folder(init, self.known)
        own = self.families.is_plain(self.name)
        found: Known = {}
        for s in body:
            own = own or any(is_super(n) for n in nodes_of(s))
            for target, value in pairs(s):
                if own and is_own(target) and (values := folder.outcomes(value)) and self.families.is_constant(self.name, target.attr):  # type: ignore[attr-defined]
                    found[f"self.{target.attr}"] = values  # type: ignore[attr-defined]
        return found


def _statements(lines: list[str]) -> list[ast.stmt]:
    """The statements of a block."""
    block = ast.parse("if True:\n" + "\n".join(lines)).body[0] if lines[:1] and lines[0][:1] == " " else ast.parse("\n".join(lines))
    return block.body  # type: ignore[attr-defined, no-any-return]


def _bound_first(body: list[str], name: str) -> bool:
    """Whether what comes first of a name in a function's body binds it."""
    for s in _statements(body):
        found = [n for n in nodes_of(s) if isinstance(n, ast.Name) and n.id == name or isinstance(n, ast.arg) and n.arg == name]
        if found:
            return isinstance(s, ast.Assign) and all(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) for n in found)
    return True


def _check(name: str, values: Values) -> str:
    shown = ", ".join(map(literal, values))
    return f"assert {name} in ({shown}{',' if len(values) == 1 else ''})" if len(values) > 1 or not isinstance(values[0], (str, int)) else f"assert {name} == {shown}"


def _docstring(f: ast.FunctionDef) -> int:
    """The lines of a function's docstring."""
    first = f.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return (first.end_lineno or first.lineno) - first.lineno + 1 if is_text else 0


def _head(lines: list[str], f: ast.FunctionDef, gone: Collection[str]) -> list[str]:
    """The lines of a function's signature, without some parameters."""
    if not gone:
        return lines[f.lineno - 1 : f.body[0].lineno - 1]
    a = f.args
    plain = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(plain) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    words = [p.arg if d is None else f"{p.arg}={_quoted(d)}" for p, d in zip(plain, defaults, strict=True) if p.arg not in gone]
    named = [p.arg if d is None else f"{p.arg}={_quoted(ast.unparse(d))}" for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if p.arg not in gone]
    words += [f"*{a.vararg.arg}"] if a.vararg else ["*"] if named else []
    words += named + ([f"**{a.kwarg.arg}"] if a.kwarg else [])
    margin = " " * f.col_offset
    whole = f"{margin}def {f.name}({', '.join(words)}):"
    if len(whole) <= WIDTH:
        return [whole]
    return [f"{margin}def {f.name}(", f"{margin}{INDENT}{', '.join(words)}", f"{margin}):"]


def _quoted(default: str) -> str:
    return default.replace("'", '"') if default[:1] == "'" and '"' not in default else default


def _with_methods(lines: list[str], new: dict[ast.FunctionDef, list[str]]) -> list[str]:
    """A class's lines with other methods; those without lines go."""
    out = list(lines)
    for m, text in sorted(new.items(), key=lambda x: x[0].lineno, reverse=True):
        start = m.lineno - 1
        while not text and start > 0 and not out[start - 1].strip():
            start -= 1
        out[start : m.end_lineno] = text
    return out


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
