"""Weight norm, spectral norm and parametrizations of the Keras target against PyTorch."""
import copy

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from test_keras_layers import LAYERS, gradients, same
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from migrate.support.keras import reparametrize as ours
from migrate.weights.load import load_state_dict

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


LAYERS_OF = [("Conv1d(3, 4, 2)", (2, 3, 5)), ("Linear(3, 4)", (2, 3)), ("ConvTranspose2d(3, 4, 2)", (2, 3, 4, 4))]


def both(text):
    theirs, mine = eval("nn." + text), eval(text, dict(LAYERS))
    assert load_state_dict(mine, theirs.state_dict()).complete
    return theirs, mine


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("text, shape", LAYERS_OF)
def test_weight_norm(text, shape, new, dim):
    theirs, mine = both(text)
    plain, a = type(mine), x(*shape)
    before = mine(jnp.asarray(a.numpy()))
    assert ours.weight_norm(mine, dim=dim) is mine and isinstance(mine, plain)
    np.testing.assert_allclose(mine(jnp.asarray(a.numpy())), before, rtol=1e-5, atol=1e-6)
    theirs = (parametrizations if new else nn.utils).weight_norm(theirs, dim=dim)
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.1 * torch.rand(p.shape))
    assert load_state_dict(mine, theirs.state_dict()).complete
    same(mine(jnp.asarray(a.numpy())), theirs(a))
    if not new:
        gradients(theirs, mine, [a], [jnp.asarray(a.numpy())])
    same(copy.deepcopy(mine)(jnp.asarray(a.numpy())), theirs(a))
    assert type(ours.remove_weight_norm(mine)) is plain and len(mine.trainable_variables) == 2
    same(mine(jnp.asarray(a.numpy())), theirs(a))
    with pytest.raises(ValueError, match="not computed"):
        ours.remove_weight_norm(mine)


@pytest.mark.parametrize("new", [False, True])
def test_weight_norm_of_a_recurrent_layer(new):
    theirs, mine = both("LSTM(3, 4)")
    for name in ("weight_hh_l0", "weight_ih_l0"):
        theirs, mine = (parametrizations if new else nn.utils).weight_norm(theirs, name), ours.weight_norm(mine, name)
    assert load_state_dict(mine, theirs.state_dict()).complete
    same(mine(jnp.asarray(x(5, 2, 3).numpy())), theirs(x(5, 2, 3)))


@pytest.mark.parametrize("options", [{}, {"n_power_iterations": 3}, {"dim": 1}], ids=str)
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("text, shape", LAYERS_OF)
def test_spectral_norm(text, shape, new, options):
    theirs, mine = both(text)
    theirs = (parametrizations if new else nn.utils).spectral_norm(theirs, **options)
    ours.spectral_norm(mine, **options, u_first=new)
    assert load_state_dict(mine, theirs.state_dict()).complete
    a, b = x(*shape), jnp.asarray(x(*shape).numpy())
    same(mine(b), theirs.eval()(a))
    theirs.train()
    for _ in range(2):
        same(mine(b, training=True), theirs(a))
    same(mine(b), theirs.eval()(a))
    before = mine(b)
    ours.remove_spectral_norm(mine)
    np.testing.assert_allclose(mine(b), before, rtol=1e-5)


def test_parametrizations_of_ones_own():
    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).T

    class OurSymmetric(LAYERS["Module"]):
        def call(self, w):
            return jnp.triu(w) + jnp.triu(w, 1).T

    theirs, mine = both("Linear(3, 3)")
    parametrize.register_parametrization(theirs, "weight", Symmetric())
    ours.register_parametrization(mine, "weight", OurSymmetric())
    ours.register_parametrization(mine, "weight", LAYERS["Identity"]())
    assert load_state_dict(mine, theirs.state_dict()).complete and ours.is_parametrized(mine, "weight") and ours.is_parametrized(mine)
    same(mine(jnp.asarray(x(2, 3).numpy())), theirs(x(2, 3)))
    same(mine.weight.value, theirs.weight)
    ours.remove_parametrizations(mine, "weight")
    same(mine(jnp.asarray(x(2, 3).numpy())), theirs(x(2, 3)))
    assert not ours.is_parametrized(mine) and len(mine.trainable_variables) == 2


def test_writing_a_computed_weight_changes_nothing():
    mine = ours.weight_norm(LAYERS["Linear"](3, 4))
    before = mine.weight.value
    mine.weight.assign(jnp.zeros((4, 3)))
    np.testing.assert_array_equal(mine.weight.value, before)
