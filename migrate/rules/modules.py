"""Turn module classes: `forward` is renamed, constructors and builders take `rngs`, `super().__init__` follows the new base.

Converted: `def forward(self, x)`, `super().__init__()`, a class without a constructor, `net.forward(x)`.
Unchanged: classes that are no modules, a `forward` outside a module.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.fitting.extract import inherited_rngs
from migrate.removal import remove_statement
from migrate.rules import calling, modes, reserved
from migrate.rules.example import Example
from migrate.rules.layers import qualified
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.source.text import Source
from migrate.tables import Row

RULE = "modules"


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """Renames `forward`, adds the parameter `rngs`."""
    if f.name == "forward" and f.owner is not None and f.owner.forwards:
        start = _name_offset(ctx, f.node)
        ctx.plan.replace(start, start + len("forward"), ctx.target.forward, RULE)
    if f.builds and ctx.target.threads_rngs and not any(a.arg == "rngs" for a in [*f.node.args.args, *f.node.args.kwonlyargs]):
        add_parameter(ctx, f.node, f"rngs: {qualified(ctx, ctx.target.rngs_type)}")


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`forward = function` in the body of a module class."""
    owner, target = ctx.file.by_node.get(ctx.source.parent(node)), node.targets[0]
    if isinstance(owner, ClassInfo) and owner.forwards and isinstance(target, ast.Name) and target.id == "forward":
        start, end = ctx.source.span(target)
        ctx.plan.replace(start, end, ctx.target.forward, RULE)


def _name_offset(ctx: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    at = ctx.source.offset(node.lineno, node.col_offset)
    return int(ctx.source.text.index(node.name, ctx.source.text.index("def", at) + 3))


def add_parameter(ctx: Context, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, text: str) -> None:
    """Adds a keyword-only parameter, in the shape of the list."""
    a, src = node.args, ctx.source
    star = "" if a.vararg or a.kwonlyargs else "*, "
    before = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]
    ends = [src.end(p) for p in before] + [src.end(d) for d in [*a.defaults, *a.kw_defaults] if d is not None]
    if isinstance(node, ast.Lambda):
        text = text.partition(":")[0]
        if not ends:
            lam = src.start(node) + len("lambda")
            ctx.plan.insert(lam, f" {star}{text}", RULE)
            return
    if a.kwarg is not None:
        at = src.text.rindex("**", 0, src.start(a.kwarg))
        ctx.plan.insert(at, _before_kwargs(ctx, node, at, star, text), RULE)
        return
    if not ends:
        opened = src.text.index("(", _name_offset(ctx, node)) + 1  # type: ignore[arg-type]
        ctx.plan.insert(opened, f"{star}{text}", RULE)
        return
    end = _past_parentheses(src, a, max(ends))
    close = _closing(src.text, end, ":" if isinstance(node, ast.Lambda) else ")")
    tail = src.text[end:close]
    comma = calling.trailing_comma(tail)
    last = max(before, key=src.start)
    row = src.text[src.line_start(end) : src.line_end(end)].rstrip("\n")
    if "\n" in tail and len(before) > 1 and src.line_of(src.start(min(before, key=src.start))) == src.line_of(end) and len(row) + len(star + text) <= 110:
        ctx.plan.insert(end, f", {star}{text}", RULE)
    elif "\n" in tail:
        at = end + comma + 1 if comma >= 0 else end
        indent = src.indent(last)
        comment = src.text[at : src.text.index("\n", at)]
        if comma < 0:
            ctx.plan.insert(at, ",", RULE)
        ctx.plan.insert(at + len(comment.rstrip()), f"\n{indent}" + (f"{star.strip()}\n{indent}" if star else "") + f"{text},", RULE, order=1)
    else:
        ctx.plan.insert(end, f", {star}{text}", RULE)


