"""Calls: what they return, and what they tell of the callee's parameters."""
import ast

from migrate.infer.engine import CASTS, ONLY_TENSOR, Frame, Inference
from migrate.infer.expressions import evaluate, iterate
from migrate.infer.kinds import BOOL, FLOAT, INT, MODULE, NAMED, NUMBER, NUMPY, SHAPE, STR, TENSOR, UNKNOWN, Kind, join_all, refs
from migrate.infer.lookups import Lookup, lookup
from migrate.infer.results import returned
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo
from migrate.tables import Row

# Methods that Python's own types have too: on an unknown receiver they tell nothing.
PYTHON_METHODS = frozenset(m for t in (str, list, dict, set, bytes, int, float, complex, tuple) for m in dir(t))
MODULE_METHODS = frozenset(["apply", "to", "cpu", "cuda", "train", "eval", "float", "half", "double", "type", "bfloat16", "requires_grad_", "zero_grad",
    "state_dict", "parameters", "share_memory"])
BUILTIN_RESULTS = {
    "len": INT, "int": INT, "float": FLOAT, "str": STR, "bool": BOOL, "isinstance": BOOL, "hasattr": BOOL, "callable": BOOL, "issubclass": BOOL, "any": BOOL, "all": BOOL,
    "round": NUMBER, "repr": STR, "id": INT, "ord": INT, "chr": STR, "hash": INT, "divmod": Kind("tuple", items=(NUMBER, NUMBER)), "print": Kind("none"),
}
PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.UninitializedParameter", "torch.nn.parameter.UninitializedParameter",
    "torch.nn.Buffer", "torch.nn.parameter.Buffer")
WALKS = frozenset({"named_parameters", "named_buffers", "named_children", "named_modules"})  # names that only modules have
ALL = frozenset({"parameters", "buffers"})  # in files that use PyTorch, of what is not known otherwise
CONTAINER_CLASSES = ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict")


EINOPS = {
    **dict.fromkeys(("rearrange", "repeat", "reduce", "einsum"), TENSOR), "pack": Kind("tuple", items=(TENSOR, Kind("list", item=SHAPE))),
    "unpack": Kind("list", item=TENSOR),
}


def call(inf: Inference, frame: Frame, node: ast.Call) -> Kind:
    """The kind of a call's result."""
    callee = evaluate(inf, frame, node.func)
    args = [evaluate(inf, frame, a) for a in node.args]
    keywords = {k.arg: evaluate(inf, frame, k.value) for k in node.keywords}
    if isinstance(node.func, ast.Attribute):
        found = _method(inf, frame, node, inf.of(node.func.value), args, keywords)
        if found is not None:
            return found
    return apply(inf, frame, node, callee, args, keywords)


