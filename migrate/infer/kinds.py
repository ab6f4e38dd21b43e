"""What an expression is, as far as the code tells."""
from dataclasses import dataclass, field
from typing import Any

LARGEST = 1000  # kinds within a kind


@dataclass(frozen=True)
class Kind:
    """What an expression is.

    `tag`: tensor, int, float, number, bool, str, none, shape (a tuple of sizes), list, tuple, dict, set, module (an instance),
    object (an instance of a local class that is no module),
    class, function, factory (a callable that makes modules), import, dtype, device, numpy, unknown.
    `dtype` of a tensor, or what a dtype is: "bool", "int", "float", "complex" or "". `ref`: the ClassInfo, FunctionInfo, Row or dotted name. `items` of a tuple of
    known length, `item` of any sequence or mapping. `variable`: "param" or "buffer" where the tensor is held in a variable of the target. `optional`: may be None.
    `narrow`: of 8 or 16 bits. `sure` is False where it was assumed.
    """

    tag: str
    dtype: str = ""
    ref: Any = None
    items: "tuple[Kind, ...] | None" = None
    item: "Kind | None" = None
    variable: str = ""
    optional: bool = False
    sure: bool = True
    narrow: bool = False
    fields: "tuple[tuple[str, Kind], ...]" = ()  # of a mapping or container whose keys are known
    key: "Kind | None" = None  # of a mapping whose keys are modules
    size: int = field(default=1, init=False, repr=False, compare=False)  # how many kinds it is made of

    def __post_init__(self) -> None:
        """What holds structures within structures without end, such as caches that methods hand down, forgets what is in them."""
        if self.items is None and self.item is None and self.key is None and not self.fields:
            return
        parts = [self.item, self.key, *(self.items or ()), *(k for _, k in self.fields)]
        size = 1 + sum(k.size for k in parts if k is not None)
        if size > LARGEST:
            object.__setattr__(self, "fields", ())
            size = 1 + sum(k.size for k in (self.item, self.key, *(self.items or ())) if k is not None)
        if size > LARGEST:
            for name in ("items", "item", "key"):
                object.__setattr__(self, name, None)
            size = 1
        object.__setattr__(self, "size", size)

    def member(self, name: str) -> "Kind | None":
        """What is under a known key."""
        return next((k for n, k in self.fields if n == name), None)

    @property
    def is_tensor(self) -> bool:
        """A tensor of PyTorch."""
        return self.tag == "tensor"

    @property
    def is_unknown(self) -> bool:
        """Nothing is known."""
        return self.tag == "unknown"

    @property
    def is_number(self) -> bool:
        """A Python number."""
        return self.tag in ("int", "float", "number", "bool")

    @property
    def element(self) -> "Kind":
        """What iterating or indexing by a number gives."""
        if self.item is not None:
            return self.item
        if self.items:
            return join_all(self.items)
        if self.is_tensor:
            return self.but(variable="", optional=False)
        return {"shape": INT, "str": STR, "numpy": NUMPY}.get(self.tag, UNKNOWN)

    def but(self, **changes: Any) -> "Kind":
        """A copy with changes; itself where they change nothing. `dataclasses.replace` takes three times as long."""
        mine = self.__dict__
        if all(mine[name] is value for name, value in changes.items()):
            return self
        found = object.__new__(Kind)
        found.__dict__.update(mine, **changes, size=1)
        found.__post_init__()
        return found


UNKNOWN = Kind("unknown")
NONE = Kind("none")
INT = Kind("int")
FLOAT = Kind("float")
NUMBER = Kind("number")
BOOL = Kind("bool")
STR = Kind("str")
SHAPE = Kind("shape", item=INT)
TENSOR = Kind("tensor")
BOOL_TENSOR = Kind("tensor", dtype="bool")
INT_TENSOR = Kind("tensor", dtype="int")
FLOAT_TENSOR = Kind("tensor", dtype="float")
DTYPE = Kind("dtype")
DEVICE = Kind("device")
NUMPY = Kind("numpy")
MODULE = Kind("module")
FACTORY = Kind("factory")
NAMED = {
    "tensor": TENSOR, "tensor bool": BOOL_TENSOR, "tensor int": INT_TENSOR, "tensor float": FLOAT_TENSOR, "tensor complex": Kind("tensor", dtype="complex"),
    "number": NUMBER,
    "tensor narrow int": INT_TENSOR.but(narrow=True), "tensor narrow float": FLOAT_TENSOR.but(narrow=True),
    "dtype narrow float": DTYPE.but(dtype="float", narrow=True), "dtype narrow int": DTYPE.but(dtype="int", narrow=True),
    "int": INT, "float": FLOAT, "bool": BOOL, "shape": SHAPE, "tensors": Kind("tuple", item=TENSOR), "none": NONE, "str": STR, "dtype": DTYPE,
    **{f"dtype {d}": Kind("dtype", dtype=d) for d in ("bool", "int", "float", "complex")}, "module": MODULE, "device": DEVICE,
    "list": Kind("list"), "unknown": UNKNOWN, "numpy": NUMPY,
}


