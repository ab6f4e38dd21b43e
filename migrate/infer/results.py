"""What an operator's result is, by its row's `returns` and what it is given."""
from collections.abc import Mapping, Sequence

from migrate.infer.kinds import BOOL_TENSOR, INT_TENSOR, NAMED, TENSOR, UNKNOWN, Kind
from migrate.tables import Row

RANKS = ("bool", "int", "float", "complex")
# Arguments that don't decide the dtype.
NOT_VALUES = frozenset({"dim", "dims", "axis", "alpha", "beta", "value", "condition", "mask", "batch_first", "equation", "rounding_mode"})


def returned(row: Row, args: Sequence[Kind], keywords: Mapping[str | None, Kind] | None = None) -> Kind:
    """The kind of an operator's result. `args` begin with the receiver, where it is a method's."""
    first = args[0] if args else (keywords or {}).get("input", TENSOR)
    name = row.returns
    if first.tag == "module" and name == "module":  # such as weight_norm(layer)
        return first
    match name:
        case "same":
            return _alike(first)
        case "tensor raised":
            return _raised(first)
        case "tensor added up" if first.is_tensor:
            return TENSOR.but(dtype="int" if first.dtype in ("int", "bool") else first.dtype, narrow=first.narrow and first.dtype == "float", sure=first.sure)
        case "tensor truth":
            return TENSOR if first.narrow and first.dtype == "int" else BOOL_TENSOR  # of uint8 it is uint8
        case "tensor squared":
            return _alike(first).but(dtype="int" if first.dtype == "bool" else _alike(first).dtype)
        case "tensor promoted":
            return promoted(_values(row, args, keywords or {}))
        case "tensor of floats":
            found = promoted(_values(row, args, keywords or {}))
            return found if found.dtype == "float" else TENSOR
        case "tensor of weight":
            weight = (keywords or {}).get("weight", args[1] if len(args) > 1 else TENSOR)
            return _alike(weight).but(dtype=weight.dtype or "float")
        case "best":
            return _best(row, first, args, keywords or {})
        case "tensors alike":
            return Kind("tuple", item=_alike(first))
        case "tensors given":
            return Kind("tuple", items=tuple(map(_alike, args))) if args and all(k.is_tensor for k in args) else Kind("tuple", item=TENSOR)
        case "tensor and index":
            return _indexed(first)
    return NAMED.get(name, TENSOR if name.startswith("tensor") else UNKNOWN)


def _alike(first: Kind) -> Kind:
    return first.but(variable="", optional=False) if first.is_tensor else TENSOR


def _indexed(first: Kind) -> Kind:
    """Values and where they stand."""
    found = _alike(first), INT_TENSOR
    return Kind("tuple", items=found, fields=tuple(zip(("values", "indices"), found, strict=True)))


def _best(row: Row, first: Kind, args: Sequence[Kind], keywords: Mapping[str | None, Kind]) -> Kind:
    """`x.max()` is a tensor, `x.max(0)` one with an index, `x.max(y)` that of both."""
    second = args[1] if len(args) > 1 else keywords.get("other", keywords.get("dim"))
    if second is None or "other" in keywords or second.is_tensor:
        return promoted([first] if second is None else [first, second])
    return _indexed(first) if second.is_number else _alike(first).but(dtype="", narrow=False)


def _raised(first: Kind) -> Kind:
    """Integers become floating point numbers of the default width."""
    found = _alike(first)
    return found.but(dtype="float", narrow=False) if found.dtype in ("int", "bool") else found


def _values(row: Row, args: Sequence[Kind], keywords: Mapping[str | None, Kind]) -> list[Kind]:
    """What decides the dtype of a result: tensors, also those in a list, and numbers."""
    names = [p.name for p in row.parameters if p.kind == "positional"]
    rest = [p.name for p in row.parameters if p.kind == "variadic"]
    found = [k for i, k in enumerate(args) if (names[i] if i < len(names) else "".join(rest)) not in NOT_VALUES]
    found += [k for n, k in keywords.items() if n not in NOT_VALUES]
    return [p for k in found for p in ((k.items if k.items is not None else (k.element,)) if k.tag in ("list", "tuple") else (k,))]


def promoted(values: Sequence[Kind]) -> Kind:
    """The tensor that values together make: the highest sort decides; a Python number does where its own is higher, and then the width is the default."""
    given = [k for k in values if k.tag not in ("str", "none", "dtype", "device")]
    tensors = [k for k in given if k.is_tensor]
    numbers = {k.tag for k in given if k.is_number}
    if not tensors:
        return TENSOR
    dtypes, sure = {k.dtype for k in tensors}, all(k.sure for k in tensors)
    if len(tensors) + sum(k.is_number for k in given) < len(given):  # something that is not known
        dtypes.add("")
    if "complex" in dtypes:
        return TENSOR.but(dtype="complex", sure=sure)
    if "" in dtypes:
        return TENSOR.but(dtype="float" if "float" in dtypes or "float" in numbers else "", narrow=all(k.narrow for k in tensors), sure=sure)
    top = max(dtypes, key=RANKS.index)
    sorts = {"bool": 0, "int": 1, "float": 2}
    if "number" in numbers and top != "float":
        return TENSOR.but(sure=sure)
    if any(sorts[n] > RANKS.index(top) for n in numbers if n in sorts):
        return TENSOR.but(dtype="float" if "float" in numbers else "int", sure=sure)
    return TENSOR.but(dtype=top, narrow=top in ("int", "float") and all(k.narrow for k in tensors if k.dtype == top), sure=sure)
