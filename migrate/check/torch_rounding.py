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


# What adds, multiplies, compares or moves: exact wherever its result is one that float32 holds, in any order of summation.
EXACT = """
add sub rsub mul neg abs mm bmm mv dot addmm addmv addbmm baddbmm convolution sum cumsum relu leaky_relu threshold clamp clamp_min clamp_max hardtanh
max_pool1d max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d amax amin max min maximum minimum fmax fmin where copy _to_copy clone
cat stack index gather index_select embedding sign floor ceil round trunc sort topk masked_fill constant_pad_nd reflection_pad1d reflection_pad2d
replication_pad1d replication_pad2d zeros ones full zeros_like ones_like full_like fill scatter scatter_add index_add index_put tril triu flip roll
repeat eye arange prelu upsample_nearest1d upsample_nearest2d
"""


# Which of equal elements these take is nobody's promise.
UNTIED = ("topk", "kthvalue", "median", "nanmedian", "mode")


class Rounding:
    """Rounds what operators computed, by the chance of a seed. `wary`: what is exact by chance only, and not 0, is moved by two units in the last
    place at most, and chance decides between equals."""

    def __init__(self, seed: int, wary: bool = False) -> None:
        self.generator = np.random.default_rng(seed)
        self.wary = wary

    def given(self, function: Any, args: Any) -> Any:
        """The arguments of an operator, equal elements told apart by far less than rounding where no order among them is promised."""
        if not (self.wary and function.overloadpacket.__name__ in UNTIED and args[0].dtype is torch.float64):
            return args
        return args[0] + torch.from_numpy(self.generator.uniform(-1e-12, 1e-12, tuple(args[0].shape))), *args[1:]

    def results(self, function: Any, results: Any) -> None:
        """In place; views of what was there before are left alone."""
        suspect = self.wary and function.overloadpacket.__name__.removesuffix("_") not in EXACT.split()
        for tensor, about in zip(results if isinstance(results, tuple) else (results,), function._schema.returns, strict=False):
            fresh = about.alias_info is None or about.alias_info.is_write
            if fresh and isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.dtype in (torch.float64, torch.complex128):
                self._round(torch.view_as_real(tensor) if tensor.is_complex() else tensor, suspect)

    def _round(self, tensor: Any, suspect: bool) -> None:
        narrow = tensor.float()
        inexact = tensor != 0 if suspect else narrow != tensor
        if tensor.numel() and bool(inexact.any()):
            moved = tensor * near_one(tensor.shape, self.generator, 4.0 if suspect else 1.0)
            tensor.copy_(torch.where(inexact, moved.float(), narrow))
