"""Every support function that a row's case runs, at its edges: all equal, zeros, a NaN, negative, a large mean; nothing along an axis, one element, a batch of one. The
gradients at the same edges (test_support_math_linalg has more edges of matrices)."""
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rows_common import Case, arrays, cases, converted, flat, jax_gradients, load, source, torch_gradients

from migrate.known import corners

EDGES = {
    "equal": lambda a: np.full_like(a, 0.5),
    "zeros": np.zeros_like,
    "nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, np.float32(np.nan), a),
    "negative": lambda a: -np.abs(a) - np.float32(0.25),
    "large mean": lambda a: a + np.float32(100),
}
Inputs = dict[str, np.ndarray]


def leading(size: int) -> Callable[[Inputs], Inputs]:
    """Cuts the first axis of the first input, and that of all that have as many, to a size."""
    def change(inputs: Inputs) -> Inputs:
        many = next((a.shape[0] for a in inputs.values() if a.ndim), 0)
        return {n: a[:size] if a.ndim and len(a) == many else a for n, a in inputs.items()}
    return change


def one_element(inputs: Inputs) -> Inputs:
    """The first element of each, with all its axes; 0 of whole numbers, which are often indices."""
    return {n: (a if a.dtype.kind == "f" else a * 0).reshape(-1)[:1].reshape((1,) * a.ndim) for n, a in inputs.items()}


SHAPES = {"empty": leading(0), "batch of one": leading(1), "one element": one_element}
# What a row states to raise, by the edges that show it.
STATED = {"empty": "nothing-in-it", "batch of one": "contracted-one"}


def is_open(case: Case, edge: str) -> bool:
    """Whether nothing is asked of a case at an edge."""
    return STATED.get(edge) in case.row.known or any(edge in corner.edges for corner in corners().get(case.row.torch, ()))


def floating(case: Case) -> list[str]:
    """The inputs whose numbers are free."""
    return [n for n, spec in case.inputs if spec.startswith("f") and not set(spec) & set("<>") and " in " not in spec]


FREE = [
    c for c in cases()
    if c.row.kind == "function" and "rngs" not in str(c.expected) and "jnp." not in c.expected.get("jax", "jnp.").partition("(")[0] and c.inputs
    and not c.expected["jax"].partition("(")[0].startswith(("jax.", "x", "y"))
]


def at_edges(case: Case) -> dict[str, Inputs]:
    """The inputs of a case at each edge."""
    inputs, free = arrays(case), floating(case)
    made = {e: {n: change(a) if n in free else a for n, a in inputs.items()} for e, change in EDGES.items() if free}
    made |= {e: change(inputs) for e, change in SHAPES.items() if all(a.size for a in inputs.values())}
    return {e: m for e, m in made.items() if not is_open(case, e)}


def both(case: Case) -> tuple[Any, Any]:
    """PyTorch's function and the converted one."""
    space: dict[str, Any] = {}
    exec(source(case), space)
    made = converted(case)
    return space["f"], load(made.code, dict(made.support))["f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FREE, ids=lambda c: c.label)
def test_edges(case: Case) -> None:
    theirs, ours = both(case)
    for edge, inputs in at_edges(case).items():
        try:
            want = flat(theirs(*map(torch.tensor, inputs.values())))
        except (RuntimeError, ValueError, IndexError, AssertionError):
            continue  # PyTorch refuses it
        got = flat(ours(*map(jnp.asarray, inputs.values())))
        for a, b in zip(want, got, strict=True):
            assert a.shape == b.shape and a.dtype.kind == b.dtype.kind, edge
            size = float(np.abs(a[np.isfinite(a)]).max(initial=0)) if a.dtype.kind in "fc" else 0
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=(5e-5 if edge == "large mean" else 5e-6) * max(1.0, size), err_msg=edge)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [c for c in FREE if c.smooth and any(spec.startswith("f") for _, spec in c.inputs)], ids=lambda c: c.label)
def test_gradients(case: Case) -> None:
    theirs, ours = both(case)
    for edge, inputs in at_edges(case).items():
        if edge == "nan" or is_open(case, f"{edge}_gradients") or case.row.file == "torch/linalg.toml" and edge in ("equal", "zeros"):  # singular matrices
            continue
        try:
            found = torch_gradients(theirs, inputs)
        except (ValueError, IndexError, AssertionError):
            continue
        if found is None or any(np.abs(g).max(initial=0) > 1e30 for g in found[1].values()):
            continue  # nothing to differentiate; or beyond what 32 bits hold
        for name, g in jax_gradients(ours, inputs, found[0]).items():
            want = found[1][name]
            size = float(np.abs(want[np.isfinite(want)]).max(initial=0))
            np.testing.assert_allclose(g, want, rtol=1e-3, atol=(1e-3 if edge == "large mean" else 1e-4) * max(1.0, size), err_msg=f"{edge}: by {name}")
