"""A PyTorch state dict into a live Flax model: every leaf and every tensor is accounted for."""
import jax  # noqa: I001
import jax.numpy as jnp
import pytest
import torch
from flax import nnx
from layers_common import arrays, close  # first: it sets flags of XLA
from torch import nn

from migrate.support.flax.batchnorm import BatchNorm1d
from migrate.support.flax.containers import ModuleDict, Sequential
from migrate.support.flax.conv import Conv1d
from migrate.support.flax.state import Buffer
from migrate.weights.load import load_state_dict
from migrate.weights.loaded import Loaded

R = nnx.Rngs(0)


class Theirs(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(4, 4)))
        self.blocks = nn.ModuleList([nn.ModuleDict({"norm": nn.LayerNorm(4), "skip": nn.Identity()}) for _ in range(11)])
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("steps", torch.tensor([3, 4]))
        self.register_buffer("table", torch.ones(2), persistent=False)

    def forward(self, x):
        x = self.stem(x)
        for i, b in enumerate(self.blocks):
            x = b["norm"](x) * (i + 1)
        return x * self.scale


class Ours(nnx.Module):
    def __init__(self, *, rngs):
        self.stem = nnx.Sequential(Conv1d(2, 3, 2, rngs=rngs), BatchNorm1d(3, rngs=rngs), Sequential(nnx.Linear(4, 4, rngs=rngs)))
        self.blocks = nnx.List([
            ModuleDict({"norm": nnx.LayerNorm(4, epsilon=1e-5, rngs=rngs), "skip": lambda x: x}) for _ in range(11)
        ])
        self.scale = nnx.Param(jnp.array(0.0))
        self.steps = Buffer(jnp.array([0, 0]))
        self.table = Buffer(jnp.zeros(2), persistent=False)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.rngs = rngs.fork()

    def __call__(self, x):
        x = self.stem(x)
        for i, b in enumerate(self.blocks):
            x = b["norm"](x) * (i + 1)
        return x * self.scale


def shaken(model):
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.add_(torch.linspace(-0.3, 0.4, p.numel()).reshape(p.shape) * (i % 3 + 1))
    return model.eval()


def test_whole_model():
    theirs, ours = shaken(Theirs()), Ours(rngs=R)
    ours.eval()
    state = theirs.state_dict()
    loaded = load_state_dict(ours, state)
    assert loaded == Loaded(tuple(state), (), ()) and loaded.complete
    x = torch.randn(2, 2, 5)
    close(theirs(x), ours(arrays(x)))
    assert ours.steps[...].tolist() == [3, 4] and ours.table[...].tolist() == [0, 0]


def test_numpy_arrays_load_as_tensors_do():
    state = {k: v.numpy() for k, v in shaken(Theirs()).state_dict().items()}
    ours = Ours(rngs=R)
    assert load_state_dict(ours, state).complete
    close(torch.from_numpy(state["stem.0.weight"]), ours.stem.layers[0].kernel[...].transpose(2, 1, 0))


def test_missing_and_unexpected():
    state = dict(shaken(Theirs()).state_dict())
    del state["stem.0.bias"], state["blocks.10.norm.weight"], state["steps"]
    state |= {"stem.7.weight": torch.ones(1), "stem.2.0.bias2": torch.ones(1), "stem.1.num_batches_tracked_": torch.ones(1)}
    loaded = load_state_dict(Ours(rngs=R), state)
    assert set(loaded.missing) == {"stem.0.bias", "blocks.10.norm.weight", "steps"}
    assert loaded.unexpected == ("stem.7.weight", "stem.2.0.bias2", "stem.1.num_batches_tracked_")
    assert "stem.1.num_batches_tracked" in loaded.loaded and not loaded.complete


def test_wrong_shape_names_the_leaf():
    state = dict(Theirs().state_dict())
    state["stem.2.0.weight"] = torch.ones(4, 5)
    with pytest.raises(ValueError, match=r"`stem\.2\.0\.weight` of the state dict has shape \(4, 5\), in this model's layout \(5, 4\), but .*kernel` .* \(4, 4\)"):
        load_state_dict(Ours(rngs=R), state)


def test_parameter_of_one_element_without_dimensions():
    state = dict(Theirs().state_dict()) | {"scale": torch.tensor([5.0])}
    ours = Ours(rngs=R)
    load_state_dict(ours, state)
    assert ours.scale[...].shape == () and ours.scale[...] == 5


def test_dtypes():
    layer = nnx.Linear(2, 2, rngs=R)
    state = {"weight": torch.tensor([[1.0, 2], [3, 4.01]], dtype=torch.bfloat16), "bias": torch.ones(2, dtype=torch.float64)}
    assert load_state_dict(layer, state).complete
    assert layer.kernel[...].dtype == jnp.float32 and layer.bias[...].dtype == jnp.float32
    close(state["weight"].float(), layer.kernel[...].T)
    load_state_dict(layer, state, keep_dtype=False)
    assert layer.kernel[...].dtype == jnp.bfloat16
    close(state["weight"].float(), layer.kernel[...].T.astype(jnp.float32))
    half = nnx.Linear(2, 2, param_dtype=jnp.bfloat16, rngs=R)
    load_state_dict(half, state)
    assert half.bias[...].dtype == jnp.bfloat16


class Holder(nnx.Module):
    def __init__(self, value):
        self.b = Buffer(value)