def apply(inf: Inference, frame: Frame, node: ast.Call, callee: Kind, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    """What calling something returns."""
    match callee.tag:
        case "class" | "factory":
            made = [_instance(inf, frame, node, r, args, keywords) for r in refs(callee)]
            return join_all(made) if made else MODULE
        case "module":
            return _forward(inf, node, callee, args, keywords)
        case "function":
            return _function(inf, frame, node, callee, args, keywords)
        case "import":
            return _imported(inf, frame, node, str(callee.ref), args, keywords)
        case "dtype":
            return UNKNOWN
    return UNKNOWN


def _instance(inf: Inference, frame: Frame, node: ast.Call, ref: object, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    if isinstance(ref, ClassInfo):
        init = ref.method("__init__")
        if init is not None:
            _bind(inf, init, node, args, keywords)
        if not ref.is_module:
            return Kind("object", ref=ref)
        return Kind("module", ref=ref, item=_contained(node, args))
    if isinstance(ref, Row):
        if ref.torch in ("torch.nn.ParameterList", "torch.nn.ParameterDict"):
            return Kind("module", ref=ref, item=TENSOR.but(variable="param"))
        if ref.torch in CONTAINER_CLASSES:
            return Kind("module", ref=ref, item=_contained(node, args), fields=args[0].fields if args else ())
        return Kind("module", ref=ref)
    if isinstance(ref, ast.Lambda):
        return inf.of(ref.body)
    if isinstance(ref, FunctionInfo):
        _bind(inf, ref, node, args, keywords)
        return inf.returns.get(ref, UNKNOWN)
    return MODULE


def _contained(node: ast.Call, args: list[Kind]) -> Kind | None:
    found = []
    for a, k in zip(node.args, args, strict=True):
        if isinstance(a, ast.Starred) or k.tag in ("list", "tuple", "dict"):
            if k.items == ():
                continue
            found.append(k.element)
        elif k.tag == "module":
            found.append(k)
    return join_all(found) if found else None


def _forward(inf: Inference, node: ast.Call, callee: Kind, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    if isinstance(callee.ref, ClassInfo):
        forward = callee.ref.method("forward") or callee.ref.method("__call__")
        if forward is not None:
            _bind(inf, forward, node, args, keywords)
            return inf.returns.get(forward, UNKNOWN)
        return TENSOR.but(sure=False) if callee.ref.layer else UNKNOWN
    if isinstance(callee.ref, Row):
        if callee.ref.torch in CONTAINER_CLASSES:
            return _last_of(inf, callee)
        return returned(callee.ref, args) if callee.ref.returns != "module" else TENSOR
    return TENSOR.but(sure=False)


def _last_of(inf: Inference, callee: Kind) -> Kind:
    """What a Sequential returns: unknown where an element returns something else than a tensor."""
    item = callee.item
    if item is not None and isinstance(item.ref, ClassInfo):
        forward = item.ref.method("forward")
        return inf.returns.get(forward, UNKNOWN) if forward else UNKNOWN
    return TENSOR.but(sure=False)


def _function(inf: Inference, frame: Frame, node: ast.Call, callee: Kind, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    ref = callee.ref
    if isinstance(ref, frozenset):
        return join_all([_function(inf, frame, node, callee.but(ref=r), args, keywords) for r in ref])
    if isinstance(ref, FunctionInfo):
        bound = isinstance(node.func, ast.Attribute) and inf.of(node.func.value).tag in ("module", "object")
        _bind(inf, ref, node, args, keywords, skip_self=ref.owner is not None and not bound and not ref.is_static and not ref.is_classmethod)
        return inf.returns.get(ref, UNKNOWN)
    if isinstance(ref, Row):
        if ref.returns.startswith("argument "):
            return _given(ref, ref.returns.partition(" ")[2], args, keywords)
        return _of_dtype(ref, returned(ref, args, keywords), args, keywords)
    if isinstance(ref, ast.Lambda):
        for p, k in zip(ref.args.args, args, strict=False):
            if inf.of(p).is_unknown:
                inf.kinds[p] = k
    return callee.item or UNKNOWN


MODULE_METHODS = frozenset(
    ["eval", "train", "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers", "state_dict", "load_state_dict",
    "zero_grad", "forward", "apply"]
)


def _of_a_tensor(inf: Inference, frame: Frame, receiver: ast.expr, call: ast.Call) -> bool:
    """Whether what `x.half()` is asked of can only be a tensor: neither it nor the name that gets the result is used as a module, and the result is used."""
    parents = frame.file.source.parents
    statement = parents.get(call)
    if frame.function is None or not isinstance(receiver, (ast.Name, ast.Subscript, ast.BinOp)) or isinstance(statement, ast.Expr):
        return False
    given = {t.id for t in statement.targets if isinstance(t, ast.Name)} if isinstance(statement, ast.Assign) else set()
    names = given | ({receiver.id} if isinstance(receiver, ast.Name) else set())
    for use in (u for n in names for u in inf.uses(frame.function.node).get(n, ())):
        up = parents.get(use)
        if isinstance(up, ast.Attribute) and up.attr in MODULE_METHODS or isinstance(up, ast.Call) and up.func is use:
            return False
    return True


BY_ARGUMENTS = ("same", "tensor added up", "tensor raised", "tensor squared", "tensor promoted", "tensor of floats")
CASTING = ("torch.Tensor.to", "torch.Tensor.type", "torch.Tensor.type_as")  # the dtype is that of an argument


def _of_dtype(row: Row, result: Kind, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    """The result where a dtype is given, or a tensor that has one: whoever adds its numbers up, or casts them again, has to know."""
    given = [*args, *keywords.values()]
    told = next((k for k in given if k.tag == "dtype" or row.torch in CASTING and k.is_tensor), None)
    if not result.is_tensor or told is None and "dtype" not in keywords:
        return result
    if told is not None and told.dtype:
        return result.but(dtype=told.dtype, narrow=told.narrow)
    if told is None and keywords["dtype"].tag == "none":
        return result
    return result.but(dtype="" if row.returns in BY_ARGUMENTS else result.dtype, narrow=False)  # of a dtype that is not known


def _given(row: Row, name: str, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    """The kind of the argument of that name."""
    at = [p.name for p in row.parameters].index(name)
    return keywords.get(name, args[at] if at < len(args) else UNKNOWN)


def _bind(inf: Inference, f: FunctionInfo, node: ast.Call, args: list[Kind], keywords: dict[str | None, Kind], skip_self: bool = False) -> None:
    """Tells the parameters of a local function what a call passes."""
    positional = f.parameters
    at = -1 if skip_self else 0
    for a, kind in zip(node.args, args, strict=True):
        if isinstance(a, ast.Starred):
            for p in positional[max(at, 0) :]:
                inf.passed(p, kind.element if kind.items is None else UNKNOWN)
            if f.node.args.vararg:
                inf.passed(f.node.args.vararg, kind.element)
            return
        if 0 <= at < len(positional):
            inf.passed(positional[at], kind)
        elif at >= len(positional) and f.node.args.vararg:
            inf.passed(f.node.args.vararg, kind)
        at += 1
    named = {p.arg: p for p in [*positional, *f.node.args.kwonlyargs]}
    for name, kind in keywords.items():
        if name is None:
            continue
        if name in named:
            inf.passed(named[name], kind)


def _method(inf: Inference, frame: Frame, node: ast.Call, receiver: Kind, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind | None:
    """The result of a method of something that is no local class; None where it is an ordinary call."""
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    told = next((k.dtype for k in [*args, *keywords.values()] if k.tag == "dtype"), "") if name == "to" else "float" if name in CASTS else ""
    counts = told in ("int", "bool") or bool(told) and _of_a_tensor(inf, frame, node.func.value, node)  # no module is made of integers
    if receiver.is_tensor or receiver.is_unknown and (counts or name in ONLY_TENSOR) and inf.of(node.func).tag not in ("function", "class", "import"):
        row = inf.unit.table.by_method.get(name) or inf.unit.table.by_method.get(name.removesuffix("_"))
        if name == "size":
            return INT if args or keywords else SHAPE
        if row is None:
            return UNKNOWN
        return _of_dtype(row, returned(row, [receiver if receiver.is_tensor else TENSOR, *args], keywords), args, keywords)
    match receiver.tag:
        case "list" if name in ("append", "insert", "extend") and args and isinstance(node.func.value, ast.Name):
            added = args[-1].element if name == "extend" else args[-1]
            held = receiver.but(items=None,
                item=added if receiver.items == () or receiver.item is None and receiver.items is None else join_all((receiver.element, added)))
            frame.env[node.func.value.id] = held
            return Kind("none")
        case "list" | "tuple" | "dict" | "str" | "set" | "shape":
            return _container_method(receiver, name)
        case "unknown" if name in ALL and not args and name not in inf.method_names():
            return Kind("list", item=TENSOR.but(variable="param"))
        case "unknown" if name in WALKS and name not in inf.method_names():
            item = TENSOR.but(variable="param") if name != "named_modules" and name != "named_children" else MODULE
            return Kind("list", item=Kind("tuple", items=(STR, item)))
        case "unknown" if name in ("parameters", "buffers") and not args and name not in inf.method_names() and inf.of(node.func).is_unknown and uses_torch(frame.file):
            return Kind("list", item=TENSOR.but(variable="param"))
        case "module" if not isinstance(receiver.ref, ClassInfo) or receiver.ref.method(name) is None:
            if name in ("register_buffer", "register_parameter"):
                return _registered(name, args, keywords)
            if name in ("append", "extend", "insert", "add_module", "register_module"):
                return _grown(inf, frame, node.func.value, name, receiver, args)
            if name in ("to", "cpu", "cuda", "eval", "train", "float", "half", "double", "requires_grad_", "apply"):
                return receiver
            if name in ("parameters", "buffers"):
                return Kind("list", item=TENSOR.but(variable="param"))
            if name in ("children", "modules"):
                return Kind("list", item=MODULE)
            if name in ("named_parameters", "named_buffers"):
                return Kind("list", item=Kind("tuple", items=(STR, TENSOR.but(variable="param"))))
            if name in ("named_children", "named_modules"):
                return Kind("list", item=Kind("tuple", items=(STR, MODULE)))
            if name in ("items", "values", "keys"):
                return _container_method(receiver.but(tag="dict"), name)
    return None


def uses_torch(file: FileInfo) -> bool:
    """Whether a file imports something of PyTorch."""
    return any(f"{b.dotted}.".startswith("torch.") for bound in file.names.top.bindings.values() for b in bound if b.kind == "import")


def _registered(name: str, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    """`register_buffer` stands for the attribute that it makes."""
    value = args[1] if len(args) > 1 else keywords.get("tensor", keywords.get("param", TENSOR))
    if value.tag == "none":
        return value
    return (value if value.is_tensor else TENSOR).but(variable="buffer" if name == "register_buffer" else "param", optional=value.optional)


def _grown(inf: Inference, frame: Frame, owner: ast.expr, name: str, receiver: Kind, args: list[Kind]) -> Kind:
    """A container that gets another module."""
    added = args[-1] if args else UNKNOWN
    if name == "extend":
        added = added.element
    if name in ("append", "extend", "insert") and added.tag == "module":
        held = receiver.but(item=added if receiver.item is None else join_all((receiver.item, added)))
        if isinstance(owner, ast.Name):
            frame.env[owner.id] = held
        elif isinstance(owner, ast.Attribute) and isinstance(ref := inf.of(owner.value).ref, ClassInfo):
            inf.grown[ref, owner.attr] = held if (ref, owner.attr) not in inf.grown else join_all((inf.grown[ref, owner.attr], held))
    return added if name in ("add_module", "register_module") else Kind("none")


def _container_method(receiver: Kind, name: str) -> Kind:
    match receiver.tag, name:
        case "dict", "items":
            return Kind("list", item=Kind("tuple", items=(receiver.key or UNKNOWN, receiver.element)))
        case "dict", "values":
            return Kind("list", item=receiver.element)
        case "dict", "keys":
            return Kind("list", item=receiver.key or UNKNOWN)
        case "dict", ("get" | "pop" | "setdefault"):
            return receiver.element.but(optional=True)
        case "list", "pop":
            return receiver.element
        case "list", "copy":
            return receiver
        case "str", ("split" | "rsplit" | "splitlines"):
            return Kind("list", item=STR)
        case "str", ("startswith" | "endswith" | "isdigit"):
            return BOOL
        case "str", _:
            return STR
        case "shape", "numel":
            return INT
        case _, ("index" | "count"):
            return INT
    return UNKNOWN


def _imported(inf: Inference, frame: Frame, node: ast.Call, name: str, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    """Builtins and well-known library calls."""
    module, _, last = name.rpartition(".")
    if name == "builtins.getattr" and (found := lookup(inf.unit, frame.file, node)) is not None:
        return looked_up(found)
    if name == "builtins.getattr" and len(node.args) in (2, 3) and (local := _in_module(inf, frame, node)) is not None:
        return local
    if name == "builtins.globals":
        return _globals(inf, frame)
    if module == "builtins":
        return _builtin(inf, frame, last, args, keywords)
    if name in ("collections.OrderedDict", "easydict.EasyDict"):
        return _builtin(inf, frame, "dict", args, keywords)
    if name in PARAMETERS:
        held = args[0] if args and args[0].is_tensor else TENSOR
        return held.but(variable="buffer" if last == "Buffer" else "param", optional=False)
    if module == "math":
        return INT if last in ("ceil", "floor", "prod", "gcd", "comb", "factorial") else FLOAT
    if name in ("copy.deepcopy", "copy.copy", "typing.cast"):
        return args[-1] if args else UNKNOWN
    if name.startswith("numpy."):
        return NUMPY
    if name == "functools.partial" and args:
        inner = args[0]
        if inner.tag in ("class", "factory"):
            return Kind("factory", ref=frozenset(refs(inner)))
        return inner
    if name.startswith("einops."):
        return EINOPS.get(last, UNKNOWN)
    if name.startswith("torch."):
        return UNKNOWN
    return UNKNOWN


def _globals(inf: Inference, frame: Frame) -> Kind:
    """The names of a module, where one of them makes modules."""
    top = frame.file.names.top
    found = [inf.unit.named(f"{frame.file.module}.{n}" if frame.file.module else n) for n in top.bindings]
    held = frozenset(f for f in found if isinstance(f, (ClassInfo, FunctionInfo)) or isinstance(f, Row) and f.kind == "layer")
    makes = any(isinstance(f, Row) or isinstance(f, ClassInfo) and f.is_module for f in held)
    return Kind("dict", item=Kind("factory", ref=held)) if makes else Kind("dict")


def _in_module(inf: Inference, frame: Frame, node: ast.Call) -> Kind | None:
    """What `getattr(blocks, name)` may give, where `blocks` is a local module that defines modules."""
    holder, wanted = node.args[:2]
    dotted = inf.resolve(frame.file, holder) if isinstance(holder, (ast.Name, ast.Attribute)) else None
    file = inf.unit.files.get(dotted) if isinstance(dotted, str) else None
    if file is None:
        return None
    if isinstance(wanted, ast.Constant):
        if not isinstance(wanted.value, str):
            return None
        found = inf.unit.named(f"{file.module}.{wanted.value}")
        return Kind("class", ref=found) if isinstance(found, ClassInfo) else None
    held = frozenset(c for c in file.classes if c.is_module and c.dotted == f"{file.module}.{c.name}")
    return Kind("factory", ref=held) if held else None


def looked_up(found: Lookup) -> Kind:
    """What `getattr(nn, name)` gives."""
    if found.literal:
        return row_kind(found.rows.get(found.literal))
    layers = frozenset(r for r in found.rows.values() if r.kind == "layer")
    return Kind("factory", ref=layers) if layers else UNKNOWN


def row_kind(row: Row | None) -> Kind:
    """What a row stands for as a value."""
    if row is None:
        return UNKNOWN
    return NAMED.get(row.returns, UNKNOWN) if row.kind == "constant" else Kind("class" if row.kind == "layer" else "function", ref=row)


def _builtin(inf: Inference, frame: Frame, name: str, args: list[Kind], keywords: dict[str | None, Kind]) -> Kind:
    if name in BUILTIN_RESULTS:
        return BUILTIN_RESULTS[name]
    first = args[0] if args else UNKNOWN
    match name:
        case "range":
            return Kind("list", item=INT)
        case "list" | "tuple" | "sorted" | "reversed" | "set" | "iter":
            tag = "tuple" if name == "tuple" else "list"
            if not args:
                return Kind(tag, items=())
            return Kind(tag, items=first.items, item=None if first.items is not None else iterate(first))
        case "dict":
            named = tuple((n, k) for n, k in keywords.items() if n is not None)
            kinds = [*([first.item] if first.item else []), *(k for _, k in named)]
            return Kind("dict", item=join_all(kinds) if kinds else None, fields=first.fields + named, items=() if not kinds and not args else None)
        case "zip":
            return Kind("list", item=Kind("tuple", items=tuple(iterate(a) for a in args)))
        case "enumerate":
            return Kind("list", item=Kind("tuple", items=(INT, iterate(first))))
        case "map":
            return Kind("list", item=first.item or _mapped(inf, first))
        case "filter":
            return Kind("list", item=args[1].element if len(args) > 1 else UNKNOWN)
        case "next":
            return first.element
        case "sum" | "max" | "min" | "abs" | "pow":
            kinds = [first.element] if len(args) == 1 and name != "abs" else args
            return join_all(kinds)
        case "getattr" if len(args) > 1:
            return UNKNOWN
    return UNKNOWN


def _mapped(inf: Inference, function: Kind) -> Kind:
    if isinstance(function.ref, FunctionInfo):
        return inf.returns.get(function.ref, UNKNOWN)
    if isinstance(function.ref, Row):
        return returned(function.ref, [TENSOR])
    if isinstance(function.ref, ast.Lambda):
        return inf.of(function.ref.body)
    if function.tag in ("class", "factory"):
        made = [Kind("object" if isinstance(r, ClassInfo) and not r.is_module else "module", ref=r) for r in refs(function) if isinstance(r, (ClassInfo, Row))]
        return join_all(made) if made else MODULE
    return UNKNOWN