def join(a: Kind, b: Kind) -> Kind:
    """What holds of both: the kind of a value that comes from one of two places."""
    if a is b or a == b:
        return a
    if a.tag == "none":
        return b.but(optional=True)
    if b.tag == "none":
        return a.but(optional=True)
    optional = a.optional or b.optional
    if a.is_number and b.is_number:
        return NUMBER.but(optional=optional)
    if a.tag != b.tag:
        if {a.tag, b.tag} <= {"class", "function", "factory"}:
            if _refs(a) and _refs(b):
                return Kind("factory", ref=_refs(a) | _refs(b), optional=optional)
            plain = "function" in (a.tag, b.tag)  # it may make none
            return Kind("factory", optional=optional or plain, sure=a.sure and b.sure and not plain)
        if {a.tag, b.tag} in ({"unknown", "class"}, {"unknown", "factory"}):
            return Kind("factory", optional=optional, sure=False)  # what stands in for a class that makes modules makes modules
        if {a.tag, b.tag} <= {"tuple", "list", "shape"}:
            return Kind("tuple", item=join(a.element, b.element), optional=optional)
        if {a.tag, b.tag} <= {"module", "function"}:
            return MODULE.but(optional=optional)
        return UNKNOWN.but(optional=optional)
    same_items = a.items is not None and b.items is not None and len(a.items) == len(b.items)
    return Kind(
        a.tag,
        dtype=a.dtype if a.dtype == b.dtype else "",
        ref=a.ref if a.ref == b.ref else (_refs(a) | _refs(b) if a.tag in ("class", "module", "function", "object") and _refs(a) and _refs(b) else None),
        items=tuple(join(x, y) for x, y in zip(a.items or (), b.items or (), strict=True)) if same_items else None,
        item=None if same_items or a.tag not in ("list", "tuple", "dict", "set", "module", "shape") else _item(a, b),
        variable=a.variable if a.variable == b.variable else "",
        optional=optional,
        sure=a.sure and b.sure,
        narrow=a.narrow and b.narrow,
        fields=a.fields if a.fields == b.fields else tuple((dict(a.fields) | dict(b.fields)).items()),
        key=_key(a, b),
    )


def _key(a: Kind, b: Kind) -> Kind | None:
    if a.items == () or b.items == ():  # an empty one says nothing of its keys
        return b.key if a.items == () else a.key
    return join(a.key, b.key) if a.key is not None and b.key is not None else None


def _item(a: Kind, b: Kind) -> Kind | None:
    if a.items == ():  # an empty list says nothing of what it will hold
        return b.element
    if b.items == ():
        return a.element
    if a.item is None and a.items is None or b.item is None and b.items is None:
        return None
    return join(a.element, b.element)


def _refs(kind: Kind) -> frozenset[Any]:
    if isinstance(kind.ref, frozenset):
        return kind.ref
    return frozenset([kind.ref]) if kind.ref is not None else frozenset()


def refs(kind: Kind) -> tuple[Any, ...]:
    """What a class or factory may refer to, in an order that does not depend on where it lies in memory; empty where not all is known."""
    found = _refs(kind)
    return tuple(sorted(found, key=_place)) if len(found) > 1 else tuple(found)


def _place(ref: Any) -> tuple[str, str, int]:
    node = getattr(ref, "node", None)
    return type(ref).__name__, getattr(ref, "dotted", "") or getattr(ref, "torch", "") or getattr(ref, "name", "") or str(ref), getattr(node, "lineno", 0)


def join_all(kinds: "tuple[Kind, ...] | list[Kind]") -> Kind:
    """The join of several kinds; UNKNOWN for none."""
    if not kinds:
        return UNKNOWN
    found = kinds[0]
    for k in kinds[1:]:
        found = join(found, k)
    return found
