"""Binds a call to a row's signature, picks the variant and fills its template."""
import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from migrate.edits import ATOM, BITOR, LAMBDA, Emitter, Piece, precedence, required
from migrate.infer.kinds import Kind
from migrate.source.text import walk
from migrate.tables import DROPPED, REFUSED, Condition, Parameter, Row, Variant, template

ALIASES = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "x2": "other", "axes": "dim", "axis0": "dim0", "axis1": "dim1", "x": "input", "a": "input",
    "tensor": "input", "split_size": "split_size_or_sections", "indices": "indices_or_sections", "sections": "indices_or_sections",
    "other": "dim"}  # names of NumPy and of overloads


@dataclass(frozen=True)
class Refusal:
    """Why a call is left as it is."""

    code: str
    reason: str


@dataclass(eq=False)
class Bound:
    """The arguments of a call by parameter name. A variadic parameter holds a list of nodes, or one node that is a sequence."""

    row: Row
    arguments: dict[str, ast.expr | list[ast.expr]] = field(default_factory=dict)
    receiver: ast.expr | None = None
    extra: list[ast.keyword] = field(default_factory=list)  # what a `**` parameter takes

    def parameter(self, name: str) -> Parameter:
        """A parameter of the row."""
        return next(p for p in self.row.parameters if p.name == name)


KindOf = Callable[[ast.AST | None], Kind]


def bind(row: Row, call: ast.Call, receiver: ast.expr | None, kind_of: KindOf, placement: frozenset[ast.AST] = frozenset(), complete: bool = True) -> Bound | Refusal:
    """Which parameter each argument is. `placement`: `**` arguments that only say where a tensor lives. `complete`: all that are required must be there."""
    bound = Bound(row, receiver=receiver)
    positional = [p for p in row.parameters if p.kind == "positional"]
    variadic = next((p for p in row.parameters if p.kind == "variadic"), None)
    args: list[ast.expr] = [*([receiver] if receiver is not None else []), *call.args]
    plain, rest = args[: len(positional)], args[len(positional) :]
    if any(isinstance(a, ast.Starred) for a in plain):
        return Refusal("MIG305", f"{row.torch} is called with `*` arguments")
    bound.arguments.update({p.name: a for p, a in zip(positional, plain, strict=False)})
    if rest and variadic is None:
        return Refusal("MIG302", f"{row.torch} takes {len(positional)} positional arguments, {len(args)} are given")
    if rest and variadic is not None:
        single = len(rest) == 1 and not isinstance(rest[0], ast.Starred) and not kind_of(rest[0]).is_number and not kind_of(rest[0]).is_tensor
        single = single and not isinstance(rest[0], ast.Constant) and not (isinstance(rest[0], ast.UnaryOp) and isinstance(rest[0].operand, ast.Constant))
        bound.arguments[variadic.name] = rest[0] if single else rest
    return _keywords(row, call, bound, placement, complete)


def _keywords(row: Row, call: ast.Call, bound: Bound, placement: frozenset[ast.AST], complete: bool) -> Bound | Refusal:
    names = {p.name for p in row.parameters}
    for k in call.keywords:
        if k in placement:
            continue
        if k.arg is None:
            return Refusal("MIG305", f"{row.torch} is called with `**` arguments")
        name = k.arg if k.arg in names else ALIASES.get(k.arg, k.arg)
        if name in names and name not in bound.arguments:
            bound.arguments[name] = k.value
        elif name in bound.arguments:
            return Refusal("MIG302", f"{row.torch} gets `{name}` twice")
        elif name in REFUSED:
            if not _is_none(k.value):
                return Refusal("MIG302", f"{row.torch}({name}=...): {REFUSED_WHY[name]}")
        elif name not in DROPPED and any(p.kind == "keywords" for p in row.parameters):
            bound.extra.append(k)
        elif name not in DROPPED and not (row.kind == "layer" and name == "dtype"):
            return Refusal("MIG302", f"{row.torch} has no argument `{name}` here")
    lost = [p.name for p in row.parameters if p.kind in ("positional", "keyword") and p.default is None and p.name not in bound.arguments]
    if lost and complete:
        return Refusal("MIG302", f"{row.torch} is called without `{lost[0]}`")
    for name in REFUSED & names:
        if name in bound.arguments and not _is_none(bound.arguments[name]):
            return Refusal("MIG302", f"{row.torch}({name}=...): {REFUSED_WHY[name]}")
    return bound


