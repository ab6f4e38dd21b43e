"""State dicts of converted models, under PyTorch's names."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate.support.flax.batchnorm import BatchNorm2d
from migrate.support.flax.building import reset_parameters
from migrate.support.flax.checkpoints import load_state_dict, state_dict
from migrate.support.flax.conv import Conv2d
from migrate.support.flax.recurrent import LSTM
from migrate.support.jax.creation import arrays


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = Conv2d(3, 4, (2, 3), rngs=rngs)
        self.norm = BatchNorm2d(4, rngs=rngs)
        self.head = nnx.Linear(4, 5, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(2))


class Torch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, (2, 3))
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)
        self.scale = torch.nn.Parameter(torch.rand(2))


def test_round_trip() -> None:
    want, net = Torch().state_dict(), Net(nnx.Rngs(0))
    assert load_state_dict(net, want) == ([], [])
    got = state_dict(net)
    assert set(got) == {n for n in want if not n.endswith("num_batches_tracked")}
    for name, value in got.items():
        np.testing.assert_array_equal(value, want[name].numpy())


def test_names_and_shapes_that_do_not_fit() -> None:
    net = Net(nnx.Rngs(0))
    state = {n: v for n, v in Torch().state_dict().items() if n != "scale"} | {"other": torch.ones(1)}
    with pytest.raises(KeyError, match="scale"):
        load_state_dict(net, state)
    assert load_state_dict(net, state, strict=False) == (["scale"], ["other"])
    with pytest.raises(ValueError, match="head.weight"):
        load_state_dict(net, {"head.weight": torch.ones(4, 5)}, strict=False)


def test_reset_parameters() -> None:
    net = Net(nnx.Rngs(0))
    old = state_dict(net)
    for layer in (net.conv, net.norm, net.head):
        layer.bias[...] = jnp.full(layer.bias.shape, 7.0)
        reset_parameters(layer, rngs=nnx.Rngs(1))
    new = state_dict(net)
    assert (new["norm.weight"] == 1).all() and (new["norm.bias"] == 0).all()
    for name, fan_in in (("conv", 18), ("head", 4)):
        for part in ("weight", "bias"):
            value = np.asarray(new[f"{name}.{part}"])
            assert value.shape == old[f"{name}.{part}"].shape and np.abs(value).max() <= fan_in**-0.5 and value.std() > 0.2 * fan_in**-0.5


def test_a_recurrent_layer_starts_anew() -> None:
    layer = LSTM(3, 16, rngs=nnx.Rngs(0))
    layer.weight_hh_l0[...] += 7
    reset_parameters(layer, rngs=nnx.Rngs(1))
    assert 0.2 < jnp.abs(layer.weight_hh_l0[...]).max() <= 0.25


def test_arrays() -> None:
    got = arrays({"a": torch.arange(3), "b": [torch.ones(2), (4, None)]})
    assert isinstance(got["a"], jax.Array) and got["a"].tolist() == [0, 1, 2]
    assert got["b"][0].tolist() == [1, 1] and got["b"][1] == (4, None)
