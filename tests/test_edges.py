"""Every support function that a row's case runs, at its edges: all equal, zeros, a NaN, negative, a large mean. Values only; test_support_math_linalg has the edges of matrices."""
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rows_common import Case, arrays, cases, converted, flat, load, source

EDGES = {
    "equal": lambda a: np.full_like(a, 0.5),
    "zeros": np.zeros_like,
    "nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, np.float32(np.nan), a),
    "negative": lambda a: -np.abs(a) - np.float32(0.25),
    "large mean": lambda a: a + np.float32(100),
}
# Where PyTorch leaves the result open, or gives what its own kernel's order of work gives.
OPEN = {
    "which of equal elements comes first": ("equal zeros", "kthvalue topk"),
    "numbers that are multiplied by 0 there are left out, or the other way round": (
        "nan",
        "functional.embedding functional.embedding_bag functional.conv_transpose1d functional.conv_transpose2d functional.conv_transpose3d functional.ctc_loss functional.grid_sample "
        "grid_sampler special.chebyshev_polynomial_u special.shifted_chebyshev_polynomial_u special.chebyshev_polynomial_w special.shifted_chebyshev_polynomial_w "
        "special.laguerre_polynomial_l special.legendre_polynomial_p",
    ),
    "whole numbers of NaN": ("nan", "Tensor.to"),
    "exp of a hundred, infinity": (
        "large mean",
        "polygamma Tensor.polygamma special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1",
    ),
}


def is_open(case: Case, edge: str) -> bool:
    """Whether nothing is asked of a case at an edge."""
    name = case.row.torch.removeprefix("torch.").removeprefix("nn.")
    return any(edge in edges and name in names.split() for edges, names in OPEN.values())


def floating(case: Case) -> list[str]:
    """The inputs whose numbers are free."""
    return [n for n, spec in case.inputs if spec.startswith("f") and not set(spec) & set("<>") and " in " not in spec]


FREE = [
    c for c in cases()
    if c.row.kind == "function" and c.row.file != "torch/linalg.toml" and "rngs" not in str(c.expected) and "jnp." not in c.expected.get("jax", "jnp.").partition("(")[0] and floating(c)
    and not c.expected["jax"].partition("(")[0].startswith(("jax.", "x", "y"))
]


@pytest.mark.parametrize("case", FREE, ids=lambda c: c.label)
def test_edges(case: Case) -> None:
    space: dict[str, object] = {}
    exec(source(case), space)
    made = converted(case)
    run = load(made.code, dict(made.support))["f"]
    for edge, change in EDGES.items():
        if is_open(case, edge):
            continue
        inputs = {n: change(a) if n in floating(case) else a for n, a in arrays(case).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = flat(space["f"](*map(torch.tensor, inputs.values())))  # type: ignore[operator]
            except (RuntimeError, ValueError, IndexError):
                continue  # PyTorch refuses it
        got = flat(run(*map(jnp.asarray, inputs.values())))
        for a, b in zip(want, got, strict=True):
            assert a.shape == b.shape and a.dtype.kind == b.dtype.kind, edge
            size = float(np.abs(a[np.isfinite(a)]).max(initial=0)) if a.dtype.kind in "fc" else 0
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=(5e-5 if edge == "large mean" else 5e-6) * max(1.0, size), err_msg=edge)
