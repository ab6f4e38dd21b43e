"""Names that are looked up in PyTorch's modules at run time become look-ups in a table of what the code can name.

Converted: `getattr(nn, activation)()`, `getattr(nn, "GELU")`, `nn.SiLU if hasattr(nn, "SiLU") else Swish`, `"silu" in dir(F)`, `getattr(F, f"adaptive_avg_pool{n}d")`, `vars(nn.modules.activation)`.
Unchanged: `getattr(config, "dim")`, a local object that is called `nn`.
Refused: a name that no text in the code spells.
"""
import ast

from migrate.context import Context
from migrate.edits import BITOR, COMPARE, Emitter, Piece
from migrate.infer.lookups import MODULES, Lookup, lookup
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.rules.operators import as_function, constant, function_text
from migrate.tables import Row

RULE = "lookups"
TABLES = {
    "torch.nn.activation": "ACTIVATIONS", "torch.nn.batchnorm": "BATCH_NORMS", "torch.nn.normalization": "NORMS", "torch.nn": "LAYERS", "torch.nn.functional": "FUNCTIONS", "torch.nn.init": "INITIALIZERS", "torch": "OPERATORS",
}
MEMBERS = {  # the layers that a file of PyTorch defines
    "torch.nn.activation": "Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish ELU CELU SELU GLU GELU Hardshrink LeakyReLU LogSigmoid Softplus"
    " Softshrink MultiheadAttention PReLU Softsign Tanhshrink Softmin Softmax Softmax2d LogSoftmax",
    "torch.nn.batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "torch.nn.normalization": "LocalResponseNorm LayerNorm GroupNorm RMSNorm",
}


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`getattr(nn, name)` and `hasattr(nn, name)`."""
    if ctx.owned(node):
        return
    if ctx.dotted(node.func) == "inspect.signature" and len(node.args) == 1 and "signature" in ctx.support and ctx.kind(node.args[0]).tag in ("class", "factory", "unknown"):
        name = ctx.name("signature")
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name), RULE, why="inspect.signature")
    elif ctx.dotted(node.func) == "builtins.vars" and len(node.args) == 1 and ctx.dotted(node.args[0]) in MEMBERS:
        _members(ctx, node, ctx.dotted(node.args[0]))
    elif (found := lookup(ctx.unit, ctx.file, node)) is not None:
        _getattr(ctx, node, found)
    elif (found := lookup(ctx.unit, ctx.file, node, "hasattr")) is not None:
        _hasattr(ctx, node, found)


def _members(ctx: Context, node: ast.Call, module: str) -> None:
    """`vars(torch.nn.modules.activation)`: all layers of that file."""
    rows = {n: r for n in MEMBERS[module].split() if (r := ctx.unit.table.get(f"torch.nn.{n}")) is not None}
    table = _table(ctx, module, {n: t for n, r in rows.items() if (t := _value(ctx, r)) is not None})
    ctx.removed.update(ast.walk(node.args[0]))
    ctx.edit(node, lambda e: Piece(table), RULE, why="vars")


def visit_compare(ctx: Context, node: ast.Compare) -> None:
    """`"silu" in dir(F)`."""
    listed = node.comparators[0]
    if ctx.owned(node) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)) or not isinstance(node.left, ast.Constant):
        return
    if not (isinstance(listed, ast.Call) and ctx.dotted(listed.func) == "builtins.dir" and len(listed.args) == 1 and ctx.dotted(listed.args[0]) in MODULES):
        return
    row = ctx.unit.table.get(f"{ctx.dotted(listed.args[0])}.{node.left.value!s}")
    held = row is not None and _value(ctx, row) is not None
    ctx.edit(node, lambda e: Piece(str(held == isinstance(node.ops[0], ast.In))), RULE, "MIG103", "dir")
    ctx.removed.update(ast.walk(listed))


def _getattr(ctx: Context, node: ast.Call, found: Lookup) -> None:
    texts = {n: t for n, r in found.rows.items() if (t := _value(ctx, r)) is not None}
    if found.literal and found.literal in texts:
        text = texts[found.literal]
        ctx.edit(node, lambda e: function_text(ctx, text), RULE, why="getattr")
    elif texts and not found.literal and found.module in TABLES:
        table = _table(ctx, found.module, texts)
        ctx.edit(node, lambda e: _looked_up(e, node, table), RULE, why="getattr")
    else:
        ctx.refuse("MIG301", node, "which names are looked up here could not be told")
    ctx.removed.update(ast.walk(node.args[0]))


def _hasattr(ctx: Context, node: ast.Call, found: Lookup) -> None:
    if found.literal:
        held = any(_value(ctx, r) is not None for r in found.rows.values())
        parent = ctx.source.parent(node)
        if isinstance(parent, ast.IfExp) and parent.test is node:
            chosen, other = (parent.body, parent.orelse) if held else (parent.orelse, parent.body)
            ctx.edit(parent, lambda e: e.piece(chosen), RULE, "MIG103", "hasattr")
            ctx.removed.update(ast.walk(other))
        else:
            ctx.edit(node, lambda e: Piece(str(held)), RULE, "MIG103", "hasattr")
    elif found.module in TABLES and (texts := {n: t for n, r in found.rows.items() if (t := _value(ctx, r)) is not None}):
        table = _table(ctx, found.module, texts)
        ctx.edit(node, lambda e: Piece(f"{e.piece(node.args[1]).at(BITOR)} in {table}", COMPARE), RULE, why="hasattr")
    else:
        ctx.refuse("MIG301", node, "which names are looked up here could not be told")
    ctx.removed.update(ast.walk(node.args[0]))


def _looked_up(e: Emitter, node: ast.Call, table: str) -> Piece:
    name = e.piece(node.args[1]).text
    return Piece(f"{table}[{name}]" if len(node.args) == 2 else f"{table}.get({name}, {e.piece(node.args[2]).text})")


def _value(ctx: Context, row: Row) -> str | None:
    """The template of what a row is as a value; None where it has none."""
    if row.kind == "layer":
        return row.support if row.support in ctx.support else None
    if row.kind == "constant":
        variants = row.for_target(ctx.target.name)
        return constant(ctx, variants[0]).text if variants else None
    return row.value or as_function(ctx, row)


def _table(ctx: Context, module: str, texts: dict[str, str]) -> str:
    """The name of the file's table for a module; what it holds goes after the imports."""
    tables = ctx.shared.setdefault("lookup_tables", {})
    if module not in tables:
        tables[module] = (ctx.new_name(TABLES[module]), {})
    name, entries = tables[module]
    entries.update({n: function_text(ctx, t).text for n, t in texts.items()})
    return str(name)


