"""Writes one support definition for its calls: without the parameters that are always one constant, its body folded."""
import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from migrate.fitting.folding import WIDTH, Folder
from migrate.fitting.shape import Families, function_of, is_own, is_super, names_in
from migrate.fitting.values import ABSENT, literal, nodes_of, pairs

Values = tuple[object, ...]
Known = dict[str, Values]
INDENT = "    "


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
    if not lines or lines[0][:1] != " ":
        return ast.parse("\n".join(lines)).body
    block = ast.parse("if True:\n" + "\n".join(lines)).body[0]
    assert isinstance(block, ast.If)
    return block.body


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
