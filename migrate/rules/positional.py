"""Pass a layer's inputs by position: the native layer has other names for them.

Converted: `self.fc(input=x)`.
Unchanged: a layer that is a support class takes PyTorch's names; a call whose keywords are not the next parameters in order.
"""
import ast

from migrate.context import Context
from migrate.tables import Row, parameters

RULE = "positional"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """A call of a layer that may be a native one."""
    kind = ctx.kind(node.func)
    if not node.keywords or ctx.owned(node) or kind.tag != "module" or not isinstance(kind.ref, Row) or not kind.ref.for_target(ctx.target.name):
        return
    names = [p.name for p in parameters(kind.ref.call)]
    wanted = names[len(node.args) : len(node.args) + len(node.keywords)]
    if [k.arg for k in node.keywords] != wanted or any(isinstance(a, ast.Starred) for a in node.args):
        return
    for k in node.keywords:
        ctx.plan.replace(ctx.source.start(k), ctx.source.start(k.value), "", RULE)
