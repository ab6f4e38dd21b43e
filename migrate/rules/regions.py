"""Where PyTorch records no gradient: the bodies of `with torch.no_grad():` and its like, and functions so decorated."""
import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from migrate.context import Context
from migrate.rules import aliases
from migrate.source.modules import FunctionInfo
from migrate.source.text import children, walk

OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad", "torch.autograd.inference_mode"})
ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad"})
OPTIMIZERS = ("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")
SWITCH = "torch.set_grad_enabled"
WORDS = ("no_grad", "inference_mode", "set_grad_enabled")
SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context)
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
FILLING = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "put", "setdefault"})
UNSURE = "gradients are switched here in a way that is not followed: what PyTorch computes without a gradient has one here; jax.lax.stop_gradient holds a value constant"


@dataclass(frozen=True)
class Switch:
    """When gradients are off: always, or as `condition` says, `negated` or not. `unsure`: that is not known."""

    condition: ast.expr | None = None
    negated: bool = False
    unsure: bool = False


@dataclass(frozen=True, eq=False)
class Region:
    """Statements without a gradient. `at` is the `with` statement or the function; `condition` says when, or with `negated` when not; `unsure` why it is not followed."""

    ctx: Context
    function: FunctionInfo
    at: ast.AST
    body: list[ast.stmt]
    condition: ast.expr | None = None
    negated: bool = False
    unsure: str = ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of its statements, without those of functions defined in them and of what has gradients again."""
        return list(own_nodes(self.ctx, self.body))

    @cached_property
    def inside(self) -> frozenset[ast.AST]:
        """The same as a set."""
        return frozenset(self.nodes)

    @cached_property
    def stores(self) -> list[ast.Name]:
        """The names that get a value there."""
        return [n for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]

    @cached_property
    def binders(self) -> list[ast.Name]:
        """Those of them that are bound anew: neither added to nor of a comprehension alone."""
        return [n for n in self.stores if not isinstance(self.ctx.source.parent(n), ast.AugAssign) and not self._is_inner(n)]

    @cached_property
    def bound(self) -> frozenset[str]:
        """What these are called."""
        return frozenset(n.id for n in self.binders)

    def used_outside(self, name: str) -> bool:
        """Whether a function reads a name after the region, or anywhere in a loop around it."""
        if self._is_foreign(name):
            return True
        if self.at is self.function.node:
            return False
        first, last = _span(self.at)
        loop = self._loop()
        for n in walk(self.function.node):
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load):
                place = (n.lineno, n.col_offset)
                if place > last or loop is not None and place < first and _span(loop)[0] <= place:
                    return True
        return False

    def reads_attribute(self, name: str) -> bool:
        """Whether something outside the region may read an attribute of that name."""
        first, last = _span(self.at)
        for file in self.ctx.unit.files.values():
            if file is not self.ctx.file:
                if f".{name}" in file.source.text:
                    return True
                continue
            for n in self.ctx.source.nodes:
                if isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load) and not first <= (n.lineno, n.col_offset) <= last:
                    return True
        return False

    @property
    def is_left_early(self) -> bool:
        """Whether a `break` or `continue` leads past what stands after the region."""
        return any(isinstance(n, (ast.Break, ast.Continue)) for n in self.nodes)

    def _is_inner(self, name: ast.Name) -> bool:
        at = self.ctx.source.parent(name)
        while isinstance(at, (ast.Tuple, ast.List, ast.Starred)):
            at = self.ctx.source.parent(at)
        return isinstance(at, ast.comprehension)

    def _is_foreign(self, name: str) -> bool:
        """Whether a name is of a function around this one, or of the module."""
        own = [n for n in walk(self.function.node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
        said = [n for n in walk(self.function.node) if isinstance(n, (ast.Nonlocal, ast.Global)) and name in n.names]
        return bool(said) or not own and not any(p.arg == name for p in self.function.parameters)

    def _loop(self) -> ast.AST | None:
        """The outermost loop around the region, in its function."""
        found, at = None, self.ctx.source.parent(self.at)
        while at is not None and at is not self.function.node:
            if isinstance(at, (ast.For, ast.While, ast.AsyncFor)):
                found = at
            at = self.ctx.source.parent(at)
        return found


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def regions(ctx: Context) -> Iterator[Region]:
    """All of a file, from the outside in."""
    if not any(w in ctx.source.text for w in WORDS):
        return
    said: set[ast.AST] = set()
    for n in ctx.source.nodes:
        if n in ctx.kept:
            continue
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            info = ctx.file.by_node.get(n)
            off = [d for d in n.decorator_list if _switch(ctx, d) == Switch()]
            said.update(m for d in n.decorator_list for m in walk(d))
            if off and isinstance(info, FunctionInfo) and not no_gradient(info):
                yield Region(ctx, info, n, n.body)
        elif isinstance(n, (ast.With, ast.AsyncWith)):
            function = ctx.function_of(n)
            said.update(m for i in n.items for m in walk(i.context_expr))
            if function is not None and not no_gradient(function):
                yield from _of_with(ctx, function, n)
        elif isinstance(n, (ast.Name, ast.Attribute)) and n not in said:
            function = ctx.function_of(n)
            if function is not None and not no_gradient(function) and ctx.dotted(n) in OFF | {SWITCH} and not _switches_on(ctx, n):
                yield Region(ctx, function, n, [], unsure=UNSURE)


def _of_with(ctx: Context, function: FunctionInfo, n: ast.With | ast.AsyncWith) -> Iterator[Region]:
    for item in n.items:
        found = _switch(ctx, item.context_expr)
        if found is None:
            continue
        condition = found.condition
        lost = found.unsure or condition is not None and (not all(isinstance(m, SIMPLE) for m in walk(condition)) or _hands_on(ctx, n.body))
        yield Region(ctx, function, n, n.body, unsure=UNSURE) if lost else Region(ctx, function, n, n.body, condition, found.negated)


def condition_of(ctx: Context, made: ast.expr) -> ast.expr | None:
    """The value that says whether a context has gradients."""
    found = _switch(ctx, made)
    return found.condition if found is not None else None


def _hands_on(ctx: Context, body: list[ast.stmt]) -> bool:
    """Whether statements hand values on by more than names."""
    return any(
        isinstance(m, (ast.Return, ast.Yield, ast.AugAssign)) or isinstance(m, (ast.Attribute, ast.Subscript)) and isinstance(m.ctx, ast.Store)
        or isinstance(m, ast.Call) and (bool(aliases.events(ctx, m)) or isinstance(m.func, ast.Attribute) and m.func.attr in FILLING and isinstance(ctx.source.parent(m), ast.Expr))
        for m in own_nodes(ctx, body)
    )


def _switch(ctx: Context, made: ast.expr) -> Switch | None:
    """What a context or a decorator says of gradients; None where it is no such switch."""
    call = made if isinstance(made, ast.Call) else None
    if isinstance(made, ast.IfExp):
        return _one_of_two(ctx, made)
    if isinstance(made, ast.Name) and (bound := ctx.file.names.lookup(made)) and any(b.value is not None and b.kind == "assign" and ctx.function_of(b.value) is None and _mentions(ctx, b.value) for b in bound):
        return Switch(unsure=True)
    name = ctx.dotted(call.func if call else made)
    given = (call.args[0] if call.args else call.keywords[0].value if call.keywords else None) if call else None
    if name in OFF and not (isinstance(given, ast.Constant) and given.value is False):
        return Switch(unsure=given is not None and not isinstance(given, ast.Constant) and name.endswith("inference_mode"))
    if name != SWITCH or given is None:
        return None
    if isinstance(given, ast.Constant):
        return None if given.value else Switch()
    return Switch(given, negated=True)


def _one_of_two(ctx: Context, made: ast.IfExp) -> Switch | None:
    """`torch.no_grad() if frozen else nullcontext()`."""
    yes, no = _switch(ctx, made.body), _switch(ctx, made.orelse)
    if yes is None and no is None:
        return None
    if (yes, no) in ((Switch(), None), (None, Switch())):
        return Switch(made.test, negated=yes is None)
    return Switch(unsure=True)


def _mentions(ctx: Context, value: ast.expr) -> bool:
    return any(isinstance(m, (ast.Name, ast.Attribute)) and ctx.dotted(m) in OFF | {SWITCH} for m in walk(value))


def _switches_on(ctx: Context, n: ast.AST) -> bool:
    """`torch.set_grad_enabled(True)`."""
    call = ctx.source.parent(n)
    given = call.args[0] if isinstance(call, ast.Call) and call.func is n and call.args else None
    return isinstance(given, ast.Constant) and bool(given.value)


def no_gradient(f: FunctionInfo) -> bool:
    """Constructors, initialisation and the steps of optimizers: their results are no function of an input."""
    if f.owner is not None and any((b if isinstance(b, str) else b.torch) in OPTIMIZERS for b in f.owner.foreign()):
        return True
    return f.makes or f.name == "__init__" or f.name.lstrip("_").startswith(("init", "reset"))


def own_nodes(ctx: Context, body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements without those in functions defined in them, and of what has gradients again."""
    stack: list[ast.AST] = list(body)
    while stack:
        n = stack.pop()
        if isinstance(n, DEFINED):
            if not isinstance(n, ast.ClassDef):
                yield n
                stack.extend(d for d in [*n.args.defaults, *n.args.kw_defaults] if d is not None)
            continue
        if isinstance(n, (ast.With, ast.AsyncWith)) and any(ctx.dotted(i.context_expr.func if isinstance(i.context_expr, ast.Call) else i.context_expr) in ON for i in n.items):
            continue
        yield n
        stack.extend(children(n))
