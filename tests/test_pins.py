"""Each argument that a template spells out although the target has a default: without it, a case must come out differently.

The cases are those of the rows and, where these never show it, the calls below.
"""

import ast
import inspect
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rows_common import Case, arrays, cases, flat, load, source

import migrate
from migrate.tables import Row, build, overlaid, standard

GIVEN = frozenset({"rngs", "axes"})  # not arguments of PyTorch's
LEGACY = (
    "(2, 3, 1)",
    "(2, 3, 1, 1)",
    "([1.5, 2])",
    "(torch.zeros(2).numpy())",
    "(torch.ones(2, dtype=torch.long).numpy())",
    "(2, 3)",
    "(2)",
    "((2, 3))",
    "([1, 2])",
    "(x)",
    "()",
    "(torch.Size([2]))",
    "(x.shape)",
    "(n)",
    "(n, n)",
)
NORMS = ("forward", "ortho", "backward")
# Calls that show what the cases of the row do not.
MORE = {
    "torch.nn.LayerNorm": (
        "nn.LayerNorm(6)(x * 1e-3)",
        "nn.LayerNorm(6, elementwise_affine=False)(x * 1e-3)",
        "nn.LayerNorm(6, bias=False)(x * 1e-3)",
        "nn.LayerNorm(6)(x + 4e3)",
        "nn.LayerNorm(6, elementwise_affine=False)(x + 4e3)",
        "nn.LayerNorm(6, bias=False)(x + 4e3)",
    ),
    "torch.nn.functional.gelu": ("F.gelu(x)",),
    "torch.nn.GELU": ("nn.GELU()(x)",),
    "torch.var": (
        "x.var()",
        "x.var(unbiased=False)",
        "x.var(0)",
        "x.var(0, unbiased=False)",
        "x.var(0, False)",
        "x.var(False)",
        "x.var(True)",
        "x.var(0, True)",
    ),
    "torch.std": ("x.std(False)", "x.std(0, False)"),
    "torch.var_mean": ("torch.var_mean(x, False)", "torch.var_mean(x, 0, False)"),
    "torch.std_mean": ("torch.std_mean(x, False)", "torch.std_mean(x, 0, False)"),
    "torch.linalg.diagonal": ("torch.linalg.diagonal(x.reshape(2, 3, 1))",),
    "torch.pinverse": ("torch.pinverse(torch.diag(torch.tensor([1.0, 1e-9])))",),
    "torch.meshgrid": ("torch.meshgrid(x[0], x[1])",),
    "torch.unique": ("torch.unique(torch.cat([x[0], x[0] * float('nan')]))",),
    "torch.scalar_tensor": ("torch.scalar_tensor(2)",),
    "torch.full": ("torch.full((2,), 3.0) * x[0, 0].bfloat16()",),
    "torch.bucketize": ("torch.bucketize(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]), right=True)",),
    "torch.searchsorted": (
        "torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0]), side='right')",
        "torch.searchsorted(torch.tensor([1.0, 2.0]), x, right=True)",
    ),
    "torch.linalg.qr": ("torch.linalg.qr(x.T, mode='r')[1]",),
    "torch.nn.utils.parametrizations.spectral_norm": ("torch.nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4))(x)",),
    "torch.utils._pytree.tree_map": ("torch.utils._pytree.tree_map(lambda t: 1 if t is None else t, [x, None])",),
    "torch.utils._pytree.tree_leaves": ("len(torch.utils._pytree.tree_leaves([x, None])) * x",),
    "torch.utils._pytree.tree_flatten": ("len(torch.utils._pytree.tree_flatten([x, None])[0]) * x",),
    "torch.qr": ("torch.qr(x.T, some=False)[0]",),
    "torch.Tensor.fill_diagonal_": ("x.clone().fill_diagonal_(3)",),
    **{
        f"torch.fft.{n}": tuple(
            f"torch.fft.{n}(x{s}, norm='{k}')" for k in NORMS for s in ("", ", s=(3, 5)", ", dim=1", ", dim=(0, 1)", ".reshape(2, 3, 2)")
        )
        for n in ("hfftn", "hfft2", "ihfftn", "ihfft2")
    },
    **{
        f"torch.{n}Tensor": tuple(f"torch.{n}Tensor{c}" for c in LEGACY)
        for n in ("", "Float", "Half", "BFloat16", "Long", "Short", "Char", "Byte", "Bool")
    },
}