REFUSED_WHY = {"out": "JAX arrays cannot be written to; assign the result instead", "generator": "a generator has no counterpart; pass `rngs`"}


def _is_none(node: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def choose(row: Row, bound: Bound, target: str, kind_of: KindOf) -> Variant | Refusal:
    """The first variant whose conditions all hold."""
    variants = row.for_target(target)
    if not variants:
        return Refusal("MIG301", f"{row.torch} has no equivalent for this target yet")
    for v in variants:
        if not all(_holds(c, bound, kind_of) for c in v.when) or _repeats(v, bound):
            continue
        if given := [n for n in sorted(v.reject) if n in bound.arguments and not _is_default(bound, n)]:
            return Refusal("MIG302", f"{row.torch}({given[0]}=...) is not supported")
        if v.reason:
            return Refusal("MIG302", f"{row.torch}: {v.reason}")
        return v
    return Refusal("MIG302", f"{row.torch}: no form for these arguments is known")


def _repeats(v: Variant, bound: Bound) -> bool:
    """Whether the template writes an argument twice that is more than a name: it would be computed twice."""
    if v.reason:
        return False
    names = [n.id for n in walk(v.template) if isinstance(n, ast.Name)]
    return any(names.count(name) > 1 and not _is_simple(given) for name, given in bound.arguments.items())


def _is_simple(node: ast.expr | list[ast.expr]) -> bool:
    if isinstance(node, list):
        return all(map(_is_simple, node))
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) or is_literal(node)


def _is_default(bound: Bound, name: str) -> bool:
    given = bound.arguments[name]
    default = bound.parameter(name).default
    return isinstance(given, ast.expr) and default is not None and ast.unparse(given) == default


def _holds(c: Condition, bound: Bound, kind_of: KindOf) -> bool:
    given = bound.arguments.get(c.parameter)
    if c.literals:
        if given is None:
            return (bound.parameter(c.parameter).default or "") in c.literals
        return isinstance(given, ast.expr) and is_literal(given) and ast.unparse(given) in c.literals
    decided = predicate(c.predicate, given, bound.parameter(c.parameter).default, kind_of)
    return decided is not None and decided != c.negated


def is_literal(node: ast.expr) -> bool:
    """A constant, or a tuple of some."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub()):
            return is_literal(node.operand)
        case ast.Tuple() | ast.List():
            return all(map(is_literal, node.elts))
    return False


def predicate(name: str, given: ast.expr | list[ast.expr] | None, default: str | None, kind_of: KindOf) -> bool | None:
    """Whether a predicate holds of an argument; None where it can't be told."""
    if name == "omitted":
        return given is None
    if name == "given":
        return given is not None
    if given is None:
        if default is None:
            return None
        given = ast.parse(default, mode="eval").body
    if isinstance(given, list):
        return name in ("tuple", "literal") if name != "literal" else all(map(is_literal, given))
    if name == "literal":
        return is_literal(given)
    if is_literal(given) or isinstance(given, (ast.Tuple, ast.List)):
        return _literal_is(name, given)
    return _kind_is(name, kind_of(given))


def _literal_is(name: str, node: ast.expr) -> bool | None:
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(value, (ast.Tuple, ast.List)):
        return name == "tuple" or (name == "list" and isinstance(value, ast.List))
    assert isinstance(value, ast.Constant)
    held = value.value
    match name:
        case "int":
            return isinstance(held, int) and not isinstance(held, bool)
        case "number":
            return isinstance(held, (int, float)) and not isinstance(held, bool)
        case "bool":
            return isinstance(held, bool)
        case "str":
            return isinstance(held, str)
        case "none":
            return held is None
        case "float":
            return isinstance(held, float)
        case "negative":
            return isinstance(node, ast.UnaryOp)
        case "of one":
            return isinstance(held, str) and "," not in held
    return False


