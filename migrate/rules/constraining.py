"""Constrain parameters in a forward pass: what PyTorch writes to a parameter where it records no gradient has the gradient of the parameter itself.

Converted: `self.w.data.clamp_(-1, 1)`, `with torch.no_grad(): self.w.mul_(s)` in `forward` and in what it calls.
Unchanged: buffers, and what no forward pass calls: initialisation, the step of a moving average.
"""
import ast
from collections.abc import Iterator

from migrate.context import Context
from migrate.edits import LAMBDA, Piece
from migrate.rules.example import Example
from migrate.rules.regions import OFF
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.source.text import walk

RULE = "constraining"


def kept_gradient(ctx: Context, target: ast.expr, held: Piece, value: Piece) -> Piece:
    """The new value of a variable that `target` names and the output calls `held`, with the variable's gradient where PyTorch keeps that."""
    if not keeps_gradient(ctx, target):
        return value
    return Piece(f"{ctx.name('with_gradient_of')}({held.at(LAMBDA)}, {value.at(LAMBDA)})")


def keeps_gradient(ctx: Context, target: ast.expr) -> bool:
    """Whether what is written to is a parameter in a forward pass that has, in PyTorch, no gradient of what it is given."""
    f = ctx.function_of(target)
    return ctx.kind(target).variable == "param" and "with_gradient_of" in ctx.support and f is not None and _is_silent(ctx, target) and runs_forward(ctx, f)


def _is_silent(ctx: Context, target: ast.expr) -> bool:
    """Whether no gradient is recorded where a variable is written to: through its data, or within `no_grad`."""
    at: ast.AST | None = target
    while at is not None:
        if isinstance(at, ast.Attribute) and at.attr in ("data", "detach"):
            return True
        if isinstance(at, (ast.With, ast.AsyncWith)) and any(_is_off(ctx, i.context_expr) for i in at.items):
            return True
        if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(_is_off(ctx, d) for d in at.decorator_list)
        at = ctx.source.parent(at)
    return False


def _is_off(ctx: Context, made: ast.expr) -> bool:
    return ctx.dotted(made.func if isinstance(made, ast.Call) else made) in OFF


def runs_forward(ctx: Context, function: FunctionInfo) -> bool:
    """Whether a function is the forward of a module, or one that this leads to."""
    reached = ctx.shared.get(RULE)
    if reached is None:
        reached = ctx.shared[RULE] = _reached(ctx)
    at: FunctionInfo | None = function
    while at is not None and at not in reached:
        at = ctx.function_of(at.node)
    return at is not None


def _reached(ctx: Context) -> set[FunctionInfo]:
    """The functions that the forward passes of the unit's modules lead to."""
    classes = [c for file in ctx.unit.files.values() for c in file.classes if c.is_module]
    stack = [c.methods[name] for c in classes for name in ("forward", "__call__") if name in c.methods]
    found: set[FunctionInfo] = set()
    while stack:
        f = stack.pop()
        if f not in found:
            found.add(f)
            stack += _led_to(ctx, f, classes)
    return found


def _led_to(ctx: Context, f: FunctionInfo, classes: list[ClassInfo]) -> Iterator[FunctionInfo]:
    """What a function calls, or takes of an object: a property runs as well."""
    for n in walk(f.node):
        if isinstance(n, ast.Call) and isinstance(held := ctx.kind(n.func).ref, FunctionInfo):
            yield held
        elif isinstance(n, ast.Attribute):
            own = f.owner if isinstance(n.value, ast.Name) and n.value.id == f.self_name else ctx.kind(n.value).ref
            if isinstance(own, ClassInfo):
                yield from (m for c in classes if own in c.mro() and (m := c.method(n.attr)) is not None)


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(3))\n        self.register_buffer('s', torch.ones(3))\n\n"
EXAMPLES = (
    Example(f"{HEAD}    def forward(self, x):\n        self.w.data.clamp_(-1, 1)\n        return x * self.w\n", "        self.w[...] = with_gradient_of(self.w, clamp(self.w[...], min=-1, max=1))\n", "with_gradient_of(self.w, "),
    Example(
        f"{HEAD}    @torch.no_grad()\n    def limit(self):\n        self.w.mul_(0.5)\n\n    def forward(self, x):\n        self.limit()\n        return x * self.w\n",
        "        self.w[...] = with_gradient_of(self.w, self.w[...] * 0.5)\n", "with_gradient_of(self.w, ", why="what forward calls",
    ),
    Example(
        f"{HEAD}    def forward(self, x):\n        with torch.no_grad():\n            for p in self.parameters():\n                p.mul_(0.5)\n        return x * self.w\n",
        "        for p in parameters(self):\n            p[...] = with_gradient_of(p, p * 0.5)\n", "with_gradient_of(p, ", why="each parameter",
    ),
    Example(f"{HEAD}    @torch.no_grad()\n    def step(self):\n        self.w.mul_(0.9)\n\n    def forward(self, x):\n        return x * self.w\n", "        self.w[...] = self.w[...] * 0.9\n", "        self.w.assign(self.w.value * 0.9)\n", why="no forward pass calls it"),
    Example(
        "class Low(nn.Linear):\n    def forward(self, x):\n        self.weight.data = torch.renorm(self.weight.data, 2, 0, 0.1)\n        return super().forward(x)\n",
        "        self.kernel[...] = with_gradient_of(self.kernel, renorm(", "        self.weight.assign(with_gradient_of(self.weight, renorm(", why="of the layer that the class is",
    ),
    Example(f"{HEAD}    def forward(self, x):\n        self.s.data.mul_(0.5)\n        return x * self.s\n", "        self.s[...] = self.s[...] * 0.5\n", "        self.s.assign(self.s.value * 0.5)\n", why="a buffer has no gradient"),
    Example("class Site:\n    def forward(self, page):\n        page.data.clear()\n        return page\n", why="no tensors"),
    Example("def f(table, no_grad):\n    with no_grad():\n        table.data = 3\n    return table\n"),
)
