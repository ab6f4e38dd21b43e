"""The base of Keras modules: modes, variables, containers, copies, walks, Keras' own ways of training and saving."""
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import copy
import functools
from collections import OrderedDict, defaultdict, namedtuple

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

from migrate.support.keras import walk
from migrate.support.keras.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from migrate.support.keras.conv import Conv2d
from migrate.support.keras.dropout import Dropout
from migrate.support.keras.linear import Embedding, Linear
from migrate.support.keras.module import Buffer, Module, Parameter
from migrate.support.keras.norms import BatchNorm1d
from migrate.support.keras.recurrent import LSTM
from migrate.support.keras.starting import reset_parameters

X = jnp.arange(12.0).reshape(4, 3) / 10


class Probe(Module):
    """Notes the modes it is called in."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def call(self, x):
        self.seen.append(self.training)
        return x


class Net(Module):
    def __init__(self, native=False):
        super().__init__()
        self.first = Linear(3, 4)
        self.bn = BatchNorm1d(4)
        self.act = keras.activations.relu
        self.blocks = ModuleList([Sequential(Linear(4, 4), keras.activations.tanh) for _ in range(2)])
        self.drop = keras.layers.Dropout(0.5) if native else Dropout(0.5)
        self.scale = Parameter(jnp.ones(4))
        self.mask = Buffer(jnp.ones(4), persistent=False)
        self.probe = Probe()
        self.head = Linear(4, 1)

    def call(self, x, flag=None, size=(1, 2)):
        x = self.act(self.bn(self.first(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.probe(self.drop(x * self.scale.value * self.mask.value)))


def test_modes():
    net = Net()
    net(X)
    net(X, training=True)
    net(X, training=False)
    assert not net.training
    net.train()
    net(X)
    net(X, training=False)
    assert net.training and net.bn.training
    net.eval()
    net(X)
    assert net.probe.seen == [False, True, False, True, False, False]
    net.train()
    net.bn.eval()  # a frozen part stays as it is
    before = net.bn.running_mean.value
    net(X)
    net(X, training=True)
    assert (net.bn.running_mean.value == before).all() and net.probe.seen[-2:] == [True, True]


def test_an_overridden_train_decides():
    class Frozen(Net):
        def train(self, mode=True):
            super().train(mode)
            self.bn.eval()
            return self

    net = Frozen()
    before = net.bn.running_mean.value
    net(X, training=True)
    assert net.probe.seen == [True] and (net.bn.running_mean.value == before).all()
    net.train()
    net(X)
    assert net.probe.seen == [True, True] and (net.bn.running_mean.value == before).all()


def test_an_error_leaves_the_mode():
    net = Net()
    with pytest.raises(TypeError):
        net(X, training=True, unknown=1)
    net(X)
    assert net.probe.seen == [False] and not net.bn.training


@pytest.mark.parametrize("native", [False, True])
def test_layers_of_keras_follow(native):
    net = Net(native)
    assert (net(X) == net(X)).all()
    assert (net(X, training=True) != net(X, training=True)).any()
    outer = keras.Sequential([net])
    assert (outer(X) == net(X)).all()
    assert (outer(X, training=True) != outer(X, training=True)).any()


def test_any_arguments():
    Pair = namedtuple("Pair", "a b")

    class Any_(Module):
        def call(self, x, n, options, training=False):
            return Pair(x, {"n": n, "options": options, "training": training})

    got = Any_()(None, (1, "two"), {"three": [X, 3, None]})
    assert got.a is None and got.b["n"] == (1, "two") and got.b["options"]["three"][1] == 3 and got.b["training"] is False
    assert Any_()(X, 1, options=True, training=True).b["training"] is True
    assert Any_()(X, 1, True, True).b["training"] is True
    assert Net()(X, None, (3, 4)).shape == (4, 1)


def test_variables():
    net = Net()
    assert len(net.trainable_variables) == 2 + 2 + 4 + 1 + 2
    assert net.scale.trainable and not net.mask.trainable and isinstance(net.scale, Parameter)
    net.head = Linear(4, 2)  # what is replaced is no longer counted
    net.scale = Parameter(jnp.zeros(4))
    assert len(net.trainable_variables) == 11 and net(X).shape == (4, 2)
    net.shared = net.head
    net.head = Linear(4, 3)
    assert len(net.trainable_variables) == 13
    net.head.weight = net.shared.weight
    assert len({id(v) for v in net.trainable_variables}) == 12
    del net.shared, net.scale
    assert len(net.trainable_variables) == 10
    frozen = Parameter(jnp.ones(2), requires_grad=False)
    assert not frozen.trainable


def test_a_special_mapping_is_kept():
    net = Net()
    net.counts = defaultdict(list)
    net.counts["a"].append(1)
    assert net.counts == {"a": [1]}


@pytest.mark.parametrize("native", [False, True])
def test_fit_and_predict(native):
    keras.utils.set_random_seed(0)
    net = Net(native)
    mean, weight = net.bn.running_mean.numpy(), net.first.weight.numpy()  # `fit` gives the arrays away
    net.compile("sgd", "mse")
    net.fit(np.asarray(X), np.ones((4, 1)), batch_size=2, verbose=0)
    assert (net.bn.running_mean.value != mean).all() and (net.first.weight.value != weight).any()
    assert int(net.bn.num_batches_tracked.value) == 2
    assert True in net.probe.seen and not net.training
    counted = int(net.bn.num_batches_tracked.value)
    np.testing.assert_allclose(net.predict(np.asarray(X), verbose=0), net(X), rtol=1e-5, atol=1e-7)  # a step of float32 in terms near 1, which cancel
    net.evaluate(np.asarray(X), np.ones((4, 1)), verbose=0)
    assert int(net.bn.num_batches_tracked.value) == counted
    np.testing.assert_allclose(copy.deepcopy(net)(X), net(X))


def test_save_and_load_weights(tmp_path):
    net, other = Net(), Net()
    net(X, training=True)
    net.save_weights(tmp_path / "net.weights.h5")
    other.load_weights(tmp_path / "net.weights.h5")
    np.testing.assert_array_equal(other(X), net(X))


class Sized(Module):
    def __init__(self, width=3, bias=True):
        super().__init__()
        self.inner = Sequential(Linear(3, width, bias), keras.activations.tanh)

    def call(self, x):
        return self.inner(x)


def test_save_the_whole_model(tmp_path):
    net = Sized(5, bias=False)
    net.save(tmp_path / "net.keras")
    other = keras.saving.load_model(tmp_path / "net.keras", custom_objects={"Sized": Sized})
    np.testing.assert_array_equal(other(X), net(X))


def test_decorated_constructors():
    def checked(function):
        return lambda *args, **kwargs: function(*args, **kwargs)

    def wrapped(function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            return function(self, *args, **kwargs)

        return call

    def build(decorator):
        class Decorated(Module):
            @decorator
            def __init__(self, width, *, depth=2):
                super().__init__()
                self.layers_ = ModuleList([Linear(width, width) for _ in range(depth)])

        return Decorated(3, depth=1)

    assert len(build(checked).layers_) == len(build(wrapped).layers_) == 1
    assert build(wrapped).get_config().items() >= {"width": 3, "depth": 1}.items()


def test_jit_and_gradients():
    net = Net()
    state = [v.value for v in net.non_trainable_variables]

    @jax.jit
    def step(values, state):
        def loss(values):
            out, new = net.stateless_call(values, state, X, training=True)
            return (out**2).mean(), new
        return jax.grad(loss, has_aux=True)(values)

    grads, new = step([v.value for v in net.trainable_variables], state)
    assert any((g != 0).any() for g in grads)
    changed = [v for v, a, b in zip(net.non_trainable_variables, state, new, strict=True) if (a != b).any()]
    assert {id(net.bn.running_mean), id(net.bn.running_var), id(net.bn.num_batches_tracked)} <= {id(v) for v in changed}
    np.testing.assert_allclose(jax.jit(net)(X), net(X), rtol=1e-6)


def test_the_functional_api():
    net = Net()
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(net(inputs)))
    assert model(X).shape == (4, 2)
    net.probe.seen.clear()
    model(X, training=True)
    assert net.probe.seen == [True]


@pytest.mark.parametrize("native", [False, True])
def test_copies(native):
    net = Net(native)
    twin = copy.deepcopy(net)
    np.testing.assert_array_equal(twin(X), net(X))
    assert len(twin.trainable_variables) == len(net.trainable_variables)
    assert not {id(v) for v in twin.variables} & {id(v) for v in net.variables}
    twin.scale.assign(jnp.zeros(4))
    assert (net.scale.value == 1).all()
    assert (twin(X, training=True) != net(X, training=True)).any()
    net.head.weight = net.scale  # tied weights stay tied in the copy
    twin = copy.deepcopy(net)
    assert twin.head.weight is twin.scale


# --- containers ---

def test_sequential():
    net = Sequential(Linear(3, 4), jnp.tanh, Linear(4, 2))
    assert len(net) == 3 and net[1] is jnp.tanh and net[-1].out_features == 2 and [*net][0] is net[0] and len(net[:2]) == 2
    net.append(Linear(2, 5)).extend([jnp.sin])
    assert net(X).shape == (4, 5) and len(net.trainable_variables) == 6
    net[0] = Linear(3, 4, bias=False)
    assert len(net.trainable_variables) == 5
    del net[3]
    net.insert(0, Linear(3, 3))
    assert net.pop(-1) is jnp.sin and net(X).shape == (4, 2) and len(net.trainable_variables) == 5
    assert len(net + net) == 8


def test_sequential_hands_on_tuples():
    assert Sequential(lambda x: (x, 2 * x), lambda pair: pair[0] + pair[1])(X).shape == X.shape


def test_named_sequential():
    net = Sequential(OrderedDict(lin=Linear(3, 4), act=jnp.tanh))
    assert net.lin.out_features == 4 and net.act is jnp.tanh and net(X).shape == (4, 4)
    with pytest.raises(AttributeError):
        net.other  # noqa: B018

    class Dense(Sequential):
        def __init__(self):
            super().__init__()
            self.add_module("norm", BatchNorm1d(3))
            self.lin = Linear(3, 5)

    assert Dense()(X).shape == (4, 5) and len(Dense().trainable_variables) == 4


def test_module_list():
    items = ModuleList([Linear(1, 2) for _ in range(3)])
    items.append(Linear(1, 1))
    items += [Linear(1, 1)]
    items.insert(0, Linear(2, 2))
    assert len(items) == 6 and len(items[1:3]) == 2 and items[0] in items and len(items.trainable_variables) == 12
    items[0] = Linear(1, 1, bias=False)
    del items[1]
    assert items.pop() is not None and len(items.trainable_variables) == 7 and len(items + items) == 8


def test_module_dict():
    named = ModuleDict({"a": Linear(1, 1)})
    named["b"] = Linear(1, 1)
    named["b"] = Linear(1, 1, bias=False)
    named.update({"items": Linear(1, 1)})
    assert [*named] == ["a", "b", "items"] and "a" in named and len(named.trainable_variables) == 5 and named.a is named["a"]
    del named["a"]
    assert named.pop("b") is not None and [*named.keys()] == ["items"] and named.get("b") is None
    named.clear()
    assert not named.trainable_variables


def test_parameter_containers():
    items = ParameterList([jnp.ones(3), Parameter(jnp.ones(2))])
    items.append(jnp.ones(1))
    items[0] = jnp.zeros(3)
    assert [len(p.value) for p in items] == [3, 2, 1] and len(items.trainable_variables) == 3
    named = ParameterDict({"w": jnp.ones(2)})
    named["b"] = jnp.ones(3)
    named.update({"c": jnp.ones(1)})
    assert isinstance(named.w, Parameter) and len(named.trainable_variables) == 3


# --- walks ---

def test_walks():
    net = Net()
    assert [name for name, _ in walk.named_children(net)] == ["first", "bn", "blocks", "drop", "probe", "head"]
    names = [name for name, _ in walk.named_modules(net)]
    assert names[:6] == ["", "first", "bn", "blocks", "blocks.0", "blocks.0.0"]
    assert [name for name, _ in walk.named_parameters(net)] == [
        "scale", "first.weight", "first.bias", "bn.weight", "bn.bias", "blocks.0.0.weight", "blocks.0.0.bias", "blocks.1.0.weight",
        "blocks.1.0.bias", "head.weight", "head.bias",
    ]
    assert [name for name, _ in walk.named_buffers(net)] == ["mask", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    assert walk.get_submodule(net, "blocks.1.0") is net.blocks[1][0] and walk.get_parameter(net, "bn.bias") is net.bn.bias
    net.again = net.head
    net.head.weight = net.first.weight
    assert len([*walk.parameters(net)]) == 10 and len([*walk.modules(net)]) == len(names) and len([*walk.children(net)]) == 6
    seen = []
    walk.apply(net, lambda m: seen.append(type(m).__name__))
    assert seen[-1] == "Net" and seen[0] == "Linear" and len(seen) == len(names)


def test_layers_start_anew():
    keras.utils.set_random_seed(0)
    layers = Linear(400, 30), Conv2d(3, 5, 7, padding=1), LSTM(3, 100), Embedding(300, 4), BatchNorm1d(4)
    for layer in layers:
        before = {name: np.asarray(v) for name, v in walk.named_parameters(layer)}
        for v in walk.parameters(layer):
            v.assign(v + 7)
        reset_parameters(layer)
        for name, v in walk.named_parameters(layer):
            assert abs(np.std(v) - np.std(before[name])) < 0.2 * np.std(before[name]) + 1e-6
            assert abs(np.mean(v) - np.mean(before[name])) < 0.3