def _kind_is(name: str, kind: Kind) -> bool | None:
    if name == "device" and kind.tag in ("device", "none"):
        return True  # no device is one as well
    if kind.is_unknown or kind.optional and name != "none":
        return None
    match name:
        case "tensor":
            return kind.is_tensor
        case "bool tensor" | "int tensor" | "float tensor":
            return None if kind.is_tensor and not kind.dtype else kind.is_tensor and kind.dtype == name.split()[0]
        case "narrow int tensor":
            return kind.narrow and kind.dtype == "int" if kind.is_tensor and kind.dtype else False if not kind.is_tensor else None
        case "narrow int dtype":
            return None if kind.tag == "dtype" and not kind.dtype else kind.tag == "dtype" and kind.dtype == "int" and kind.narrow
        case "int dtype" | "float dtype":
            return None if kind.tag == "dtype" and not kind.dtype else kind.tag == "dtype" and kind.dtype == name.split()[0]
        case "number":
            return kind.is_number and kind.tag != "bool"
        case "int":
            return kind.tag == "int" if kind.tag != "number" else None
        case "float":
            return kind.tag == "float" if kind.tag != "number" else None
        case "bool" | "str" | "none" | "dtype" | "device" | "list" | "shape" | "numpy":
            return kind.tag == name if not kind.optional else None
        case "tuple":
            return kind.tag in ("tuple", "shape", "list")
    return None


@cache
def _template_parents(text: str) -> Mapping[ast.AST, ast.AST]:
    return {c: p for p in ast.walk(template(text)) for c in ast.iter_child_nodes(p)}


Rename = Callable[[str], str]


