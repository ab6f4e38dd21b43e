"""Walks every function of a unit, in order, and records the kind of each expression.

Facts travel through assignments, attributes, calls and returns, across files. Two passes: the second sees what the first learned of attributes,
parameters and results. A name that is assigned on two branches has the join of both.
"""
import ast
from dataclasses import dataclass, field

from migrate.infer.annotations import kind_of
from migrate.infer.kinds import BOOL, DEVICE, FLOAT, INT, NONE, NUMBER, STR, TENSOR, UNKNOWN, Kind, join, join_all, refs
from migrate.source.modules import Assignment, ClassInfo, FileInfo, FunctionInfo, Unit
from migrate.source.names import FunctionNode
from migrate.source.text import walk
from migrate.tables import Row

PASSES = 5


@dataclass(eq=False)
class Frame:
    """Where evaluation stands: the file, the function, its class and what its names hold."""

    file: FileInfo
    function: FunctionInfo | None = None
    owner: ClassInfo | None = None
    env: dict[str, Kind] = field(default_factory=dict)
    outer: "Frame | None" = None

    def lookup(self, name: str) -> Kind | None:
        """What a local name holds, here or in the functions around."""
        at: Frame | None = self
        while at is not None:
            if name in at.env:
                return at.env[name]
            at = at.outer
        return None