def _before_kwargs(ctx: Context, node: ast.AST, at: int, star: str, text: str) -> str:
    line = ctx.source.text[ctx.source.line_start(at) : at]
    separator = ",\n" + line if not line.strip() else ", "
    return f"{star.rstrip(' ').rstrip(',') + separator if star else ''}{text}{separator}"


def _past_parentheses(src: Source, a: ast.arguments, end: int) -> int:
    """Past the parentheses around the last default: `x=(1 + 2)`."""
    last = next((d for d in [*a.defaults, *a.kw_defaults] if d is not None and src.end(d) == end), None)
    if last is None:
        return end
    before, opened = src.start(last), 0
    while (before := len(src.text[:before].rstrip()) - 1) >= 0 and src.text[before] == "(":
        opened += 1
    for _ in range(opened):
        end = _closing(src.text, end, ")") + 1
    return end


def _closing(text: str, at: int, char: str) -> int:
    while text[at] != char:
        at = text.index("\n", at) if text[at] == "#" else at + 1
    return at


def visit_class(ctx: Context, c: ClassInfo) -> None:
    """A constructor for a module that has none; attributes that its methods need."""
    if not c.is_module:
        return
    if ctx.target.training_attribute and modes.own_mode(c) is not None and not any(modes.own_mode(b) for b in c.mro() if b is not c):
        _class_attribute(ctx, c, f"deterministic = {ctx.name('OwnMode')}()")
    elif ctx.target.training_attribute and "training" in c.traits and not modes.decides(c):
        _class_attribute(ctx, c, ctx.target.training_attribute)
    if names := reserved.names_of(ctx, c):
        _class_attribute(ctx, c, f"torch_names = {names!r}".replace("'", '"'))
    if ctx.target.threads_rngs and "__init__" not in c.methods and _needs_constructor(c):
        _constructor(ctx, c)
    elif "rngs" in c.traits:
        _stream_member(ctx, c)


def _needs_constructor(c: ClassInfo) -> bool:
    if "rngs" in c.traits and not any("__init__" in b.methods or "rngs" in b.traits for b in c.mro() if b is not c):
        return True
    return not any("__init__" in b.methods or isinstance(b.layer, Row) for b in c.mro()) and not _has_module_base(c)


def _has_module_base(c: ClassInfo) -> bool:
    """Whether a local base is a module: it has a constructor in the output, its own or one that is added."""
    return any(isinstance(b, ClassInfo) and b.is_module for b in c.bases)


def _body_start(ctx: Context, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, str, bool]:
    """Where new statements go at the start of a body, their indentation, and whether a docstring is above."""
    src = ctx.source
    first = node.body[0]
    doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    if doc and len(node.body) > 1:
        return src.line_end(src.end(first)), src.indent(node.body[1]), True
    if doc:
        return src.line_end(src.end(first)), src.indent(first), True
    return _line_of(ctx, first), src.indent(first), False


def _line_of(ctx: Context, node: ast.stmt) -> int:
    """The start of a statement's line, or of the comments directly above it."""
    at = int(ctx.source.line_start(ctx.source.start(node)))
    head = ctx.source.parent(node)
    first = ctx.source.start(head) if head is not None else 0
    while at > 0 and (above := ctx.source.line_start(at - 1)) > first and ctx.source.text[above:at].lstrip().startswith("#") and not _in_head(ctx, node, above):
        at = above
    return at


def _in_head(ctx: Context, node: ast.stmt, at: int) -> bool:
    """Whether a line is within the parameter list of the function that a statement is in."""
    up = ctx.source.parent(node)
    if not isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    parts = up.bases if isinstance(up, ast.ClassDef) else [*up.args.args, *up.args.kwonlyargs, *up.args.defaults, *([up.returns] if up.returns else [])]
    return any(ctx.source.end(p) >= at for p in parts)