def test_integers_that_do_not_fit():
    with pytest.raises(ValueError, match="do not fit into int32"):
        load_state_dict(Holder(jnp.array([1])), {"b": torch.tensor([2**40])})
    held = Holder(jnp.array([True]))
    load_state_dict(held, {"b": torch.tensor([False])})
    assert held.b[...].dtype == bool and not held.b[...].any()


class Tied(nnx.Module):
    def __init__(self, *, rngs):
        self.a, self.b = nnx.Linear(3, 3, rngs=rngs), nnx.Linear(3, 3, rngs=rngs)
        self.b.kernel = self.a.kernel


def test_tied_parameters():
    model = Tied(rngs=R)
    weight, bias = torch.arange(9.0).reshape(3, 3), torch.zeros(3)
    names = {"a.weight": weight, "a.bias": bias, "b.weight": weight, "b.bias": bias}
    for left_out in ({}, {"a.weight"}, {"b.weight"}):
        loaded = load_state_dict(model, {k: v for k, v in names.items() if k not in left_out})
        assert loaded.complete
        close(weight, model.b.kernel[...].T)
        assert model.a.kernel is model.b.kernel
    with pytest.raises(ValueError, match=r"one leaf, but `a.weight` and `b.weight` of the state dict differ"):
        load_state_dict(model, names | {"b.weight": weight + 1})


class Renamed(nnx.Module):
    torch_names = {"layers_": "layers", "out.weight": "proj.weight", "gain": "g"}

    def __init__(self, *, rngs):
        self.layers_ = nnx.List([nnx.Linear(2, 2, use_bias=False, rngs=rngs)])
        self.out = nnx.Linear(2, 2, use_bias=False, rngs=rngs)
        self.gain = nnx.Param(jnp.ones(()))


def test_renamed():
    model = nnx.Sequential(Renamed(rngs=R))
    state = {"0.layers.0.weight": torch.ones(2, 2), "0.proj.weight": torch.full((2, 2), 2.0), "0.g": torch.tensor(3.0)}
    assert load_state_dict(model, state) == Loaded(tuple(state), (), ())
    inner = model.layers[0]
    assert (inner.layers_[0].kernel[...] == 1).all() and (inner.out.kernel[...] == 2).all() and inner.gain[...] == 3
    assert load_state_dict(model, {}).missing == ("0.layers_.0.weight", "0.out.weight", "0.gain")


def test_instance_says_which_names_are_the_same():
    model = nnx.Linear(2, 2, use_bias=False, rngs=R)
    model.torch_names = {"weight": "other.weight"}
    assert load_state_dict(model, {"other.weight": torch.ones(2, 2)}).complete


class Child(nnx.Module):
    def __init__(self, parent):
        self.parent, self.w = parent, nnx.Param(jnp.zeros(1))


class Parent(nnx.Module):
    def __init__(self):
        self.v = nnx.Param(jnp.zeros(1))
        self.child = Child(self)


def test_a_child_may_know_its_parent():
    model = Parent()
    assert load_state_dict(model, {"v": torch.ones(1), "child.w": torch.ones(1)}).complete


class Plain(nnx.Module):
    def __init__(self):
        self.pairs = nnx.data([nnx.Param(jnp.zeros(1)), {"x": nnx.Param(jnp.zeros(1))}])
        self.constant = jnp.ones(3)
        self.count = nnx.Variable(jnp.array(0))
        self.seen = nnx.Cache(jnp.zeros(2))


def test_plain_containers_and_variables():
    state = {"pairs.0": torch.ones(1), "pairs.1.x": torch.ones(1), "count": torch.tensor(5)}
    model = Plain()
    assert load_state_dict(model, state).complete
    assert model.count[...] == 5 and not model.seen[...].any()


def test_loading_after_a_step_under_jit():
    torch.manual_seed(0)
    theirs, ours = shaken(Theirs()), Ours(rngs=R)
    nnx.jit(lambda m, x: m(x))(ours, jnp.ones((2, 2, 5)))
    assert load_state_dict(ours, theirs.state_dict()).complete
    merged = nnx.merge(*nnx.split(ours))
    merged.eval()
    x = torch.randn(2, 2, 5)
    close(theirs(x), merged(arrays(x)))


def test_a_value_that_does_not_fit_changes_nothing():
    ours = nnx.Linear(2, 2, rngs=R)
    before = ours.kernel[...]
    with pytest.raises(ValueError, match="shape"):
        load_state_dict(ours, {"weight": torch.ones(2, 2), "bias": torch.ones(3)})
    assert jnp.array_equal(before, ours.kernel[...])
    assert isinstance(ours.kernel, nnx.Param) and isinstance(jax.tree.leaves(nnx.state(ours))[0], jax.Array)


class Shared(nnx.Module):
    """One variable in two layers that keep it in different layouts."""

    def __init__(self, *, rngs):
        self.a = nnx.Linear(3, 3, use_bias=False, rngs=rngs)
        self.b = nnx.Embed(3, 3, rngs=rngs)
        self.b.embedding = self.a.kernel
        self.a.weight = self.a.kernel


def test_layers_of_different_layouts_share_a_variable() -> None:
    model, weight = Shared(rngs=R), torch.arange(9.0).reshape(3, 3)
    load_state_dict(model, {"a.weight": weight})
    assert (model.a.kernel[...] == weight.T.numpy()).all()
    load_state_dict(model, {"b.weight": weight})
    assert (model.a.kernel[...] == weight.numpy()).all()
    load_state_dict(model, {"a.weight": weight, "b.weight": weight.T})
    with pytest.raises(ValueError, match="one leaf"):
        load_state_dict(model, {"a.weight": weight, "b.weight": weight})