def block(ctx: Context) -> str:
    """The tables of a file, as statements."""
    lines = []
    for name, entries in ctx.shared.get("lookup_tables", {}).values():
        line = f"{name} = {{{', '.join(f'{key!r}: {value}' for key, value in sorted(entries.items()))}}}".replace("'", '"')
        if len(line) > 120:
            line = f"{name} = {{\n" + "".join(f'    "{key}": {value},\n' for key, value in sorted(entries.items())) + "}"
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


HEAD = "class Net(nn.Module):\n    def __init__(self, act='GELU', n=4):\n        super().__init__()\n"
EXAMPLES = (
    Example(
        f"{HEAD}        self.act = getattr(nn, act)()\n", '\nLAYERS = {"GELU": GELU}\n', why="a table of the layers that the code names",
    ),
    Example(f"{HEAD}        self.act = getattr(nn, act)()\n", "        self.act = LAYERS[act]()\n", "        self.act = LAYERS[act]()\n"),
    Example(f"{HEAD}        self.a = getattr(nn, act, nn.Linear)(n, n)\n\n\nNet('Linear')\n", "        self.a = build(LAYERS.get(act, Linear), n, n, rngs=rngs)\n", "LAYERS.get(act, Linear)(n, n)\n"),
    Example(f"{HEAD}        self.act = getattr(nn, 'Tanh')()\n", jax="        self.act = Tanh()\n"),
    Example("def f(x, n):\n    return getattr(F, f'adaptive_avg_pool{n}d')(x, 1)\n", jax="    return FUNCTIONS[f'adaptive_avg_pool{n}d'](x, 1)\n"),
    Example("def f(x, n):\n    name = 'adaptive_avg_pool{}d'.format(n)\n    return getattr(F, name)(x, 1)\n", jax='"adaptive_avg_pool3d": adaptive_avg_pool3d', why="a text with gaps, by way of a name"),
    Example("def f(x, n):\n    return getattr(F, 'adaptive_avg_pool' + str(n) + 'd')(x, 1), getattr(F, 'adaptive_max_pool%dd' % n)(x, 1)\n", jax='"adaptive_max_pool2d": adaptive_max_pool2d', why="a sum of texts"),
    Example("Act = nn.SiLU if hasattr(nn, 'SiLU') else print\n", jax="Act = SiLU\n"),
    Example("def f(name):\n    return name if hasattr(nn, name) else 'Tanh'\n", jax='    return name if name in LAYERS else "Tanh"\n'.replace('"', "'")),
    Example("native = 'silu' in dir(torch.nn.functional), 'never' not in dir(F)\n", jax="native = True, True\n"),
    Example("import inspect\n\n\ndef f(layer):\n    return 'dim' in inspect.signature(layer).parameters\n", "    return 'dim' in signature(layer).parameters\n", "    return 'dim' in inspect.signature(layer).parameters\n", why="a class of modules has its constructor's"),
    Example(
        "def find(name):\n    return [a for a in vars(nn.modules.activation).values() if isinstance(a, type) and a.__name__.lower() == name]\n",
        jax="    return [a for a in ACTIVATIONS.values() if isinstance(a, type) and a.__name__.lower() == name]\n", why="all layers of a file of PyTorch",
    ),
    Example("def f(config, name):\n    return getattr(config, name, 3), hasattr(config, 'Tanh')\n"),
    Example("class nn:\n    Tanh = 3\n\n\nprint(getattr(nn, 'Tanh'))\n"),
    Example("def f(name):\n    return getattr(nn, name)\n", refused="MIG301"),
)
