"""Every Flax layer lives through split and merge, copies, jit, grad and a change of mode."""
import copy
import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from rows_common import arrays, cases

FOLDER = pathlib.Path(__file__).parent.parent / "migrate" / "support" / "flax"
SPACE = {"nnx": nnx, "jax": jax, "jnp": jnp}
for path in sorted(FOLDER.glob("*.py")):
    if path.stem != "__init__":
        SPACE |= vars(importlib.import_module(f"migrate.support.flax.{path.stem}"))
SPACE |= vars(importlib.import_module("migrate.support.jax.rearranging"))
FIRST = {c.row.torch: c for c in cases() if c.row.kind == "layer" and "flax" in c.expected}


def outputs(layer, inputs):
    return [np.asarray(a) for a in jax.tree.leaves(layer(*inputs))]


@pytest.mark.parametrize("name", sorted(FIRST))
def test_state(name):
    case = FIRST[name]
    layer = eval(case.expected["flax"], SPACE | {"rngs": nnx.Rngs(0)})
    inputs = [jnp.asarray(a) for a in arrays(case).values()]
    if "Fractional" in name:  # random in every mode
        return
    if name.endswith("MultiheadAttention"):
        inputs *= 3
    if name.endswith("CTCLoss"):
        inputs += [jnp.array([5, 4]), jnp.array([2, 1])]
    if not isinstance(layer, nnx.Module):
        assert not isinstance(layer, type) and outputs(layer, inputs)
        return
    layer.eval()
    want = outputs(layer, inputs)
    others = [nnx.merge(*nnx.split(layer)), nnx.clone(layer), copy.deepcopy(layer)]
    for other in others:
        for a, b in zip(want, outputs(other, inputs), strict=True):
            np.testing.assert_array_equal(a, b)
    layer.train()
    traced = nnx.jit(lambda m, xs: jax.tree.leaves(m(*xs)))
    first, second = traced(layer, inputs), traced(layer, inputs)
    random = [x for _, x in nnx.iter_graph(layer) if isinstance(x, nnx.RngStream)]
    if random and "Lazy" not in name and "Transformer" not in name:
        assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    layer.eval()
    if "BatchNorm" not in name and "InstanceNorm" not in name:
        for a, b in zip(want, traced(layer, inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    if any(a.dtype.kind == "f" for a in want) and jax.tree.leaves(nnx.state(layer, nnx.Param)):
        grads = nnx.grad(lambda m: sum(o.sum() for o in jax.tree.leaves(m(*inputs)) if o.dtype.kind == "f"))(layer)
        assert all(bool(jnp.isfinite(g).all()) for g in jax.tree.leaves(grads))
