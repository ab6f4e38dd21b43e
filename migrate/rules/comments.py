"""Mark what was left: one comment above a statement that holds a construct that was not converted."""
import ast

from migrate.context import Context
from migrate.diagnostics import CODES
from migrate.rules.example import Example

RULE = "comments"


def plan(ctx: Context) -> None:
    """Inserts the comments."""
    places: dict[int, list[str]] = {}
    for node in sorted(ctx.left, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
        line = getattr(node, "lineno", 0)
        messages = [f"{d.code} {d.message.partition(': ')[2] or d.message}" for d in ctx.diagnostics if d.line == line and CODES[d.code].severity == "error"]
        statement = node if isinstance(node, ast.stmt) else ctx.source.statement(node)
        if statement in ctx.removed or not messages:
            continue
        start = ctx.source.start(statement)
        at = ctx.source.line_start(start)
        if ctx.source.text[at:start].strip():
            continue  # a second statement on its line
        places.setdefault(at, [])
        for m in messages:
            text = f"{ctx.source.indent(statement)}# {m}\n"
            if text not in places[at]:
                places[at].append(text)
    for at, texts in places.items():
        ctx.plan.insert(at, "".join(texts), RULE, order=9)


LEFT = "# MIG301 torch.frobnicate has no equivalent yet\n"
EXAMPLES = (
    Example("def f(x):\n    # about y\n    y = torch.frobnicate(x)\n    return y\n", jax=f"    # about y\n    {LEFT}    y = torch.frobnicate(x)\n", refused="MIG301"),
    Example("def f(x):\n    y = (\n        1,\n        torch.frobnicate(x),\n    )\n    return y\n", jax=f"    {LEFT}    y = (\n        1,\n", refused="MIG301"),
    Example(
        "y = {\n" + "".join(f"    torch.frobnicate{i}(3),\n" for i in range(8)) + "}\n", jax="".join(f"# MIG301 torch.frobnicate{i} has no equivalent yet\n" for i in range(8)) + "y = {\n", refused="MIG301",
        why="in the order of their lines",
    ),
    Example("def f(x):\n\tif x:\n\t\treturn torch.frobnicate(x)\n", jax=f"\tif x:\n\t\t{LEFT}\t\treturn torch.frobnicate(x)\n", refused="MIG301", why="tabs"),
    Example("def f(x): return torch.frobnicate(x)\n", jax="def f(x): import torch; return torch.frobnicate(x)\n", refused="MIG301", why="no line of its own for a comment"),
    Example("# nothing of PyTorch\ndef f(x):\n    return x\n"),
    Example("def f(x):\n    # MIG301 is not ours\n    return x\n"),
)
