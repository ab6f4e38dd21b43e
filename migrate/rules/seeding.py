"""Seed random streams where a program chooses the seed: PyTorch's seed is that of all that is drawn afterwards.

Converted: `torch.manual_seed(args.seed)` where models are made; for Keras anywhere.
Unchanged: another library's seed. A seed that is a number of the code goes: the streams of the output start from numbers as well.
Reported: a seed where no stream is at hand.
"""
import ast

from migrate.context import Context
from migrate.edits import LAMBDA, Piece
from migrate.removal import remove_statement
from migrate.rules import rngs
from migrate.rules.example import Example
from migrate.source.modules import FunctionInfo

RULE = "seeding"
SEEDS = frozenset({"torch.manual_seed", "torch.random.manual_seed"})


def visit_expr(ctx: Context, node: ast.Expr) -> None:
    """`torch.manual_seed(seed)` as a statement."""
    call = node.value
    if not isinstance(call, ast.Call) or ctx.owned(node) or ctx.dotted(call.func) not in SEEDS:
        return
    given = [*call.args, *(k.value for k in call.keywords)]
    if len(given) != 1 or isinstance(seed := given[0], (ast.Constant, ast.Starred)):
        return
    if not ctx.target.threads_rngs:
        ctx.edit(node, lambda e: Piece(f"{ctx.name('keras')}.utils.set_random_seed({e.piece(seed).at(LAMBDA)})"), RULE, why="manual_seed")
    elif _has_stream(ctx, node):
        stream = rngs.stream(ctx, call)
        ctx.edit(node, lambda e: Piece(f"{stream} = {rngs.new_stream(ctx, e.piece(seed).at(LAMBDA))}"), RULE, why="manual_seed")
    else:
        ctx.report("MIG201", node, f"the seed goes: random numbers come from the streams that the code is given, so give it to nnx.Rngs({ctx.source.segment(seed)}) where a model is made")
        remove_statement(ctx, node, RULE)


def _has_stream(ctx: Context, node: ast.Expr) -> bool:
    """Whether the function around gets a stream, so that what it makes afterwards can be given another."""
    at = ctx.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    info = ctx.file.by_node.get(at) if at is not None else None
    return isinstance(info, FunctionInfo) and info.builds


EXAMPLES = (
    Example("def make(seed):\n    torch.manual_seed(seed)\n    return nn.Linear(3, 3)\n", "def make(seed, *, rngs: nnx.Rngs):\n    rngs = nnx.Rngs(seed)\n", "def make(seed):\n    keras.utils.set_random_seed(seed)\n"),
    Example(
        "def make(options):\n    if options.seed is not None:\n        torch.manual_seed(seed=options.seed)\n    return nn.Linear(3, 3)\n",
        "    if options.seed is not None:\n        rngs = nnx.Rngs(options.seed)\n", "        keras.utils.set_random_seed(options.seed)\n",
    ),
    Example("def start(seed: int):\n    torch.manual_seed(seed)\n", "def start(seed: int):\n    pass\n", "    keras.utils.set_random_seed(seed)\n", why="no stream is at hand"),
    Example("import random\n\n\ndef start(seed: int):\n    random.seed(seed)\n", why="another library's"),
    Example("class Clock:\n    def manual_seed(self, n):\n        self.n = n\n\n\ndef start(torch_, seed):\n    torch_.manual_seed(seed)\n    Clock().manual_seed(seed)\n"),
)