class Inference:
    """The kinds of all expressions of a unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.kinds: dict[ast.AST, Kind] = {}
        self.returns: dict[FunctionInfo, Kind] = {}
        self.attributes: dict[tuple[ClassInfo, str], Kind] = {}
        self.arguments: dict[ast.arg, Kind] = {}  # joined over the call sites of the unit
        self._seen_args: dict[ast.arg, Kind] = {}
        self.globals: dict[FileInfo, dict[str, Kind]] = {}
        self.learned: dict[FileInfo, dict[str, Kind]] = {}  # the globals of the pass before
        self._uses: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        self._yields: dict[ast.AST, bool] = {}
        self.grown: dict[tuple[ClassInfo, str], Kind] = {}  # containers on attributes, with what was appended
        self.stored: dict[tuple[FileInfo | ClassInfo, str], Kind] = {}  # what functions put into containers of a module or a class
        self._method_names: set[str] | None = None
        self._kept: set[ast.arg] | None = None
        self.return_sites: dict[FunctionInfo, dict[ast.Return, Kind]] = {}

    def run(self) -> None:
        """Fills `kinds`."""
        from migrate.infer.statements import run_body

        before = None
        for number in range(PASSES):
            self._seen_args = {}
            self.learned = dict(self.globals)
            files = list(self.unit.files.values())
            for file in files if number % 2 == 0 else reversed(files):
                frame = Frame(file)
                self.globals[file] = frame.env
                run_body(self, frame, _ordered(file.source.tree.body, callers_first=number % 2 == 1))
            self.arguments = self._seen_args
            self._attributes()
            learned = dict(self.arguments), dict(self.returns), dict(self.attributes), dict(self.stored)
            if learned == before:
                return
            before = learned

    def _attributes(self) -> None:
        """Joins what methods assign to attributes."""
        for file in self.unit.files.values():
            for c in file.classes:
                for name, assignments in c.attributes.items():
                    kinds = [self.kinds.get(a.target, UNKNOWN) for a in assignments if not isinstance(a.statement, ast.AugAssign)]
                    if (c, name) in self.grown:
                        kinds = [k.but(item=self.grown[c, name].item) if k.tag == "module" and k.item is None else k for k in kinds]
                    if kinds:
                        kind = _registered(join_all(kinds), [self.kinds.get(a.target, UNKNOWN) for a in assignments if isinstance(a.target, ast.Call)])
                        late = kind.is_tensor and not kind.variable and registered_late(assignments)
                        self.attributes[c, name] = kind.but(variable="buffer", optional=True) if late else kind

    def of(self, node: ast.AST | None) -> Kind:
        """The kind of an expression."""
        return self.kinds.get(node, UNKNOWN) if node is not None else NONE

    def resolve(self, file: FileInfo, node: ast.expr) -> "ClassInfo | FunctionInfo | Row | str | None":
        """What a name means."""
        return self.unit.resolve(file, node)

    def annotation(self, file: FileInfo, node: ast.expr) -> Kind:
        """The kind that an annotation states."""
        return kind_of(node, lambda n: self.unit.resolve(file, n))

    def passed(self, arg: ast.arg, kind: Kind) -> None:
        """Notes an argument of a call site."""
        if kind.is_unknown and not kind.optional:
            self._seen_args[arg] = UNKNOWN
            return
        if kind.variable and not (kind.variable == "param" and self.keeps(arg)):
            kind = kind.but(variable="")  # variables are read where they are passed
        old = self._seen_args.get(arg)
        self._seen_args[arg] = kind if old is None else join(old, kind)

    def decorated(self, decorator: Kind, kind: Kind) -> None:
        """A local decorator of a class is called with it."""
        for ref in refs(decorator):
            if isinstance(ref, FunctionInfo) and ref.parameters:
                self.passed(ref.parameters[0], kind)

    def store(self, owner: FileInfo | ClassInfo, name: str, kind: Kind) -> None:
        """Notes what a function puts into a container."""
        held = self.stored.get((owner, name))
        self.stored[owner, name] = kind if held is None else join(held, kind)

    def holding(self, owner: FileInfo | ClassInfo, name: str, kind: Kind) -> Kind:
        """The kind of a container, with what functions put into it."""
        item = self.stored.get((owner, name)) if kind.tag in ("dict", "list") else None
        if item is None:
            return kind
        return kind.but(item=item if kind.item is None and not kind.items else join(kind.element, item), items=None)

    def attribute(self, owner: ClassInfo, name: str) -> Kind | None:
        """What `self.name` holds; None where nothing local assigns it."""
        found = []
        for c in [*owner.mro(), *self.descendants(owner)]:
            if (c, name) in self.attributes:
                found.append(self.attributes[c, name])
        for c in owner.mro():
            if name in c.annotations and not found:
                found.append(self.annotation(c.file, c.annotations[name]))
            value = c.body.get(name)
            if value is not None:
                found.append(self.of(value))
        if not found:
            return None
        return self.holding(next((c for c in owner.mro() if (c, name) in self.stored), owner), name, join_all(found))

    def method_names(self) -> set[str]:
        """The names of all methods of the unit."""
        if self._method_names is None:
            self._method_names = {m for f in self.unit.files.values() for c in f.classes for m in c.methods}
        return self._method_names

    def descendants(self, owner: ClassInfo) -> list[ClassInfo]:
        """All classes that derive from one."""
        found: list[ClassInfo] = []
        stack = list(self.unit.subclasses.get(owner, ()))
        while stack:
            c = stack.pop()
            found.append(c)
            stack += self.unit.subclasses.get(c, ())
        return found

    def parameter(self, frame: Frame, function: FunctionInfo, p: ast.arg) -> Kind:
        """The kind of a parameter: its annotation, its call sites and default, else how the body uses it."""
        stated = self.annotation(frame.file, p.annotation) if p.annotation else UNKNOWN
        passed = self._seen_args.get(p, self.arguments.get(p))
        if stated.is_tensor and not stated.dtype and passed is not None and passed.is_tensor and passed.narrow:
            return stated.but(dtype=passed.dtype, narrow=True)
        if not stated.is_unknown and stated.tag not in ("list", "tuple", "dict", "module", "object"):
            return stated
        default = function.default(p.arg)
        given = self._seen_args.get(p, self.arguments.get(p))
        by_default = self.of(default) if default is not None else None
        known = [k for k in (given, by_default) if k is not None]
        kind = join_all(known) if known else UNKNOWN
        if stated.tag in ("module", "object", "list", "tuple", "dict"):
            return stated if kind.is_unknown or kind.tag == "none" or kind.tag != stated.tag else kind
        if kind.is_unknown or kind.tag == "none":
            used = usage(self, frame.file, function.node, p.arg)
            if not used.is_unknown:
                return used.but(optional=kind.tag == "none" or kind.optional)
            if given is None and self._is_forward(function) and default is None:
                return TENSOR.but(sure=False)
            if given is None and self._is_forward(function) and kind.tag == "none":
                return TENSOR.but(sure=False, optional=True)
        if kind.tag == "none":
            return UNKNOWN.but(optional=True)
        return kind

    def uses(self, function: FunctionNode | ast.Lambda) -> dict[str, list[ast.Name]]:
        """The places where a function reads each name."""
        if function not in self._uses:
            found: dict[str, list[ast.Name]] = {}
            for root in function.body if isinstance(function.body, list) else [function.body]:
                for n in walk(root):
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                        found.setdefault(n.id, []).append(n)
            self._uses[function] = found
        return self._uses[function]

    def yields(self, function: FunctionNode) -> bool:
        """Whether a function is a generator."""
        if function not in self._yields:
            self._yields[function] = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk(function))
        return self._yields[function]

    def keeps(self, arg: ast.arg) -> bool:
        """Whether a constructor of a module makes the parameter an attribute as it is: a torch.nn.Parameter that comes in so is one of that module too."""
        if self._kept is None:
            inits = [i for f in self.unit.files.values() for c in f.classes if c.is_module and (i := c.methods.get("__init__")) is not None]
            self._kept = {a for i in inits for a in kept_arguments(i)}
        return arg in self._kept

    def argument(self, file: FileInfo, call: ast.Call, use: ast.AST) -> ast.arg | None:
        """The parameter of a local callee to which a call passes a value."""
        found = self.unit.resolve(file, call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
        target = found.method("__init__") if isinstance(found, ClassInfo) else found
        if not isinstance(target, FunctionInfo):
            return None
        if use in call.args:
            at = call.args.index(use)
            return target.parameters[at] if at < len(target.parameters) and not any(isinstance(a, ast.Starred) for a in call.args[:at]) else None
        name = next((k.arg for k in call.keywords if k.value is use), None)
        return next((p for p in [*target.parameters, *target.node.args.kwonlyargs] if p.arg == name), None)

    def callee_takes(self, file: FileInfo, call: ast.Call, use: ast.AST) -> Kind:
        """What the parameter of a local callee, to which a call passes a value, is known to be."""
        arg = self.argument(file, call, use)
        return self.kinds.get(arg, UNKNOWN) if arg is not None else UNKNOWN

    def takes_tensor(self, file: FileInfo, call: ast.Call, use: ast.AST) -> bool:
        """Whether an operator of PyTorch is given a value as its first tensor, or as another that must be one."""
        row = self.unit.resolve(file, call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
        if not isinstance(row, Row) or row.kind != "function" or use not in call.args or not row.torch.startswith("torch."):
            return False
        at = call.args.index(use)
        names = [p.name for p in row.parameters if p.kind == "positional"]
        return at < len(names) and names[at] in TENSOR_PARAMETERS

    def _is_forward(self, function: FunctionInfo) -> bool:
        owner = function.owner
        return owner is not None and (function.name == "forward" and owner.forwards or function.name in ("forward", "backward") and owner.is_gradient)


def kept_arguments(init: FunctionInfo) -> list[ast.arg]:
    """The parameters of a constructor that become attributes as they are, and that nothing binds anew."""
    bound = {n.id for n in walk(init.node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    stored = {
        n.value.id for n in walk(init.node) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name)
        for t in n.targets if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == init.self_name
    }
    return [p for p in [*init.parameters, *init.node.args.kwonlyargs] if p.arg in stored - bound]


def _registered(kind: Kind, registered: list[Kind]) -> Kind:
    """An attribute that one method registers as a variable is one in all methods: assigning to it gives the variable a new value."""
    variable = next((k.variable for k in registered if k.variable), "")
    return (kind if kind.is_tensor else TENSOR.but(optional=kind.optional)).but(variable=variable) if variable else kind


def registered_late(assignments: list[Assignment]) -> bool:
    """Whether an attribute is registered as a buffer without a value, which the constructor then assigns."""
    calls = [a.target for a in assignments if isinstance(a.target, ast.Call)]
    temporary = (k for c in calls for k in c.keywords if k.arg == "persistent")
    nothing = all(isinstance(v, ast.Constant) and v.value is None for c in calls for v in [*c.args[1:2], *(k.value for k in c.keywords if k.arg == "tensor")])
    given = any(isinstance(a.target, ast.Attribute) and a.method.name == "__init__" for a in assignments)
    return bool(calls) and nothing and given and not any(temporary) and all(isinstance(c.func,
        ast.Attribute) and c.func.attr == "register_buffer" and len(c.args) < 3 for c in calls)


def _ordered(body: list[ast.stmt], callers_first: bool) -> list[ast.stmt]:
    """Statements in order; or definitions last and the other way round, so that what calls pass reaches the callee in the same pass."""
    if not callers_first:
        return body
    definitions = [s for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return [s for s in body if s not in set(definitions)] + definitions[::-1]


MAPPING_METHODS = frozenset({"items", "keys", "get", "update", "setdefault"})
TENSOR_PARAMETERS = frozenset(["input", "target", "mask", "query", "key", "value", "mat2", "weight", "index", "batch1", "batch2", "vec", "tensor1", "condition",
    "attn_mask"])
ONLY_TENSOR = frozenset(
    ["size", "clone", "unsqueeze", "view", "permute", "contiguous", "masked_fill", "masked_fill_", "detach", "numel", "expand", "chunk", "shape", "ndim",
    "softmax", "dim", "sigmoid", "unsqueeze_", "transpose", "new_zeros", "new_ones", "new_tensor", "new_full", "scatter", "scatter_", "gather", "index_select",
    "log_softmax", "relu", "matmul", "bmm", "expand_as", "view_as", "reshape", "device", "is_cuda", "H", "mT", "mH", "is_nested", "is_sparse", "itemsize",
    "nbytes", "is_quantized", "is_leaf", "data_ptr", "is_complex", "is_floating_point", "element_size", "index_add", "scatter_add", "masked_select",
    "logsumexp", "cumsum", "log_softmax", "sigmoid", "tanh", "addmm", "baddbmm", "bmm", "matmul", "mm", "unflatten", "movedim", "clamp_min", "clamp_max",
    "rsqrt", "erf", "exp_", "sub_", "div_", "masked_scatter", "index_fill", "tril", "triu", "argsort", "type_as", "unbind", "repeat_interleave", "narrow",
    "clamp", "add_", "mul_", "requires_grad", "unfold", "roll", "topk", "norm", "byte", "char", "short", "long", "bool"]
)

CASTS = frozenset({"float", "half", "double", "bfloat16", "to", "type"})  # methods of tensors and modules, and of no number


def usage(inf: Inference, file: FileInfo, function: FunctionNode | ast.Lambda, name: str) -> Kind:
    """What the body's use of a name tells."""
    parents = file.source.parents
    uses = inf.uses(function).get(name, ())
    held = [(u, parents.get(u)) for u in uses]
    if any(isinstance(p, ast.Attribute) and p.attr in MAPPING_METHODS for _, p in held):
        return Kind("dict")
    asked = {p.attr for _, p in held if isinstance(p, ast.Attribute)}
    if "training" in asked and asked & {"eval", "train"}:
        return Kind("module")
    for use, parent in held:
        if isinstance(parent, ast.Attribute) and parent.attr in ONLY_TENSOR:
            return TENSOR.but(sure=False)
        if isinstance(parent, ast.keyword) and parent.arg == "device":
            return DEVICE.but(sure=False)
        if isinstance(parent, ast.Call) and parent.func is not use:
            if inf.takes_tensor(file, parent, use):
                return TENSOR.but(sure=False)
            if inf.callee_takes(file, parent, use) == INT:
                return INT
            if isinstance(parent.func, ast.Name) and parent.func.id == "range" or use in parent.args[:2] and isinstance(parent.func,
                ast.Attribute) and parent.func.attr == "Linear":
                return INT
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.FloorDiv, ast.Mod)) and parent.left is use and not _is_text(parent.right):
            return TENSOR.but(sure=False) if any(isinstance(p, ast.Attribute) and p.attr in CASTS for _, p in held) else INT
        if isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Eq, ast.In)) and _is_text(parent.comparators[0]):
            return STR
    return UNKNOWN


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts) and all(map(_is_text, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def constant(value: object) -> Kind:
    """The kind of a literal."""
    match value:
        case None:
            return NONE
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str():
            return STR
        case complex():
            return NUMBER
    return UNKNOWN
