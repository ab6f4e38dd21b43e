"""Loads the mapping tables (`mappings/**/*.toml`) into frozen rows, and refuses an incomplete row.

The format is described in docs/architecture.md, "A mapping row".
"""
import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "mappings"
# Arguments that never change a value on the way to JAX, and arguments that write into something.
DROPPED = frozenset({"device", "requires_grad", "pin_memory", "layout", "memory_format", "non_blocking", "inplace", "copy", "async"})
REFUSED = frozenset({"out", "generator"})
TARGETS = {"flax": ("flax", "jax"), "keras": ("keras", "jax")}  # the variants that a target reads, first ones first
KINDS = ("function", "attribute", "noop")
ROW_KEYS = {"torch", "also", "methods", "kind", "signature", "returns", "note", "call", "support", "state", "case", "attributes", "jax", "flax", "keras",
    "inplace", "value", "imports", "makers", "known"}
OTHER_KEYS = {"library", "alias", "noise", "known", "corner"}  # read by libraries.py and known.py
VARIANT_KEYS = {"when", "to", "pin", "drop", "reject", "cast", "deviates", "reason", "pick", "unpacked", "note", "returns", "limits"}


class TableError(ValueError):
    """A row that breaks the law of the tables; the message names the file and the row."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of PyTorch's signature; `default` is source text, None where it is required."""

    name: str
    kind: str  # "positional", "keyword", "variadic", "keywords"
    default: str | None = None


@dataclass(frozen=True)
class Condition:
    """One entry of `when`: the argument equals one of `literals`, or satisfies `predicate` (or, `negated`, does not)."""

    parameter: str
    literals: tuple[str, ...] = ()
    predicate: str = ""
    negated: bool = False


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to write an operator in the target."""

    to: str
    when: tuple[Condition, ...] = ()
    pin: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    reject: frozenset[str] = frozenset()
    cast: Mapping[str, str] = field(default_factory=dict)
    pick: Mapping[str, str] = field(default_factory=dict)
    unpacked: Mapping[str, str] = field(default_factory=dict)
    deviates: str = ""
    reason: str = ""
    returns: str = ""

    @cached_property
    def template(self) -> ast.expr:
        """`to` as a tree."""
        return template(self.to)


@cache
def template(text: str) -> ast.expr:
    """A template as a tree; its nodes' columns index `text`."""
    return ast.parse(text, mode="eval").body


