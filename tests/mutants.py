"""Mutants of converted fixtures, generated: one change each to what decides the numbers.

In support code: each comparison, constant, operator, axis, keyword and pair of unpacked names, on lines that the fixture runs. In the tables: each
pin, each choice of a variant by `when`, and each `state`, of every row that the fixture uses. And in the user's code: calls that are left out or lose
their gradient, slices that are off by one, buffers that are lost, weights that are no longer shared.
"""

import ast
import contextlib
import copy
import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import migrate
from migrate import tables


@dataclass(frozen=True)
class Mutant:
    """A changed pair of texts; `what` names the change in one line, `definition` the function or class it is in ("" for a row's).
    `same` says why it changes nothing, where that is clear beforehand."""

    what: str
    code: str
    support: str
    definition: str = ""
    state: dict[str, Any] = field(default_factory=dict, hash=False)
    same: str = ""


COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
           ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
OPERATOR = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Each way to change one node of a tree, as the node that takes its place."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value), "turned"
        elif isinstance(value, int):
            yield ast.Constant(value + 1), "one more"
            if value < 0 or value > 1:
                yield ast.Constant(value - 1), "one less"
        elif isinstance(value, float) and value:
            yield ast.Constant(value * 2), "doubled"
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        new.ops[0] = COMPARE[type(node.ops[0])]()
        yield new, "the other comparison"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATOR:
        new.op = OPERATOR[type(node.op)]()
        yield new, "the other operator"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not) and not isinstance(node.operand, ast.Constant):
        yield new.operand, "without its sign"
    elif isinstance(node, ast.BoolOp):
        new.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield new, "and for or"
    elif isinstance(node, ast.Call):
        for i, k in enumerate(node.keywords):
            if k.arg is not None and k.arg != "rngs":
                less = copy.deepcopy(node)
                del less.keywords[i]
                yield less, f"without {k.arg}"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and len(node.targets[0].elts) > 1:
        first = new.targets[0].elts
        first[0], first[1] = first[1], first[0]
        yield new, "names swapped"
    elif (
        isinstance(node, ast.Tuple) and len(node.elts) > 1 and all(isinstance(e, ast.Constant) and type(e.value) is int for e in node.elts)
    ):
        new.elts[0], new.elts[1] = new.elts[1], new.elts[0]
        if ast.dump(new) != ast.dump(node):
            yield new, "swapped"


# Fields that hold what is not run, or only where an argument is left out.
NOT_RUN = ("annotation", "returns", "decorator_list", "bases", "defaults", "kw_defaults")


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that are run."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in NOT_RUN:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _run(child)


def of_text(text: str, lines: set[int]) -> Iterator[tuple[str, str, str]]:
    """All changed texts: what, the definition it is in, the text. Only on `lines`; docstrings and annotations are left alone."""
    tree = ast.parse(text)
    for top in tree.body:
        if not isinstance(top, ast.FunctionDef | ast.ClassDef):
            continue
        for parent in _run(top):
            for name, value in ast.iter_fields(parent):
                if name in NOT_RUN:
                    continue
                for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                    if not isinstance(child, ast.expr | ast.Assign) or child.lineno not in lines or isinstance(parent, ast.Expr):
                        continue
                    for new, how in changes(child):
                        with _put(parent, name, i, new):
                            what = f"{top.name}: {ast.unparse(child)[:70]} ({how}) in `{text.splitlines()[child.lineno - 1].strip()[:90]}`"
                            yield what, top.name, ast.unparse(ast.fix_missing_locations(tree))


@contextlib.contextmanager
def _put(parent: ast.AST, name: str, i: int | None, new: ast.AST) -> Iterator[None]:
    old = getattr(parent, name)
    if i is None:
        setattr(parent, name, new)
    else:
        before, old[i] = old[i], new
    try:
        yield
    finally:
        if i is None:
            setattr(parent, name, old)
        else:
            old[i] = before


def left_out(code: str, lines: set[int]) -> Iterator[tuple[str, str, str]]:
    """In the user's code: a call of a submodule that gives back what it was given, or stops the gradient; a slice that is off by one; a buffer that
    is a plain array, or nothing but zeros; a weight that is no longer another's."""
    tree = ast.parse(code)
    for top in (t for t in tree.body if isinstance(t, ast.ClassDef)):
        for parent in ast.walk(top):
            if isinstance(parent, ast.Expr):  # a call whose result nobody uses makes the model: `append`
                continue
            for name, value in ast.iter_fields(parent):
                for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                    if getattr(child, "lineno", 0) not in lines:
                        continue
                    for new, how in _lost(child):
                        with _put(parent, name, i, new):
                            yield f"{top.name}: {ast.unparse(child)[:60]} ({how})", top.name, ast.unparse(ast.fix_missing_locations(tree))


