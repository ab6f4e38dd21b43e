"""How far a value may be from PyTorch's, from first principles.

The reference is PyTorch in float64. `own` is the error that float32 itself makes there: the larger of PyTorch's float32 result and
of a float64 run whose
weights and inputs are off by half a unit in the last place. A converted tensor passes within FACTOR units; a unit is `own`, or two
roundings of the
tensor's largest value where `own` is smaller than that. Integers, booleans and the positions of NaN and infinity must be the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

FACTOR = 8.0  # units that another order of summation and other elementary functions may cost
ROUNDINGS = 2.0
PIECE = 1 << 17  # values at a time: temporaries that stay in the cache
EPS = {"float32": 2.0**-23, "float64": 2.0**-23, "complex64": 2.0**-23, "complex128": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Difference:
    """One tensor compared. `units` is the error in units (0 where the tensor is not floating); `reason` is "" where it passes."""

    error: float = 0.0
    scale: float = 0.0
    units: float = 0.0
    reason: str = ""


def kind(dtype: str) -> str:
    """bool, int, float or complex."""
    for prefix, name in (("bool", "bool"), ("int", "int"), ("uint", "int"), ("complex", "complex")):
        if dtype.startswith(prefix):
            return name
    return "float"


def unit(own: float, scale: float, dtype: str) -> float:
    """The size of one unit for a tensor."""
    return max(own, ROUNDINGS * EPS.get(dtype, 2.0**-23) * scale)


def wide(array: Array) -> Array:
    """A floating array in double precision; complex numbers as pairs."""
    if array.dtype.kind == "c":
        array = array.astype(np.complex128)
        return array.view(np.float64).reshape(*array.shape, 2)
    return array.astype(np.float64)


def difference(got: Array, want: Array, dtype: str, own: float, undecided: Array | None = None) -> Difference:
    """Compares a converted tensor with the reference. `undecided` marks integers that PyTorch itself gives otherwise in float64."""
    if kind(dtype) in ("bool", "int"):
        if got.dtype.kind not in "biu":
            return Difference(reason=f"dtype {got.dtype} instead of {dtype}")
        wrong = got.astype(np.int64) != want.astype(np.int64)
        if undecided is not None:
            wrong &= ~undecided
        return Difference(error=float(wrong.sum()), reason=f"{int(wrong.sum())} of {wrong.size} values differ" if wrong.any() else "")
    if _shape(want) != _shape(got):
        return Difference(reason=f"dtype {got.dtype} instead of {dtype}")
    odd, any_finite, error, scale = 0, False, 0.0, 0.0
    for a, b in _pieces(want, got):
        finite = np.isfinite(a)
        odd += int((~((finite & np.isfinite(b)) | (a == b) | (np.isnan(a) & np.isnan(b)))).sum())
        any_finite |= bool(finite.any())
        gap = np.subtract(a, b, where=finite & np.isfinite(b), out=np.zeros(a.shape))
        error = max(error, float(np.abs(gap).max()))
        scale = max(scale, float(np.abs(a, where=finite, out=np.zeros(a.shape)).max()))
    if odd:
        reason = f"{odd} of {want.size} values are NaN or infinite on one side only"
        return Difference(error=float("inf"), units=float("inf"), reason=reason)
    if not any_finite:
        return Difference()
    one = unit(own, scale, dtype)
    units = error / one if one else (0.0 if error == 0 else float("inf"))
    reason = "" if units <= FACTOR else f"off by {error:.3g} where values reach {scale:.3g}; PyTorch's own float32 error is {own:.3g}"
    return Difference(error, scale, units, reason)


def _shape(array: Array) -> tuple[int, ...]:
    return (*array.shape, 2) if array.dtype.kind == "c" else array.shape


def _pieces(want: Array, got: Array) -> Iterator[tuple[Array, Array]]:
    """Both in double precision, a piece at a time; complex numbers as pairs."""
    a, b = (np.ascontiguousarray(v).view(v.real.dtype).reshape(-1) if v.dtype.kind == "c" else v.reshape(-1) for v in (want, got))
    for start in range(0, a.size, PIECE):
        yield a[start : start + PIECE].astype(np.float64), b[start : start + PIECE].astype(np.float64)