@dataclass(frozen=True, eq=False)
class Row:
    """An operator or layer of PyTorch and what it becomes. `variants` is by target family: "jax", "flax", "keras"."""

    torch: str
    also: tuple[str, ...]
    methods: tuple[str, ...]
    kind: str  # "function", "attribute", "noop", "layer", "constant"
    signature: str
    returns: str
    note: str
    variants: Mapping[str, tuple[Variant, ...]]
    support: str = ""
    state: Mapping[str, str] = field(default_factory=dict)
    call: str = ""
    cases: tuple[Mapping[str, Any], ...] = ()
    file: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)  # of a layer's native class for Flax: option of PyTorch's -> its name there
    value: str = ""  # an expression: the operator where it is no call, `isinstance(x, torch.Tensor)`
    makers: tuple[str, ...] = ()  # methods of a layer's class that make one as the class itself does
    imports: tuple[str, ...] = ()  # of a user's row: statements that the output needs
    known: Mapping[str, str] = field(default_factory=dict)  # names in known.toml -> a call that raises where PyTorch's does not

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of `signature`."""
        return parameters(self.signature)

    def for_target(self, target: str) -> tuple[Variant, ...]:
        """The variants that a target tries, in order."""
        return tuple(v for family in TARGETS[target] for v in self.variants.get(family, ()))


@cache
def parameters(signature: str) -> tuple[Parameter, ...]:
    """Reads "(input, *, dim=-1)"."""
    a = ast.parse(f"def f{signature}: pass").body[0].args  # type: ignore[attr-defined]
    plain = a.posonlyargs + a.args
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(a.defaults)) + a.defaults
    found = [Parameter(p.arg, "positional", _text(d)) for p, d in zip(plain, defaults, strict=True)]
    if a.vararg:
        found.append(Parameter(a.vararg.arg, "variadic"))
    found += [Parameter(p.arg, "keyword", _text(d)) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg:
        found.append(Parameter(a.kwarg.arg, "keywords"))
    return tuple(found)


def _text(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)


@dataclass(frozen=True, eq=False)
class Table:
    """All rows, by dotted name and by Tensor method or attribute."""

    rows: tuple[Row, ...]
    by_name: Mapping[str, Row]
    by_method: Mapping[str, Row]
    by_attribute: Mapping[str, Row]
    imports: Mapping[str, str] = field(default_factory=dict)  # the names that users' rows import, with the statements

    def get(self, dotted: str) -> Row | None:
        """The row of a dotted PyTorch name; `torch.exp_` is a form of `torch.exp`, as the method is."""
        if (row := self.by_name.get(dotted)) is not None or not dotted.endswith("_") or dotted.count(".") != 1:
            return row
        name = dotted.removeprefix("torch.")
        row = self.by_method.get(name) or self.by_method.get(name.removesuffix("_"))
        return row if row is not None and row.kind == "function" and dotted.startswith("torch.") and not name.endswith("__") else None


def _strings(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _condition(name: str, text: Any) -> Condition:
    if isinstance(text, list):
        return Condition(name, literals=tuple(_literal(t) for t in text))
    words = str(text).split()
    if words[0] in ("is", "not") and len(words) > 1:
        return Condition(name, predicate=" ".join(words[1:]), negated=words[0] == "not")
    return Condition(name, literals=(_literal(text),))


def _literal(text: Any) -> str:
    return ast.unparse(ast.parse(str(text), mode="eval"))


def _variant(raw: Mapping[str, Any], where: str) -> Variant:
    if unknown := set(raw) - VARIANT_KEYS:
        raise TableError(f"{where}: unknown keys in a variant: {', '.join(sorted(unknown))}")
    if ("to" in raw) == ("reason" in raw):
        raise TableError(f"{where}: a variant has either `to` or `reason`")
    return Variant(
        to=raw.get("to", ""),
        when=tuple(_condition(k, v) for k, v in raw.get("when", {}).items()),
        pin=frozenset(_strings(raw.get("pin"))),
        drop=frozenset(_strings(raw.get("drop"))),
        reject=frozenset(_strings(raw.get("reject"))),
        cast=raw.get("cast", {}),
        pick=raw.get("pick", {}),
        unpacked=raw.get("unpacked", {}),
        deviates=raw.get("deviates", ""),
        reason=raw.get("reason", ""),
        returns=raw.get("returns", ""),
    )


def holes(text: str, names: Iterable[str]) -> frozenset[str]:
    """The parameters that a template mentions."""
    wanted = set(names)
    return frozenset(n.id for n in ast.walk(template(text)) if isinstance(n, ast.Name) and n.id in wanted)


def _check_law(row: Row, where: str) -> None:
    names = [p.name for p in row.parameters]
    for family, variants in row.variants.items():
        for v in variants:
            if v.reason:
                continue
            used = holes(v.to, names)
            accounted = used | v.drop | v.reject | {c.parameter for c in v.when} | DROPPED | REFUSED
            if lost := [n for n in names if n not in accounted]:
                raise TableError(f"{where}, {family}: `{v.to}` does not account for {', '.join(lost)}")
            if twice := (used & v.drop) | (used & v.reject):
                raise TableError(f"{where}, {family}: {', '.join(sorted(twice))} both used and dropped")
            if strange := (v.pin | v.drop | v.reject | set(v.cast) | {c.parameter for c in v.when}) - set(names):
                raise TableError(f"{where}, {family}: not in the signature: {', '.join(sorted(strange))}")


def _row(raw: Mapping[str, Any], kind: str, file: str) -> Row:
    where = f"{file}: {raw.get('torch', '?')}"
    if unknown := set(raw) - ROW_KEYS:
        raise TableError(f"{where}: unknown keys: {', '.join(sorted(unknown))}")
    variants = {}
    for family in ("jax", "flax", "keras"):
        given = raw.get(family, [])
        if given:
            variants[family] = tuple(_variant(v, where) for v in (given if isinstance(given, list) else [given]))
    return Row(
        torch=raw["torch"],
        also=_strings(raw.get("also")),
        methods=_strings(raw.get("methods")),
        kind=raw.get("kind", kind),
        signature=raw.get("signature", "(input)"),
        returns=raw.get("returns", "module" if kind == "layer" else "same"),
        note=raw.get("note", ""),
        variants=variants,
        support=raw.get("support", ""),
        state=raw.get("state", {}),
        call=raw.get("call", "(input)"),
        cases=tuple(raw.get("case", ())),
        file=file,
        attributes=raw.get("attributes", {}),
        value=raw.get("value", ""),
        imports=_strings(raw.get("imports")),
        makers=_strings(raw.get("makers")),
        known=raw.get("known", {}),
    )


def _constant(raw: Mapping[str, Any], file: str) -> Row:
    texts = {f: raw[f] for f in ("jax", "flax", "keras") if f in raw}
    if "to" in raw:
        texts.setdefault("jax", raw["to"])
    if not texts:
        raise TableError(f"{file}: {raw.get('torch', '?')}: a constant needs `to`")
    return Row(
        torch=raw["torch"], also=_strings(raw.get("also")), methods=(), kind="constant", signature="()", returns=raw.get("returns", "unknown"),
        note=raw.get("note", ""), variants={f: (Variant(to=t),) for f, t in texts.items()}, file=file,
    )


def _stand_in(raw: Mapping[str, Any], file: str) -> Row:
    """A class, function or object of a library with one of the support code that is used just as it is; `returns` is what calling it gives."""
    if unknown := set(raw) - {"torch", "to", "also", "returns", "note"}:
        raise TableError(f"{file}: {raw['torch']}: unknown keys: {', '.join(sorted(unknown))}")
    to = raw.get("to", raw["torch"].rpartition(".")[2])
    return Row(
        torch=raw["torch"], also=_strings(raw.get("also")), methods=(), kind="stand_in", signature="(*args, **kwargs)", returns=raw.get("returns", "unknown"),
        note=raw.get("note", ""), variants={"jax": (Variant(to=to),)}, file=file,
    )


def read(text: str, file: str) -> list[Row]:
    """The rows of one TOML text, checked against the law. Raises TableError with the file and the row."""
    rows = _read(text, file)
    for row in rows:
        if row.kind == "stand_in":
            continue
        try:
            _check_law(row, f"{file}: {row.torch}")
        except SyntaxError as e:
            raise TableError(f"{file}: {row.torch}: {e.msg}: {(e.text or '').strip()}") from None
    return rows


def _read(text: str, file: str) -> list[Row]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise TableError(f"{file}: {e}") from None
    if unknown := set(data) - {"op", "layer", "constant", "stand_in", *OTHER_KEYS}:
        raise TableError(f"{file}: unknown tables: {', '.join(sorted(unknown))}")
    makers: dict[str, Callable[[Mapping[str, Any]], Row]] = {
        "op": lambda r: _row(r, "function", file), "layer": lambda r: _row(r, "layer", file), "constant": lambda r: _constant(r, file),
        "stand_in": lambda r: _stand_in(r, file),
    }
    rows = []
    for kind, make in makers.items():
        for number, raw in enumerate(data.get(kind, ()), 1):
            if not isinstance(raw, dict) or not isinstance(raw.get("torch"), str):
                raise TableError(f'{file}: [[{kind}]] number {number} says not what it is for: torch = "torch.name"')
            try:
                rows.append(make(raw))
            except (AttributeError, TypeError, SyntaxError) as e:
                raise TableError(f"{file}: {raw['torch']}: {e}") from None
    return rows


def build(rows: Iterable[Row]) -> Table:
    """An index over rows. Raises TableError where two rows claim a name."""
    rows = tuple(rows)
    names: dict[str, Row] = {}
    methods: dict[str, Row] = {}
    attributes: dict[str, Row] = {}
    for row in rows:
        for name in (row.torch, *row.also):
            _claim(names, name, row)
        for name in row.methods:
            _claim(attributes if row.kind == "attribute" else methods, name, row)
    return Table(rows, names, methods, attributes, _imports(rows))


def _imports(rows: Iterable[Row]) -> dict[str, str]:
    """The names that rows import."""
    found: dict[str, str] = {}
    for row in rows:
        for statement in row.imports:
            try:
                (node,) = ast.parse(statement).body
                (alias,) = node.names  # type: ignore[attr-defined]
            except (SyntaxError, ValueError, AttributeError):
                raise TableError(f"{row.file}: {row.torch}: imports: {statement!r} is not one import of one name") from None
            name = alias.asname or alias.name
            if "." in name or found.setdefault(name, statement) != statement:
                raise TableError(f"{row.file}: {row.torch}: imports: {name} is another thing in another row; give it a name of its own with `as`")
    return found


def overlaid(table: Table, over: Table) -> Table:
    """A table with other rows in place of those of the same names."""
    return Table(
        (*over.rows, *(r for r in table.rows if r.torch not in over.by_name)), {**table.by_name, **over.by_name}, {**table.by_method, **over.by_method},
        {**table.by_attribute, **over.by_attribute}, {**table.imports, **over.imports},
    )


def _claim(index: dict[str, Row], name: str, row: Row) -> None:
    if other := index.get(name):
        raise TableError(f"{row.file}: {row.torch}: `{name}` is already a name of {other.torch} in {other.file}")
    index[name] = row


def load(*, check: bool = True) -> Table:
    """The tables of the project. They are checked by its tests, or here with `check`."""
    rows = []
    for path in sorted(FOLDER.rglob("*.toml")):
        rows += (read if check else _read)(path.read_text(encoding="utf-8"), str(path.relative_to(FOLDER)))
    return build(rows)


@cache
def standard() -> Table:
    """The tables that come with the project, read once."""
    return load(check=False)


def state_axes(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Reads "kernel: i o -> o i": the attribute, and the axes that transpose PyTorch's tensor to it (None: as it is)."""
    attribute, _, axes = text.partition(":")
    if not axes:
        return attribute.strip(), None
    ours, _, theirs = axes.partition("->")
    letters = re.findall(r"\w+", theirs)
    return attribute.strip(), tuple(letters.index(letter) for letter in re.findall(r"\w+", ours))
