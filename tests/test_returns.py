"""What is inferred of an operator's result is what PyTorch has: each case of a row is run with its floats as 8-bit integers, as 16-bit floats, as truth values, and with one of them so."""
import ast
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from rows_common import Case, arrays, cases, source

from migrate.infer.engine import Inference
from migrate.infer.kinds import Kind
from migrate.source.modules import Unit
from migrate.source.text import read
from migrate.tables import standard

BY_ARGUMENTS = ("same", "tensor raised", "tensor squared", "tensor promoted", "tensors alike", "tensors given", "tensor and index", "best")
FEW = (torch.uint8, torch.int8, torch.int16, torch.float16, torch.bfloat16)


def ways(names: list[str]) -> Iterator[dict[str, str]]:
    """Which inputs are cast, and how."""
    for how in ("byte", "half", "bool", "int"):
        yield dict.fromkeys(names, how)
        if len(names) > 1:
            yield {names[0]: how}
            yield dict.fromkeys(names[1:], how)


def program(case: Case, way: dict[str, str]) -> str:
    """The case as a function that casts its inputs first."""
    head, _, body = source(case).rpartition("\n    return ")
    start, _, _ = head.rpartition("def f(")
    typed = ", ".join(f"{n}: torch.Tensor" for n, _ in case.inputs)
    casts = "".join(f"    {n} = ({n}.abs() * 3 + 1).{how}()\n" for n, how in way.items())
    return f"{start}def f({typed}):\n{casts}    return {body}"


def result(text: str) -> Kind:
    """What is inferred of what the function returns."""
    unit = Unit(standard())
    unit.add(read(text, "case.py"), "")
    unit.link()
    inf = Inference(unit)
    inf.run()
    returned = next(n for n in ast.walk(unit.files[""].source.tree) if isinstance(n, ast.Return))
    return inf.of(returned.value)


def sort(dtype: torch.dtype) -> str:
    """ "bool", "int", "float" or "complex"."""
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "bool" if dtype is torch.bool else "int"


def differences(kind: Kind, value: Any, complete: bool) -> list[str]:
    """Where a kind says what a value is not; `complete`: or does not say that it has few bits."""
    if isinstance(value, (tuple, list)):
        parts = kind.items if kind.items is not None else [kind.element] * len(value)
        return [d for k, v in zip(parts, value, strict=False) for d in differences(k, v, complete)] if kind.tag in ("tuple", "list") else []
    if not isinstance(value, torch.Tensor) or not kind.is_tensor:
        return []
    found = []
    if kind.dtype and kind.dtype != sort(value.dtype):
        found.append(f"{kind.dtype} is said, {value.dtype} it is")
    if kind.narrow and value.dtype not in FEW or complete and kind.dtype and not kind.narrow and value.dtype in FEW:
        found.append(f"narrow: {kind.narrow} is said, {value.dtype} it is")
    return found


@pytest.mark.parametrize("case", [c for c in cases() if c.row.kind == "function"], ids=lambda c: c.label)
def test_dtypes(case: Case) -> None:
    floats = {n: torch.tensor(v) for n, v in arrays(case).items()}
    names = [n for n, v in floats.items() if v.is_floating_point()]
    found = []
    for way in ways(names) if names else ({},):
        text, space = program(case, way), dict[str, Any]()
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(text, space)
                value = space["f"](**{n: v.clone() for n, v in floats.items()})
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue  # PyTorch has it for other dtypes only
        found += [f"{way}: {d}" for d in differences(result(text), value, case.row.returns in BY_ARGUMENTS)]
    assert not found