@dataclass(eq=False)
class Filler:
    """Fills a template: holes with arguments, other names through `rename`."""

    text: str
    variant: Variant
    bound: Bound
    rename: Rename
    kind_of: KindOf
    rngs: str = ""
    axes: str | None = None  # the order of axes of the native variable that is the first argument; "" where it is PyTorch's

    def fill(self, emitter: Emitter) -> Piece:
        """The new expression."""
        root = template(self.text)
        parents = _template_parents(self.text)
        out: list[tuple[int, int, str]] = []
        dropped: list[tuple[int, int]] = []
        for node in walk(root):
            if isinstance(node, ast.keyword) and node.arg is None and self.bound.extra:
                out.append((node.col_offset, node.end_col_offset or 0, ", ".join(f"{k.arg}={emitter.piece(k.value).at(LAMBDA)}" for k in self.bound.extra)))
            elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Name) and self._is_dropped(node.value.id):
                dropped.append(self._span_with_comma(node, parents[node]))
            elif isinstance(node, ast.Name) and not (isinstance(parents.get(node), ast.Starred) and self._is_variadic(node.id)):
                out.append(self._name(node, parents.get(node), emitter))
            elif isinstance(node, ast.Starred) and isinstance(node.value, ast.Name) and self._is_variadic(node.value.id):
                out.append((node.col_offset, node.end_col_offset or 0, self._spliced(node.value.id, emitter)))
        if isinstance(root, ast.Name):
            if self._is_hole(root.id):
                return self._hole(root.id, emitter)
            return Piece(out[0][2])
        kept = [(s, e, t) for s, e, t in out if not any(a <= s and e <= b for a, b in dropped)]
        edits = sorted([*kept, *((a, b, "") for a, b in dropped)])
        made, at = [], 0
        for s, e, t in edits:
            if s < at:
                continue
            made.append(self.text[at:s])
            made.append(t)
            at = e
        made.append(self.text[at:])
        return Piece(_twice_turned("".join(made)) if ".T" in self.text else "".join(made), precedence(root))

    def given(self, name: str, emitter: Emitter) -> str:
        """The text of one argument."""
        return self._hole(name, emitter).at(LAMBDA)

    def _is_dropped(self, name: str) -> bool:
        if name == "axes" and self.axes is not None:
            return not self.axes
        return self._is_hole(name) and self._left_out(name)

    def _is_hole(self, name: str) -> bool:
        return any(p.name == name for p in self.bound.row.parameters)

    def _is_variadic(self, name: str) -> bool:
        return any(p.name == name and p.kind == "variadic" for p in self.bound.row.parameters)

    def _left_out(self, name: str) -> bool:
        return name not in self.bound.arguments and name not in self.variant.pin

    def _span_with_comma(self, node: ast.keyword, call: ast.AST) -> tuple[int, int]:
        start, end = node.col_offset, node.end_col_offset or 0
        before = self.text[:start].rstrip()
        if before.endswith(","):
            return len(before) - 1, end
        after = self.text[end:]
        if after.lstrip().startswith(","):
            return start, end + after.index(",") + 1 + (1 if after[after.index(",") + 1 :].startswith(" ") else 0)
        return start, end

    def _name(self, node: ast.Name, parent: ast.AST | None, emitter: Emitter) -> tuple[int, int, str]:
        span = node.col_offset, node.end_col_offset or 0
        special = {"rngs": self.rngs, "axes": self.axes}.get(node.id)
        if special:
            return (*span, special)
        if self._is_hole(node.id):
            return (*span, self._hole(node.id, emitter).at(required(parent, node)))
        return (*span, self.rename(node.id))

    def _hole(self, name: str, emitter: Emitter) -> Piece:
        given = self.bound.arguments.get(name)
        cast = self.variant.cast.get(name)
        if given is None:
            default = self.bound.parameter(name).default or ("()" if self._is_variadic(name) else "None")
            return Piece(default, ATOM if default.startswith("(") else precedence(ast.parse(default, mode="eval").body))
        if isinstance(given, list):
            parts = [_item(emitter, a) for a in given]
            return Piece(f"({', '.join(parts)}{',' if len(parts) == 1 else ''})")
        made = emitter.piece(given)
        return self._cast(cast, given, made) if cast else made

    def _cast(self, cast: str, node: ast.expr, made: Piece) -> Piece:
        kind = self.kind_of(node)
        if cast == "axes" and isinstance(node, (ast.List, ast.Tuple)) and not node.elts:
            return Piece("None")
        if cast in ("tuple", "axes"):
            if isinstance(node, ast.List):
                inner = made.text.strip()[1:-1].rstrip().rstrip(",")
                return Piece(f"({inner}{',' if len(node.elts) == 1 else ''})")
            return Piece(f"tuple({made.text})") if kind.tag == "list" else made
        if cast == "array":
            return made if kind.is_tensor and kind.sure else Piece(f"{self.rename('jnp')}.asarray({made.text})")
        if cast == "pair":
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                return Piece(f"({made.text}, {made.text})")
            return made if kind.tag in ("tuple", "list", "shape") or isinstance(node, ast.Tuple) else Piece(f"{self.rename('pair')}({made.text})")
        return made

    def _spliced(self, name: str, emitter: Emitter) -> str:
        given = self.bound.arguments.get(name)
        if given is None:
            return ""
        if isinstance(given, list):
            return ", ".join(_item(emitter, a) for a in given)
        if self.variant.cast.get(name) == "splice":  # the target takes no sequence here
            if isinstance(given, (ast.Tuple, ast.List)):
                return ", ".join(_item(emitter, a) for a in given.elts)
            return f"*{emitter.piece(given).at(BITOR)}"
        return emitter.piece(given).at(LAMBDA)


def _twice_turned(text: str) -> str:
    """`x.T.T` is x; a native layer's weight is the transpose of PyTorch's."""
    return re.sub(r"\.T\.T\b", "", text)


def _item(emitter: Emitter, node: ast.expr) -> str:
    if isinstance(node, ast.Starred):
        return f"*{emitter.piece(node.value).at(BITOR)}"
    return emitter.piece(node).at(LAMBDA)


@cache
def template_names(text: str) -> frozenset[str]:
    """All names of a template."""
    return frozenset(n.id for n in walk(template(text)) if isinstance(n, ast.Name))


__all__ = ["ATOM", "Bound", "Filler", "Refusal", "bind", "choose", "predicate", "template_names"]
