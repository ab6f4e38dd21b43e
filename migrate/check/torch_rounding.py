"""Float32's rounding, made by chance in float64: what weights and inputs, or all results of operators, may be off by.

An operator's result that float32 does not hold becomes one of its two neighbours there, and the nearer one more often. What float32 holds stays: what is
exact in float32 is exact here, and what is a sum of rounded terms is off by what they are off by, also where the terms cancel.
"""

import math
from functools import cache
from typing import Any

import numpy as np
import torch

HALF_ULP = 2.0**-24
PIECE = 1 << 17  # values at a time: temporaries that stay in the cache
Array = np.ndarray[Any, Any]


def near_one(shape: Any, generator: Any, size: float = 1.0) -> Any:
    """Factors that are off one by up to `size` half units in the last place of float32. From numpy: random numbers of PyTorch's are replaced
    while a model runs."""
    count = math.prod(shape)
    if count < PIECE // 2:
        return torch.from_numpy(np.asarray(1 + size * HALF_ULP * (2 * generator.random(tuple(shape)) - 1)))
    table = _table()  # of large tensors there are many pieces, and making numbers takes longer than all else
    start = int(generator.integers(0, table.size // 2))
    part = table[start : start + count] if count <= table.size // 2 else np.resize(table, count)
    return torch.from_numpy((1 + size * HALF_ULP * part).reshape(tuple(shape)))


@cache
def _table() -> Array:
    return 2 * np.random.default_rng(9).random(1 << 21) - 1


def shift(tensor: Any, generator: Any, size: float = 1.0) -> None:
    """Multiplies a tensor in place with numbers near one, a piece at a time."""
    flat = tensor.detach().view(-1) if tensor.is_contiguous() else tensor.detach()
    for part in flat.split(PIECE) if flat.ndim else [flat]:
        part.mul_(near_one(part.shape, generator, size).to(part.dtype))


def round_results(function: Any, results: Any, generator: Any) -> None:
    """Rounds what an operator computed, in place; views of what was there before are left alone."""
    for tensor, about in zip(results if isinstance(results, tuple) else (results,), function._schema.returns, strict=False):
        fresh = about.alias_info is None or about.alias_info.is_write
        if fresh and isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.dtype in (torch.float64, torch.complex128):
            _round(torch.view_as_real(tensor) if tensor.is_complex() else tensor, generator)


def _round(tensor: Any, generator: Any) -> None:
    narrow = tensor.float()
    inexact = narrow != tensor
    if tensor.numel() and bool(inexact.any()):
        tensor.copy_(torch.where(inexact, (tensor * near_one(tensor.shape, generator)).float(), narrow))
