"""torch.nn.init of the support code: deterministic ones against PyTorch's values, random ones by bounds, moments and structure."""
import inspect

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate.support.jax import init

ORDERS = {None: (300, 40, 3), (2, 1, 0): (3, 40, 300), "kernel": (3, 40, 300), (2, 0, 1): (3, 300, 40)}
RANDOM = {
    "uniform_": {"a": -1.0, "b": 3.0},
    "normal_": {"mean": 1.0, "std": 0.5},
    "trunc_normal_": {"mean": 0.5, "std": 1.0, "a": -1.0, "b": 1.0},
    "xavier_uniform_": {"gain": 2.0},
    "xavier_normal_": {},
    "kaiming_uniform_": {"a": 1.0, "mode": "fan_in"},
    "kaiming_normal_": {"mode": "fan_out", "nonlinearity": "relu"},
    "orthogonal_": {"gain": 3.0},
}


def in_torch_order(value, axes):
    axes = {None: (0, 1, 2), "kernel": (2, 1, 0)}.get(axes, axes)
    return np.asarray(value).transpose([axes.index(i) for i in range(3)])


@pytest.mark.parametrize("axes", ORDERS)
@pytest.mark.parametrize("name", RANDOM)
def test_draws_are_distributed_as_pytorchs(name, axes):
    variable = nnx.Param(jnp.zeros(ORDERS[axes]))
    assert getattr(init, name)(variable, **RANDOM[name], axes=axes, rngs=nnx.Rngs(0)) is variable
    ours = in_torch_order(variable[...], axes)
    torch.manual_seed(0)
    theirs = getattr(torch.nn.init, name)(torch.empty(300, 40, 3), **RANDOM[name]).numpy()
    assert ours.shape == theirs.shape
    spread = float(theirs.std())
    assert ours.mean() == pytest.approx(theirs.mean(), abs=0.03 * spread)
    assert ours.std() == pytest.approx(spread, rel=0.02)
    if name not in ("normal_", "xavier_normal_", "kaiming_normal_", "orthogonal_"):
        assert ours.min() == pytest.approx(theirs.min(), abs=0.01 * spread)
        assert ours.max() == pytest.approx(theirs.max(), abs=0.01 * spread)
    if name == "orthogonal_":
        rows = ours.reshape(300, -1)[:100]  # 300 x 120: the columns are orthogonal
        columns = ours.reshape(300, -1)
        np.testing.assert_allclose(columns.T @ columns, 9 * np.eye(120), atol=1e-4)
        assert not np.allclose(rows @ rows.T, 9 * np.eye(100), atol=1e-4)


def test_orthogonal_rows():
    q = init.orthogonal_(jnp.zeros((3, 8)), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(q @ q.T, np.eye(3), atol=1e-5)


def test_sparse():
    value = np.asarray(init.sparse_(jnp.ones((10, 200)), 0.25, std=2.0, rngs=nnx.Rngs(0)))
    torch.manual_seed(0)
    theirs = torch.nn.init.sparse_(torch.empty(10, 200), 0.25, std=2.0).numpy()
    assert set((value == 0).sum(0)) == set((theirs == 0).sum(0)) == {3}
    assert value.std() == pytest.approx(theirs.std(), rel=0.1)
    assert len({tuple(c) for c in (value == 0).T}) > 20  # other rows in other columns


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("shape", [(6, 3, 3), (4, 5, 2, 3), (2, 2, 3, 3, 1)])
def test_dirac(shape, groups):
    theirs = torch.nn.init.dirac_(torch.empty(shape), groups).numpy()
    np.testing.assert_array_equal(init.dirac_(jnp.zeros(shape), groups), theirs)
    kernel = nnx.Param(jnp.zeros((*shape[2:], shape[1], shape[0])))
    init.dirac_(kernel, groups, axes="kernel")
    np.testing.assert_array_equal(kernel[...], theirs.transpose(*range(2, len(shape)), 1, 0))


def test_constants():
    np.testing.assert_array_equal(init.eye_(nnx.Param(jnp.zeros((3, 2))), axes=(1, 0))[...], np.eye(3, 2))
    np.testing.assert_array_equal(init.constant_(jnp.zeros(3), 0.5), [0.5] * 3)
    np.testing.assert_array_equal(init.ones_(jnp.zeros((2, 2), jnp.bfloat16)), np.ones((2, 2)))
    assert init.zeros_(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16


def test_a_new_draw_each_time():
    rngs = nnx.Rngs(0)
    assert not np.array_equal(init.normal_(jnp.zeros(4), rngs=rngs), init.normal_(jnp.zeros(4), rngs=rngs))


@pytest.mark.parametrize("nonlinearity", ["linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
@pytest.mark.parametrize("param", [None, 0.2, 0])
def test_gain(nonlinearity, param):
    assert init.calculate_gain(nonlinearity, param) == torch.nn.init.calculate_gain(nonlinearity, param)


def test_gain_of_an_unknown_nonlinearity():
    with pytest.raises(KeyError):
        init.calculate_gain("swish")


def test_fans():
    theirs = torch.nn.init._calculate_fan_in_and_fan_out(torch.zeros(6, 4, 3, 5))
    assert init.fan_in_and_fan_out(jnp.zeros((3, 5, 4, 6)), "kernel") == theirs
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        init.fan_in_and_fan_out(jnp.zeros(3))


@pytest.mark.parametrize("name", [*RANDOM, "constant_", "zeros_", "ones_", "eye_", "dirac_", "sparse_"])
def test_signatures_are_pytorchs(name):
    theirs = [p for p in inspect.signature(getattr(torch.nn.init, name)).parameters.values() if p.name != "generator"]
    ours = [p for p in inspect.signature(getattr(init, name)).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]
