"""What a person writes for an input: `f32[2,3,32,32]`, `i64[2,12](0,50)`, `bool[2,5]`, `mask=bool[2,5]`, or a Python literal."""

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "c64": "complex64",
    "c128": "complex128",
    "bool": "bool",
}
INTEGERS = (0, 10)  # the range of integers where none is given
_PATTERN = re.compile(r"(bool|bf16|[fiuc]\d+)\[([\d,\s]*)\](?:\(\s*([^,()]+)\s*,\s*([^,()]+)\s*\))?")


class SpecError(ValueError):
    """An input that can't be read."""


@dataclass(frozen=True)
class Spec:
    """One argument of forward. `dtype` is "" for a plain value; `keyword` is "" for a positional argument."""

    keyword: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    value: Any = None


def parse(text: str) -> Spec:
    """Reads one input. Raises SpecError, saying what was expected."""
    keyword, rest = "", text.strip()
    if m := re.match(r"([A-Za-z_]\w*)\s*=(?!=)\s*", rest):
        keyword, rest = m[1], rest[m.end() :]
    if m := _PATTERN.fullmatch(rest):
        if m[1] not in DTYPES:
            raise SpecError(f"`{text}`: no dtype `{m[1]}`; there are {', '.join(DTYPES)}")
        try:
            shape = tuple(int(d) for d in m[2].split(",") if d.strip())
            low, high = (None, None) if m[3] is None else (float(m[3]), float(m[4]))
        except ValueError:
            raise SpecError(f"`{text}`: a range is two numbers, as in i64[2,12](0,50)") from None
        if low is not None and high is not None and low >= high:
            raise SpecError(f"`{text}`: the range is empty; the upper end is exclusive")
        return Spec(keyword, DTYPES[m[1]], shape, low, high)
    try:
        return Spec(keyword, value=ast.literal_eval(rest))
    except (ValueError, SyntaxError):
        raise SpecError(f"`{text}` is no input; write f32[2,3,32,32], i64[2,12](0,50), bool[2,5], or a Python literal") from None


def text(spec: Spec) -> str:
    """The spec as a person writes it."""
    word = repr(spec.value)
    if spec.dtype:
        short = next(k for k, v in DTYPES.items() if v == spec.dtype)
        limits = "" if spec.low is None else f"({spec.low:g},{spec.high:g})"
        word = f"{short}[{','.join(map(str, spec.shape))}]{limits}"
    return f"{spec.keyword}={word}" if spec.keyword else word


def array(spec: Spec, seed: int) -> np.ndarray[Any, Any]:
    """Values for a spec: normal floats, uniform ones where a range is given, integers of the range, fair booleans. bfloat16 comes
    as float32."""
    draw = np.random.RandomState(seed)
    dtype = "float32" if spec.dtype == "bfloat16" else spec.dtype
    if dtype == "bool":
        return draw.random_sample(spec.shape) < 0.5
    if dtype.startswith(("int", "uint")):
        low, high = INTEGERS if spec.low is None or spec.high is None else (int(spec.low), int(spec.high))
        return draw.randint(low, high, spec.shape).astype(dtype)
    if spec.low is not None and spec.high is not None:
        return np.asarray(draw.uniform(spec.low, spec.high, spec.shape)).astype(dtype)
    real = np.asarray(draw.standard_normal(spec.shape))
    return (real + 1j * draw.standard_normal(spec.shape)).astype(dtype) if dtype.startswith("complex") else real.astype(dtype)