def _lost(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("Tied"):
        yield ast.Pass(), "not shared"
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Buffer":
        persistent = next((k.value for k in node.keywords if k.arg == "persistent"), ast.Constant(True))
        if isinstance(persistent, ast.Constant) and persistent.value:
            yield copy.deepcopy(node.args[0]), "a plain array"
        zeros = copy.deepcopy(node)
        zeros.args[0] = ast.Call(ast.parse("jnp.zeros_like", mode="eval").body, [copy.deepcopy(node.args[0])], [])
        yield zeros, "zeros"
    elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.") and len(node.args) == 1 and not node.keywords:
        yield copy.deepcopy(node.args[0]), "left out"
        stopped = ast.parse("__import__('jax').tree.map(__import__('jax').lax.stop_gradient, x)", mode="eval").body
        stopped.args[1] = copy.deepcopy(node)
        yield stopped, "no gradient"
    elif isinstance(node, ast.Slice):
        for part in ("lower", "upper"):
            if isinstance(value := getattr(node, part), ast.Constant) and isinstance(value.value, int):
                new = copy.deepcopy(node)
                setattr(new, part, ast.Constant(value.value + 1))
                yield new, "one further"


# --- rows ---


def used_variants(source: str) -> list[tuple[tables.Row, str, int]]:
    """Row, family and number of each variant that a conversion chooses."""
    seen: set[int] = set()

    def template(self: tables.Variant) -> ast.expr:
        seen.add(id(self))
        return tables.template(self.to)

    with mock.patch.object(tables.Variant, "template", property(template)):
        migrate.convert_source(source)
    rows = {id(v): (r, family, i) for r in tables.standard().rows for family, vs in r.variants.items() for i, v in enumerate(vs)}
    return [rows[s] for s in seen if s in rows]


def of_rows(source: str) -> Iterator[Mutant]:
    """Conversions by tables with one change."""
    plain = migrate.convert_source(source)
    for row, family, i in used_variants(source):
        variants = row.variants[family]
        fewer = (*variants[:i], *variants[i + 1 :])
        general = any(v.to and not v.when for v in variants[i + 1 :])
        trials = [(f"{row.torch}: without its variant {i} (`{variants[i].to[:50]}`)", fewer)]
        for pin in sorted(variants[i].pin):
            changed = dataclasses.replace(variants[i], pin=variants[i].pin - {pin})
            trials.append((f"{row.torch}: {pin} not pinned", (*variants[:i], changed, *variants[i + 1 :])))
        for what, new in trials:
            table = tables.build(
                [dataclasses.replace(r, variants={**r.variants, family: new}) if r is row else r for r in tables.standard().rows]
            )
            try:
                made = migrate.convert_source(source, table=table)
            except Exception:
                continue
            if made.code != plain.code and not any(d.severity == "error" for d in made.diagnostics):
                support = "".join(made.support.values())
                own = general or (row.support and f"class {row.support}(" in support)
                reason = "the next choice is for any arguments, and tested to compute the same" if own and what == trials[0][0] else ""
                yield Mutant(what, made.code, support, same=reason)


def of_state(source: str) -> Iterator[Mutant]:
    """The same conversion, loaded with one `state` that has other axes."""
    from migrate.weights import flax

    plain = migrate.convert_source(source)
    for cls, state in flax.native().items():
        if f"nnx.{cls.__name__}" not in plain.code + "".join(plain.support.values()):
            continue
        for name, place in state.items():
            if place is not None and place[1] is not None:
                axes = place[1]
                other = None if len(axes) == 2 else (axes[1], axes[0], *axes[2:])
                changed = {**flax.native(), cls: {**state, name: (place[0], other)}}
                what = f"nnx.{cls.__name__}: {name} with axes {other}"
                yield Mutant(what, plain.code, "".join(plain.support.values()), cls.__name__, state=changed)


def executed(path: str, run: Any) -> set[int]:
    """The lines of a file that `run` goes through once the model is built: initial values are loaded over, and decide nothing."""
    from migrate.check import jax_side

    lines: set[int] = set()
    construct = jax_side.construct

    def built(*args: Any, **kwargs: Any) -> Any:
        model = construct(*args, **kwargs)
        lines.clear()
        return model

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != path:
            return None
        lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with mock.patch.object(jax_side, "construct", built):
            run()
    finally:
        sys.settrace(before)
    return lines
