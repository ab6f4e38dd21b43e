"""PyTorch state dicts into live Keras models: support layers, layers of Keras, layers not built yet, tied and renamed leaves."""
import importlib.util
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax.numpy as jnp
import keras
import numpy as np
import pytest
import torch
from torch import nn

import migrate
from migrate.support.keras.containers import ModuleList, Sequential
from migrate.support.keras.linear import Embedding, Linear
from migrate.support.keras.module import Buffer, Module, Parameter
from migrate.support.keras.norms import BatchNorm1d
from migrate.weights.load import load_state_dict


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


class Wrapped(Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def call(self, x):
        return self.layer(x)


def first(**options):
    return {"data_format": "channels_first", **options}


NATIVE = [
    (nn.Linear(4, 3), lambda: keras.layers.Dense(3), (2, 4)),
    (nn.Linear(4, 3, bias=False), lambda: keras.layers.Dense(3, use_bias=False), (2, 5, 4)),
    (nn.Conv1d(4, 6, 3, groups=2), lambda: keras.layers.Conv1D(6, 3, groups=2, **first()), (2, 4, 9)),
    (nn.Conv2d(4, 6, (3, 2), 2), lambda: keras.layers.Conv2D(6, (3, 2), 2, **first()), (2, 4, 9, 8)),
    (nn.Conv3d(2, 3, 2), lambda: keras.layers.Conv3D(3, 2, **first()), (2, 2, 4, 5, 6)),
    (nn.ConvTranspose2d(4, 6, 3, 2), lambda: keras.layers.Conv2DTranspose(6, 3, 2, **first()), (2, 4, 5, 6)),
    (nn.Embedding(7, 4), lambda: keras.layers.Embedding(7, 4), None),
    (nn.LayerNorm(4), lambda: keras.layers.LayerNormalization(epsilon=1e-5), (2, 4)),
    (nn.GroupNorm(2, 4), lambda: keras.layers.GroupNormalization(2, axis=1, epsilon=1e-5), (2, 4, 5)),
    (nn.BatchNorm2d(4), lambda: keras.layers.BatchNormalization(axis=1, epsilon=1e-5), (2, 4, 5, 6)),
    (nn.PReLU(4), lambda: keras.layers.PReLU(), (2, 4)),
]
NEEDS_A_CALL = (keras.layers.BatchNormalization, keras.layers.GroupNormalization, keras.layers.PReLU)


@pytest.mark.parametrize("called_first", [True, False])
@pytest.mark.parametrize("theirs, make, shape", NATIVE, ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "")
def test_layers_of_keras(theirs, make, shape, called_first):
    with torch.no_grad():
        for k, v in theirs.state_dict().items():
            v.add_(torch.rand(v.shape) if v.is_floating_point() else 0)
    x = torch.tensor([[1, 5, 0]]) if shape is None else randn(*shape)
    ours = Wrapped(make())
    if called_first:
        ours(jnp.asarray(x.numpy()))
    state = {f"layer.{k}": v for k, v in theirs.state_dict().items()}
    if not called_first and isinstance(ours.layer, NEEDS_A_CALL):
        with pytest.raises(ValueError, match="call the model once"):
            load_state_dict(ours, state)
        return
    loaded = load_state_dict(ours, state)
    assert loaded.complete and loaded.loaded == tuple(state)
    with torch.no_grad():
        np.testing.assert_allclose(ours(jnp.asarray(x.numpy())), theirs.eval()(x), rtol=1e-5, atol=1e-5)


class Model(Module):
    torch_names = {"renamed.weight": "ours.weight", "head.weight": "table.weight"}

    def __init__(self):
        super().__init__()
        self.ours = Linear(3, 4, bias=False)
        self.table = Embedding(5, 4)
        self.head = Linear(4, 5, bias=False)
        self.head.weight = self.table.weight
        self.rows = ModuleList([Sequential(Linear(4, 4), jnp.tanh, BatchNorm1d(4))])
        self.plain = [Linear(2, 2, bias=False)]
        self.named = {"a": Linear(2, 2, bias=False)}
        self.scale = Parameter(jnp.ones(()))
        self.mask = Buffer(jnp.zeros(3, bool))
        self.scratch = Buffer(jnp.zeros(3), persistent=False)
        self.note = "text"


def state():
    bn = {f"rows.0.2.{k}": v for k, v in nn.BatchNorm1d(4).state_dict().items()}
    return {
        "renamed.weight": randn(4, 3), "table.weight": randn(5, 4), "head.weight": randn(5, 4), "rows.0.0.weight": randn(4, 4),
        "rows.0.0.bias": randn(4), **bn, "plain.0.weight": randn(2, 2), "named.a.weight": randn(2, 2), "scale": randn(1),
        "mask": torch.tensor([True, False, True]),
    }


def test_a_model():
    model, given = Model(), state()
    loaded = load_state_dict(model, given)
    assert loaded.complete and loaded.loaded == tuple(given)
    np.testing.assert_array_equal(model.ours.weight.value, given["renamed.weight"])
    np.testing.assert_array_equal(model.head.weight.value, given["table.weight"])
    np.testing.assert_array_equal(model.rows[0][0].weight.value, given["rows.0.0.weight"])
    np.testing.assert_array_equal(model.mask.value, given["mask"])
    assert float(model.scale.value) == float(given["scale"][0]) and model.mask.value.dtype == bool


def test_names_without_a_place_and_leaves_without_a_tensor():
    given = state()
    del given["mask"], given["rows.0.0.bias"], given["table.weight"]  # the table is still known as head.weight
    given["other.weight"] = randn(2)
    loaded = load_state_dict(Model(), given)
    assert loaded.missing == ("rows.0.0.bias", "mask") and loaded.unexpected == ("other.weight",)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match=r"`rows.0.0.weight` .*\(4, 5\)"):
        load_state_dict(Model(), {**state(), "rows.0.0.weight": randn(4, 5)})
    with pytest.raises(ValueError, match="one leaf"):
        load_state_dict(Model(), {**state(), "head.weight": randn(5, 4) + 1})
    with pytest.raises(ValueError, match="dtype"):
        load_state_dict(Model(), state(), keep_dtype=False)


