"""Support definitions without the methods that nothing uses: they must still run, as classes name methods in their bodies (`mode = mean`)."""
import ast

import numpy as np
import pytest
import torch
from flax import nnx
from rows_common import load as run

import migrate
from migrate.fitting.extract import load, used_by


def test_every_definition_runs_without_what_nothing_uses():
    support = load("flax")
    for name in support.definitions:
        text = support.module([name], used=used_by(ast.parse(f"from torch_support import {name}\nkept = {name}")))
        exec(compile(text, f"{name}.py", "exec"), {"__name__": name})


@pytest.mark.parametrize(
    ("made", "member"),
    [("Normal(x, 2.0)", "mode"), ("Normal(x, 2.0)", "mean"), ("MultivariateNormal(x, torch.eye(3))", "mode"), ("Laplace(x, 2.0)", "mode"), ("Poisson(x)", "variance"), ("Poisson(x)", "mean")],
)
def test_another_name_keeps_the_method_that_it_names(made, member):
    source = f"import torch\n\n\ndef f(x):\n    return torch.distributions.{made}.{member}\n"
    space: dict[str, object] = {}
    exec(source, space)
    x = np.float32([[1, 2, 3]])
    want = space["f"](torch.tensor(x))
    found = migrate.convert_source(source, target="flax")
    got = run(found.code, dict(found.support))["f"](x, **({"rngs": nnx.Rngs(0)} if "rngs" in found.code else {}))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)