def _one_liner(ctx: Context, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    start = ctx.source.start(node.body[0])
    return bool(ctx.source.text[ctx.source.line_start(start) : start].strip())


def _class_attribute(ctx: Context, c: ClassInfo, text: str) -> None:
    if _one_liner(ctx, c.node):
        ctx.plan.insert(ctx.source.start(c.node.body[0]), f"{text}; ", RULE)
        return
    at, indent, doc = _body_start(ctx, c.node)
    following = ctx.source.text[at : at + 1] == "\n"
    ctx.plan.insert(at, ("\n" if doc else "") + f"{indent}{text}\n" + ("" if following else "\n"), RULE, order=1)


def _constructor(ctx: Context, c: ClassInfo) -> None:
    stream = c.traits & {"rngs"}
    type_ = qualified(ctx, ctx.target.rngs_type)
    foreign = [b for b in c.foreign() if isinstance(b, str) and b not in ("torch.nn.Module", "abc.ABC", "builtins.object") and not b.startswith("typing.")]
    inherits = _has_module_base(c)
    if foreign or inherits:
        passed = "*args, rngs=rngs, **kwargs" if inherits else "*args, **kwargs"
        lines = [f"def __init__(self, *args, rngs: {type_}, **kwargs):", f"    super().__init__({passed})"]
    else:
        shared = not stream and _cooperative(ctx, c)  # a base beside it calls this constructor without arguments
        lines = [f"def __init__(self, *, rngs: {type_} | None = None):" if shared else f"def __init__(self, *, rngs: {type_}):"]
    if stream:
        lines.append(f"    self.rngs = {ctx.target.rngs_member}")
    elif len(lines) == 1:
        lines.append("    pass")
    if _one_liner(ctx, c.node):
        indent = ctx.source.indent(c.node) + "    "
        first = c.node.body[0]
        body = ctx.source.start(first)
        ctx.plan.insert(body, "\n" + "\n".join(indent + line for line in lines) + "\n\n" + indent, RULE)
        return
    first = c.node.body[0]
    only_pass = len(c.node.body) == 1 and isinstance(first, ast.Pass)
    at, indent, doc = _body_start(ctx, c.node)
    members = _attributes_end(ctx, c)
    if members is not None:
        at = members
    block = "\n".join(indent + line for line in lines) + "\n"
    if only_pass:
        ctx.edit(first, lambda e: Piece(block.strip()), RULE)
        return
    if doc or members is not None:
        ctx.plan.insert(at, "\n" + block + ("" if ctx.source.text[at : at + 1] == "\n" else "\n"), RULE, order=2)
    else:
        ctx.plan.insert(at, block + "\n", RULE, order=2)


def _attributes_end(ctx: Context, c: ClassInfo) -> int | None:
    """After the class attributes that open a class, where there are any."""
    last = None
    for s in c.node.body:
        if isinstance(s, (ast.Assign, ast.AnnAssign)):
            last = s
        elif not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            break
    return ctx.source.line_end(ctx.source.end(last)) if last is not None else None


def _stream_member(ctx: Context, c: ClassInfo) -> None:
    init = c.methods.get("__init__")
    if init is None:
        return
    name = init.self_name or "self"
    member = ctx.target.rngs_member
    head = member.partition("(")[0].partition(".")[0]
    text = f"{name}.rngs = {ctx.name(head) + member[len(head):]}"
    call = next((s for s in init.node.body if _is_super_init(s)), None)
    if _one_liner(ctx, init.node):
        ctx.plan.insert(ctx.source.start(init.node.body[0]), f"{text}; ", RULE)
        return
    if call is not None and call in ctx.removed:
        ctx.plan.insert(ctx.source.line_start(ctx.source.start(call)), f"{ctx.source.indent(call)}{text}\n", RULE, order=1)
        return
    if call is not None:
        end = ctx.source.line_end(ctx.source.end(call))
        ctx.plan.insert(end, f"{ctx.source.indent(call)}{text}\n", RULE, order=1)
        return
    at, indent, _ = _body_start(ctx, init.node)
    ctx.plan.insert(at, f"{indent}{text}\n", RULE, order=1)


def _is_super_init(s: ast.stmt) -> bool:
    return (
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute) and s.value.func.attr == "__init__"
        and isinstance(s.value.func.value, (ast.Call, ast.Name, ast.Attribute))
    )


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`super().__init__(...)`, `super().forward(x)`, `net.forward(x)`."""
    func = node.func
    if not isinstance(func, ast.Attribute) or ctx.owned(node):
        return
    if func.attr == "__init__":
        _super_init(ctx, node, func)
    elif func.attr == "forward":
        _forward_call(ctx, node, func)


def _forward_call(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    owner = ctx.class_of(node)
    base = ctx.resolve(func.value)
    if ctx.is_super(func.value) and owner is not None and owner.forwards or isinstance(base, ClassInfo) and base.forwards or isinstance(base, Row) and base.kind == "layer":
        end = ctx.source.end(func)
        ctx.plan.replace(end - len("forward"), end, ctx.target.forward, RULE)
    elif ctx.kind(func.value).tag == "module" or ctx.is_self(func.value) and owner is not None and owner.mixed:
        ctx.edit(func, lambda e: e.piece(func.value), RULE)


def _super_init(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    owner = ctx.class_of(node)
    if owner is None or not owner.is_module:
        return
    statement = ctx.source.parent(node)
    explicit = not isinstance(func.value, ast.Call)
    target = ctx.resolve(func.value) if explicit else _next_base(owner)
    plain = target == "torch.nn.Module" or isinstance(target, Row) and target.torch == "torch.nn.Module"
    drop = [k for k in node.keywords if k.arg in ("device", "dtype")] if isinstance(target, Row) else []
    for k in drop:
        ctx.removed.update(ast.walk(k))
    if plain and explicit and ctx.target.keeps_super_init:
        ctx.edit(node, lambda e: e.original(node), RULE, why="torch.nn.Module")
    bare = isinstance(statement, ast.Expr) and not node.keywords and len(node.args) <= int(explicit)
    if plain and bare and not ctx.target.keeps_super_init and (len(owner.bases) == 1 and not _cooperative(ctx, owner) or explicit):
        remove_statement(ctx, statement, RULE)
        return
    if not ctx.target.threads_rngs:
        if drop:
            ctx.edit(node, lambda e: calling.inplace(ctx, e, node, drop=drop), RULE)
        return
    takes = isinstance(target, ClassInfo) and (target.is_module or any(f.builds for f in [target.method("__init__")] if f)) and _accepts(target)
    layer = target.support if isinstance(target, Row) else ""
    takes = takes or isinstance(target, ClassInfo) and not target.is_module and _hands_on(target) and not _before_plain(ctx, owner, target)
    takes = takes or bool(layer) and inherited_rngs(ctx.support, layer) == "required" or isinstance(target, Row) and target.torch in _CONTAINERS
    keywords = ["rngs=rngs"] if takes and not any(k.arg == "rngs" for k in node.keywords) else []
    if drop:
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, drop=drop, keywords=keywords), RULE)
    elif keywords:
        calling.insert_keyword(ctx, node, keywords[0], RULE)


_CONTAINERS = ("torch.nn.Sequential_",)


def _hands_on(c: ClassInfo) -> bool:
    """A mixin whose constructor hands its keyword arguments on to the next class."""
    init = c.method("__init__")
    if init is None or init.node.args.kwarg is None:
        return False
    name = init.node.args.kwarg.arg
    calls = [s.value for s in init.node.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and _is_super_init(s)]
    return any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name for c in calls for k in c.keywords)


def _before_plain(ctx: Context, owner: ClassInfo, mixin: ClassInfo) -> bool:
    """Whether what comes after a mixin is torch.nn.Module itself: there is no constructor then that takes what the mixin hands on."""
    rest = owner.bases[owner.bases.index(mixin) + 1 :] if mixin in owner.bases else []
    plain = [b == "torch.nn.Module" or isinstance(b, Row) and b.torch == "torch.nn.Module" for b in rest]
    return bool(plain) and all(plain) and not _cooperative(ctx, owner)


def _accepts(c: ClassInfo) -> bool:
    return True


def _cooperative(ctx: Context, owner: ClassInfo) -> bool:
    """Whether a subclass in the unit has several bases, so that `super().__init__()` may reach another class."""
    return any(len([b for b in s.bases if not (isinstance(b, str) and b.startswith(("typing.", "abc.")))]) > 1 for s in ctx.unit.subclasses.get(owner, ()))


def _next_base(owner: ClassInfo) -> "ClassInfo | Row | str | None":
    """The class whose constructor `super()` reaches: the first base that has one."""
    for b in owner.bases:
        if isinstance(b, ClassInfo):
            if any("__init__" in c.methods for c in b.mro()) or b.is_module:
                return b
        elif isinstance(b, Row) or b == "torch.nn.Module":
            return b
    return None


EXAMPLES = (
    Example(
        "class Keyed:\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n        self.key = 3\n\n\nclass Net(Keyed, nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, self.key)\n",
        "    def __init__(self, n, *, rngs: nnx.Rngs):\n        super().__init__()\n        self.a = nnx.Linear(n, self.key, rngs=rngs)\n", "        super().__init__()\n        self.a = Linear(n, self.key)\n", why="a mixin before a plain module",
    ),
    Example(
        "class Twice:\n    def forward(self, x):\n        return super().forward(x) * 2\n\n\nclass Net(Twice, nn.Linear):\n    pass\n",
        "class Twice:\n    def __call__(self, x):\n        return super().__call__(x) * 2\n", "class Twice:\n    def call(self, x):\n        return super().call(x) * 2\n", why="a plain class that only modules have as a base",
    ),
    Example("class Plain:\n    def forward(self, x):\n        return self.forward(x - 1)\n\n\nclass Other(Plain):\n    pass\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(\n        self, n, bias=True,  # sizes\n    ):\n        super().__init__()\n        self.a = nn.Linear(n, n, bias=bias)\n",
        "    def __init__(\n        self, n, bias=True, *, rngs: nnx.Rngs,  # sizes\n    ):\n", "    def __init__(\n        self, n, bias=True,  # sizes\n    ):\n", why="parameters on one line",
    ),
    Example(
        "class Held(nn.Module):\n    def __init__(self, f):\n        super().__init__()\n        self.f = f\n\n\nclass Lazy(nn.Module):\n    def forward(self, x):\n        return self.f(x)\n\n\nclass Net(Held, Lazy):\n    def __init__(self):\n        super().__init__(torch.sin)\n",
        "        super().__init__()\n        self.f = f\n\n\nclass Lazy(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs | None = None):\n        pass\n", "class Lazy(Module):\n", why="one base's constructor calls the next",
    ),
    Example(
        "class Up(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n\n\nUpsample = Up\n\n\nclass Twice(Upsample):\n    pass\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Twice(3)\n",
        "        self.a = Twice(3, rngs=rngs)\n", "        self.a = Twice(3)\n", why="a base under another name",
    ),
    Example(
        "def module(**defaults):\n    def make(f):\n        class Made(nn.Module):\n            def __init__(self, **kwargs):\n                super().__init__()\n                self.options = defaults | kwargs\n\n            forward = f\n\n        return Made\n\n    return make\n\n\n"
        "@module(low=0.0)\ndef Floor(self, x):\n    return x.clamp(min=self.options['low'])\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Floor(low=1.0)\n        self.b = module()(print)\n",
        "        self.a = Floor(low=1.0, rngs=rngs)\n", "        self.a = Floor(low=1.0)\n", why="a decorator turns a function into a class of modules",
    ),
    Example(
        "def plain(x):\n    return x * 2\n\n\nclass Net(nn.Module):\n    forward = plain\n\n\nclass Other:\n    forward = plain\n",
        "    __call__ = plain\n\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n\nclass Other:\n    forward = plain\n", "    call = plain\n\n\nclass Other:\n    forward = plain\n",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(\n        self,\n        a: int = 3,  # width\n        *,\n        b=(1, 2),\n        **kw,\n    ):\n"
        "        super(Net, self).__init__()\n        self.a = nn.Linear(a, a)\n\n    def forward(self, x):\n        return self.a(x)\n",
        "        a: int = 3,  # width\n        *,\n        b=(1, 2),\n        rngs: nnx.Rngs,\n        **kw,\n    ):\n        self.a = nnx.Linear(a, a, rngs=rngs)\n\n    def __call__(self, x):\n",
        "        super(Net, self).__init__()\n        self.a = Linear(a, a)\n\n    def call(self, x):\n", why="a list on several lines",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, a, b=(1 + 2), ): super().__init__(); self.a = nn.Linear(a, b)\n    def forward(self, x): return self.a.forward(x)\n",
        "    def __init__(self, a, b=(1 + 2), *, rngs: nnx.Rngs, ): self.a = nnx.Linear(a, b, rngs=rngs)\n    def __call__(self, x): return self.a(x)\n",
        "    def __init__(self, a, b=(1 + 2), ): super().__init__(); self.a = Linear(a, b)\n    def call(self, x): return self.a(x)\n", why="bodies on one line",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, a=(\n        3  # three\n    )  # end\n    ):\n        super().__init__()\n        self.a = nn.Linear(a, a)\n",
        "    def __init__(self, a=(\n        3  # three\n    ),  # end\n    *,\n    rngs: nnx.Rngs,\n    ):\n",
    ),
    Example(
        "class A(nn.Module):\n    # about forward\n    def forward(self, x):\n        return x\n\n\nclass B(A): pass\n\n\nclass C(B):\n    def forward(self, x):\n        return super().forward(x) + A.forward(self, x)\n",
        "class A(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    # about forward\n    def __call__(self, x):\n        return x\n\n\nclass B(A): pass\n\n\n"
        "class C(B):\n    def __call__(self, x):\n        return super().__call__(x) + A.__call__(self, x)\n",
        "class A(Module):\n    # about forward\n    def call(self, x):\n        return x\n\n\nclass B(A): pass\n\n\nclass C(B):\n    def call(self, x):\n        return super().call(x) + A.call(self, x)\n",
        why="classes without a constructor",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, *sizes):\n        nn.Module.__init__(self)\n        self.sizes = sizes\n\n\nclass Other(Net):\n    def __init__(self, *args, **kwargs):\n"
        "        super().__init__(*args, **kwargs)\n",
        "    def __init__(self, *sizes, rngs: nnx.Rngs):\n        self.sizes = sizes\n\n\nclass Other(Net):\n    def __init__(self, *args, rngs: nnx.Rngs, **kwargs):\n        super().__init__(*args, **kwargs, rngs=rngs)\n",
        "        Module.__init__(self)\n",
    ),
    Example(
        "class Mixin:\n    def __init__(self):\n        super().__init__()\n\n\nclass Net(Mixin, nn.Module):\n    def __init__(self):\n        super().__init__()\n",
        "class Net(Mixin, nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        super().__init__()\n", "class Net(Mixin, Module):\n    def __init__(self):\n        super().__init__()\n",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n        self.n = 3\n\n    def forward(self, x):\n        return x + torch.randn(3)\n",
        "    def __init__(self, *, rngs: nnx.Rngs):\n        self.rngs = rngs.fork()\n        self.n = 3\n", "        super().__init__()\n        self.rngs = Rngs()\n\n        self.n = 3\n", why="a stream, and a blank line after what goes",
    ),
    Example("class Net(nn.Module):\n    async def forward(self, x): return x\n", "    async def __call__(self, x): return x\n", "    async def call(self, x): return x\n"),
    Example("class Plain:\n    def forward(self, x):\n        return x\n\n    def go(self):\n        return self.forward(3)\n"),
    Example("def forward(x):\n    return x\n\n\nprint(forward(3))\n"),
)
