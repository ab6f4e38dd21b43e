"""Weight norm, spectral norm and parametrizations against PyTorch."""
# ruff: noqa: C408
import jax.numpy as jnp  # noqa: I001
import pytest
import torch
from flax import nnx
from layers_common import arrays, close, compare, sharpen, statistics_agree, weights_into  # first: it sets flags of XLA
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from migrate.support.flax import conv, linear, recurrent
from migrate.support.flax import reparametrize as ours
from migrate.weights.load import load_state_dict

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
R = nnx.Rngs(0)


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def layers():
    yield nn.Conv1d(3, 4, 2), conv.Conv1d(3, 4, 2, rngs=R), x(2, 3, 5)
    yield nn.Linear(3, 4), nnx.Linear(3, 4, rngs=R), x(2, 3)
    yield nn.ConvTranspose2d(3, 4, 2), conv.ConvTranspose2d(3, 4, 2, rngs=R), x(2, 3, 4, 4)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("new", [False, True])
def test_weight_norm(dim, new):
    for theirs, mine, a in layers():
        plain = type(mine)
        before = mine(arrays(a))
        made = ours.weight_norm(mine, dim=dim)
        assert made is mine and isinstance(mine, plain)
        close(before, mine(arrays(a)))
        compare((parametrizations if new else nn.utils).weight_norm(theirs, dim=dim), mine, a, train=False)
        with_norm = mine(arrays(a))
        assert type(ours.remove_weight_norm(mine)) is plain and len(nnx.state(mine, nnx.Param)) == 2
        close(with_norm, mine(arrays(a)))
        with pytest.raises(ValueError, match="not computed"):
            ours.remove_weight_norm(mine)


def test_weight_norm_of_a_recurrent_layer():
    theirs, mine = nn.LSTM(3, 4), recurrent.LSTM(3, 4, rngs=R)
    for name in ("weight_hh_l0", "weight_ih_l0"):
        theirs, mine = nn.utils.weight_norm(theirs, name), ours.weight_norm(mine, name)
    compare(theirs, mine, x(5, 2, 3), train=False, grad=False)


def test_writing_a_computed_weight_changes_nothing():
    mine = ours.weight_norm(nnx.Linear(3, 4, rngs=R))
    before = mine.kernel[...]
    mine.kernel[...] = jnp.zeros((3, 4))
    close(before, mine.kernel[...])


def test_old_names_load_into_new_ones_and_back():
    old, new = nn.utils.weight_norm(nn.Linear(3, 4)), parametrizations.weight_norm(nn.Linear(3, 4))
    for theirs in (old, new):
        mine = ours.weight_norm(linear.Linear(3, 4, rngs=R))
        assert load_state_dict(mine, theirs.state_dict()).complete
        close(theirs(x(2, 3)), mine(arrays(x(2, 3))))


@pytest.mark.parametrize("options", [{}, dict(n_power_iterations=3), dict(dim=1)], ids=str)
@pytest.mark.parametrize("new", [False, True])
def test_spectral_norm(options, new):
    for theirs, mine, a in layers():
        theirs = (parametrizations if new else nn.utils).spectral_norm(theirs, **options)
        mine = ours.spectral_norm(mine, **options, u_first=new, rngs=R)
        compare(theirs, mine, a, train=False, prepare=False)
        theirs.train(), mine.train()
        for _ in range(2):
            close(theirs(a), mine(arrays(a)))
        statistics_agree(theirs, mine)
        step = nnx.jit(lambda m, v: m(v))
        close(theirs(a), step(mine, arrays(a)))
        mine.eval()
        now = mine(arrays(a))
        close(now, ours.remove_spectral_norm(mine)(arrays(a)))


def test_new_spectral_norm_starts_near_its_end():
    mine = ours.spectral_norm(nnx.Linear(6, 5, rngs=R), u_first=True, rngs=R)
    assert abs(jnp.linalg.norm(mine.kernel[...], 2) - 1) < 0.05


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.full((3, 1), 1.5))

    def forward(self, w):
        return w * self.s


class FlaxSymmetric(nnx.Module):
    def __call__(self, w):
        return jnp.triu(w) + jnp.triu(w, 1).T


class FlaxScaled(nnx.Module):
    def __init__(self):
        self.s = nnx.Param(jnp.ones((3, 1)))

    def __call__(self, w):
        return w * self.s


def test_register_parametrization():
    theirs, mine = nn.Linear(3, 3), nnx.Linear(3, 3, rngs=R)
    for a, b in ((Symmetric(), FlaxSymmetric()), (Scaled(), FlaxScaled())):
        parametrize.register_parametrization(theirs, "weight", a)
        assert ours.register_parametrization(mine, "weight", b) is mine
    compare(theirs, mine, x(2, 3), train=False)
    assert ours.is_parametrized(mine) and ours.is_parametrized(mine, "weight") and not ours.is_parametrized(mine, "bias")
    close(theirs.weight, mine.kernel[...].T)
    now = mine(arrays(x(2, 3)))
    ours.remove_parametrizations(mine, "weight")
    close(now, mine(arrays(x(2, 3))))
    assert type(mine) is nnx.Linear


def test_parametrized_model_is_split_and_merged():
    mine = nnx.Sequential(ours.weight_norm(nnx.Linear(3, 4, rngs=R)), ours.weight_norm(nnx.Linear(4, 2, rngs=R)))
    graph, state = nnx.split(mine)
    close(mine(jnp.ones((1, 3))), nnx.merge(graph, state)(jnp.ones((1, 3))))
    sharpen_free = nnx.clone(mine)
    close(mine(jnp.ones((1, 3))), sharpen_free(jnp.ones((1, 3))))


def test_names_of_a_whole_model():
    theirs = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 4)), nn.ReLU(), parametrizations.spectral_norm(nn.Linear(4, 2)))
    mine = nnx.Sequential(ours.weight_norm(nnx.Linear(3, 4, rngs=R)), nnx.relu, ours.spectral_norm(nnx.Linear(4, 2, rngs=R), u_first=True, rngs=R))
    sharpen(theirs)
    theirs.eval(), mine.eval()
    weights_into(mine, theirs)
    close(theirs(x(2, 3)), mine(arrays(x(2, 3))))
