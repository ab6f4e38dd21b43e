"""Attention with functions of positions."""
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import flex_attention as theirs

from migrate.support.jax.attention import create_block_mask, flex_attention

MODS: list[Callable[..., Any] | None] = [None, lambda s, b, h, i, j: s * 0.5 + (i - j) * (h + 1)]


@pytest.mark.parametrize("score_mod", MODS)
@pytest.mark.parametrize("masked", [False, True])
def test_against_pytorch(score_mod: Callable[..., Any] | None, masked: bool) -> None:
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 3)

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = theirs.create_block_mask(mask, None, None, 5, 6, device="cpu") if masked else None
        want = theirs.flex_attention(q, k, v, score_mod, held, scale=0.3, enable_gqa=True)
    ours = create_block_mask(mask, None, None, 5, 6) if masked else None
    got = flex_attention(*(a.numpy() for a in (q, k, v)), score_mod, ours, scale=0.3, enable_gqa=True)
    np.testing.assert_allclose(got, want.numpy(), atol=1e-5)