def test_a_compiled_and_trained_model():
    theirs = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    ours = Sequential(Linear(3, 4), keras.activations.relu, Linear(4, 1))
    ours.compile("adam", "mse", metrics=["mae"])
    ours.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    assert load_state_dict(ours, theirs.state_dict()).complete
    np.testing.assert_allclose(ours(jnp.ones((2, 3))), theirs(torch.ones(2, 3)).detach(), rtol=1e-5)


def test_a_sequential_of_keras():
    theirs = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    ours = keras.Sequential([keras.layers.Dense(4), keras.layers.Activation("sigmoid"), keras.layers.Dense(1)])
    assert load_state_dict(ours, theirs.state_dict()).complete
    np.testing.assert_allclose(ours(jnp.ones((2, 3))), theirs(torch.ones(2, 3)).detach(), rtol=1e-5)


def test_renamed_modules_inside_one_another(tmp_path):
    """`layers` is a name of Keras': a module that has it, in a module that has it."""
    text = (
        "import torch.nn as nn\n\n\nclass Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = nn.ModuleList([nn.Linear(2, 2)])\n\n"
        "    def forward(self, x):\n        for f in self.layers:\n            x = f(x)\n        return x\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = nn.ModuleList([Inner(), Inner()])\n\n"
        "    def forward(self, x):\n        for f in self.layers:\n            x = f(x)\n        return x\n"
    )
    (tmp_path / "theirs.py").write_text(text)
    migrate.convert_path(tmp_path / "theirs.py", tmp_path / "out", target="keras")
    sys.modules.pop("torch_support", None)
    sys.path.insert(0, str(tmp_path / "out"))
    try:
        models = []
        for path in (tmp_path / "theirs.py", tmp_path / "out" / "theirs.py"):
            spec = importlib.util.spec_from_file_location("theirs", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            models.append(module.Net())
    finally:
        sys.path.remove(str(tmp_path / "out"))
        sys.modules.pop("torch_support", None)
    theirs, ours = models
    found = load_state_dict(ours, theirs.state_dict())
    assert not found.missing and not found.unexpected
    x = torch.randn(3, 2)
    np.testing.assert_allclose(ours(jnp.asarray(x.numpy())), theirs(x).detach(), rtol=1e-5, atol=1e-6)
