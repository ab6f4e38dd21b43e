"""Every row's cases: the converted text, the numbers, the gradients and, for layers, the weights."""
import ast

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rows_common import Case, arrays, built, cases, converted, flat, jax_gradients, load, source, torch_gradients

from migrate.tables import standard

CASES = cases()


# Rows whose arguments are modules or packed sequences: no one-line case says much; test_layers_* run them.
# Rows of libraries that these tests do not install: test_libraries runs them on stand-ins.
ELSEWHERE = ("nn/packing.toml", "nn/reparametrize.toml", "nn/containers.toml", "libraries/transformers.toml", "libraries/diffusers.toml")
# Functions of functions: test_flex_attention runs them.
OF_FUNCTIONS = ("torch.nn.attention.flex_attention.flex_attention", "torch.nn.attention.flex_attention.create_block_mask")


def test_every_row_has_a_case() -> None:
    lost = [r.torch for r in standard().rows if r.kind in ("function", "attribute", "layer") and not r.cases and any(v.to for vs in r.variants.values() for v in vs) and r.file not in ELSEWHERE and r.torch not in OF_FUNCTIONS]
    assert not lost


def _calls(code: str) -> set[str]:
    return {ast.unparse(n) for n in ast.walk(ast.parse(code)) if isinstance(n, ast.expr)}


@pytest.mark.parametrize("case", [c for c in CASES if {"jax", "flax"} & set(c.expected)], ids=lambda c: c.label)
def test_text(case: Case) -> None:
    wanted = case.expected.get("flax", case.expected.get("jax", ""))
    found = converted(case)
    assert not [d for d in found.diagnostics if d.severity == "error"], [str(d) for d in found.diagnostics]
    if ")(" in wanted and case.row.kind == "layer":
        wanted = wanted[: wanted.rindex(")(") + 1]
    assert ast.unparse(ast.parse(wanted.replace("rngs()", "nnx.Rngs(0)()"), mode="eval")) in {c.replace("rngs()", "nnx.Rngs(0)()") for c in _calls(found.code)}, found.code


@pytest.mark.filterwarnings(
    "ignore:Implicit dimension choice", "ignore:reduction. 'mean' divides", "ignore:.nn.functional.upsample", "ignore:Default grid_sample", r"ignore:(var|std)\(\)",
)
@pytest.mark.parametrize("case", [c for c in CASES if "rngs" not in str(c.expected) or c.row.kind == "layer"], ids=lambda c: c.label)
def test_numbers(case: Case) -> None:
    space: dict[str, object] = {"__name__": "original"}
    torch.manual_seed(0)
    exec(source(case), space)
    inputs = arrays(case)
    net = space["Net"]().eval() if "Net" in space else None  # type: ignore[operator]
    run = net or space["f"]
    tensors = {k: torch.tensor(v) for k, v in inputs.items()}
    want = flat(run(*[t.clone() for t in tensors.values()]))  # type: ignore[operator]
    found = converted(case)
    made = load(found.code, dict(found.support))
    ours = built(made, net.state_dict()) if net is not None else made["f"]
    got = flat(ours(*[jnp.asarray(v) for v in inputs.values()]))
    assert len(got) == len(want)
    for a, b in zip(want, got, strict=True):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6 * max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0))) if a.dtype.kind in "fc" else 0)
    wanted = torch_gradients(run if net is None else net.double(), inputs) if case.smooth else None
    if wanted is None:
        return
    smooth, grads = wanted
    for name, g in jax_gradients(ours, inputs, smooth).items():
        np.testing.assert_allclose(g, grads[name], rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(grads[name]).max(initial=0))), err_msg=f"gradient by {name}")
