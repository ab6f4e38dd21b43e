"""Leave what the user marked.

Converted: nothing.
Unchanged: a statement, function or class whose first line ends in `# migrate: keep`; calls of it are as they were, the rest works around it.
"""
from migrate.context import Context, snippet
from migrate.rules.example import Example
from migrate.source.keep import MARK, kept_statements

RULE = "keeping"


def finish(ctx: Context) -> None:
    """Takes back what other rules planned inside, and says what was kept."""
    for s in kept_statements(ctx.source):
        start, end = ctx.source.span(s)
        ctx.plan.texts[:] = [t for t in ctx.plan.texts if t.end < start or t.start > end or (t.start == t.end and t.start in (start, end))]
        last = s.end_lineno or s.lineno
        ctx.diagnostics[:] = [d for d in ctx.diagnostics if not s.lineno <= d.line <= last]
        ctx.report("MIG110", s, f"kept as it is: {snippet(MARK.sub('', ctx.source.segment(s).partition(chr(10))[0]))}")
    for node in [n for n in ctx.plan.nodes if n in ctx.kept]:
        del ctx.plan.nodes[node]
    ctx.left -= ctx.kept


KEPT = "def f(x):\n    y = torch.relu(x)  # migrate: keep\n    return torch.relu(y)\n"
EXAMPLES = (
    Example(KEPT, jax="    y = torch.relu(x)  # migrate: keep\n    return jax.nn.relu(y)\n"),
    Example("class Old(nn.Module):  # migrate: keep\n    def forward(self, x):\n        return x\n\n\ndef make():\n    return Old()\n", "    return Old()\n", why="a class: it takes no rngs"),
    Example("def f(x):  # migrate: keep\n    return torch.frobnicate(x)\n\n\ndef g(x):\n    return f(torch.relu(x))\n", jax="    return f(jax.nn.relu(x))\n", why="a function"),
    Example("def f(x):\n    # migrate: keeper\n    return x + 1\n"),
    Example('def f(x):\n    return x + "# migrate: keep"\n'),
)