def spelled(row: Row) -> list[tuple[str, int, str]]:
    """(family, variant, keyword) of each constant, or pinned parameter, that a template passes by keyword."""
    found = []
    names = {p.name for p in row.parameters}
    for family, variants in row.variants.items():
        for i, v in enumerate(variants):
            for call in (n for n in ast.walk(v.template) if isinstance(n, ast.Call)) if v.to else ():
                for k in call.keywords:
                    held = {n.id for n in ast.walk(k.value) if isinstance(n, ast.Name)}
                    if k.arg and (not held & (names | GIVEN) or held & v.pin) and (family, i, k.arg) not in found:
                        found.append((family, i, k.arg))
    return found


def without(row: Row, family: str, number: int, keyword: str) -> Row:
    """The row with that keyword left to the target's default."""
    v = row.variants[family][number]
    tree = ast.parse(v.to, mode="eval")
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        call.keywords = [k for k in call.keywords if k.arg != keyword]
    lost = {p.name for p in row.parameters} & {n.id for n in ast.walk(v.template) if isinstance(n, ast.Name)} - {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
    }
    changed = replace(v, to=ast.unparse(tree), drop=v.drop | lost)
    return replace(row, variants={**row.variants, family: (*row.variants[family][:number], changed, *row.variants[family][number + 1 :])})


def results(text: str, table, target: str, inputs):
    """The converted text, and what it computes or which error it raises."""
    made = migrate.convert_source(text, target=target, table=table)
    return made, lambda: _run(made, target, inputs)


def _run(made, target, inputs):
    from flax import nnx

    try:
        space = load(made.code, dict(made.support))
        f = space["f"] if "f" in space else space["Net"](rngs=nnx.Rngs(0)) if target == "flax" else space["Net"]()
        extra = {"rngs": nnx.Rngs(0)} if "f" in space and "rngs" in inspect.signature(f).parameters else {}
        parameters = [np.asarray(len(jax.tree.leaves(nnx.state(f))))] if isinstance(f, nnx.Module) else []
        return flat(f(*[jnp.asarray(v) for v in inputs.values()], **extra)) + parameters
    except Exception as e:
        return repr(type(e))


def differ(a, b) -> bool:
    """Whether two results are told apart: an error, a shape, a dtype or a value."""
    if isinstance(a, str) or isinstance(b, str):
        return a != b
    if len(a) != len(b):
        return True
    return any(
        x.shape != y.shape or x.dtype != y.dtype or not np.allclose(x.astype(complex), y.astype(complex), rtol=1e-6, atol=0, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


PINS = [(row, *at) for row in standard().rows for at in spelled(row)]


@pytest.mark.parametrize(("row", "family", "number", "keyword"), PINS, ids=lambda v: v.torch if isinstance(v, Row) else str(v))
@pytest.mark.filterwarnings("ignore")
def test_a_pin_is_seen(row, family, number, keyword):
    target = "keras" if family == "keras" else "flax"
    table = overlaid(standard(), build([without(row, family, number, keyword)]))
    own = [c for c in cases() if c.row.torch == row.torch]
    own += [
        Case(
            row,
            100 + i,
            call,
            (("x", "f32[2, 6]"), *((("n", "i64[]>1<4"),) if "n" in call.split("Tensor")[-1] and row.torch.endswith("Tensor") else ())),
            {},
        )
        for i, call in enumerate(MORE.get(row.torch, ()))
    ]
    tried = 0
    for case in own:
        text = source(case)
        inputs = arrays(case)
        before, run = results(text, standard(), target, inputs)
        after, run_without = results(text, table, target, inputs)
        if before.code == after.code:
            continue
        tried += 1
        if differ(run(), run_without()):
            return
    raise AssertionError(f"{tried} of {len(own)} cases use this form and none shows {keyword}")
