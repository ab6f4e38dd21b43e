"""The parts of the checker: inputs, nested values, arrays on disk, tolerance, shared draws, precision, limits."""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrate
from migrate.check import checkpoint, leaves, oracle, spec
from migrate.check.child import ChildError, Limits, run
from migrate.check.compare import FACTOR, difference, unit
from migrate.check.draws import Draws
from migrate.check.jax_draws import shared
from migrate.check.load import UserError, evaluate
from migrate.check.perturb import perturb
from migrate.check.store import Reader, Writer
from migrate.check.torch_gradients import gradients, unseen
from migrate.check.torch_mode import mode
from migrate.check.torch_sides import Sides

# --- inputs ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[2,3]", spec.Spec("", "float32", (2, 3))),
        (" i64[2, 12](0, 50) ", spec.Spec("", "int64", (2, 12), 0.0, 50.0)),
        ("mask=bool[2,5]", spec.Spec("mask", "bool", (2, 5))),
        ("f32[]", spec.Spec("", "float32", ())),
        ("bf16[4]", spec.Spec("", "bfloat16", (4,))),
        ("3", spec.Spec(value=3)),
        ("mode='max'", spec.Spec("mode", value="max")),
        ("size=(2, 3)", spec.Spec("size", value=(2, 3))),
        ("None", spec.Spec(value=None)),
    ],
)
def test_inputs_are_read(text, expected):
    assert spec.parse(text) == expected


@pytest.mark.parametrize("text", ["f31[2]", "f32[2", "f32[a]", "i64[2](5,5)", "f32[2](x,y)", "tensor(2,3)", "", "f32(2,3)"])
def test_bad_inputs_are_refused(text):
    with pytest.raises(spec.SpecError, match=r".+"):
        spec.parse(text)


def test_values_follow_the_spec():
    ids = spec.array(spec.parse("i64[200](3,7)"), 0)
    assert ids.dtype == np.int64 and set(ids) == {3, 4, 5, 6}
    assert abs(spec.array(spec.parse("f32[1000]"), 0).std() - 1) < 0.1
    inside = spec.array(spec.parse("f32[1000](2,3)"), 0)
    assert inside.min() >= 2 and inside.max() < 3 and inside.dtype == np.float32
    assert spec.array(spec.parse("bool[100]"), 1).dtype == bool
    assert spec.array(spec.parse("c64[3]"), 1).dtype == np.complex64
    assert not np.array_equal(spec.array(spec.parse("f32[4]"), 0), spec.array(spec.parse("f32[4]"), 1))


# --- nested values ---


def test_nested_values_come_back():
    value = ({"a": np.arange(3), "b": [1, 2.5, None, "x", True]}, (np.ones(2), ()), float("inf"))
    kept = []

    def put(a):
        kept.append(a)
        return len(kept) - 1

    code = json.loads(json.dumps(leaves.encode(value, put)))
    back = leaves.decode(code, lambda i: kept[i])
    assert back[0]["b"] == value[0]["b"] and back[2] == float("inf") and isinstance(back[1], tuple)
    np.testing.assert_array_equal(back[0]["a"], np.arange(3))


def test_leaves_are_in_one_order_on_both_sides():
    def both(array):
        return {"z": array([1.0]), "a": [array([2.0]), 3], "n": None, "t": (True, "text")}

    ours = [p for p, _ in leaves.walk(both(lambda v: jnp.asarray(v)))]
    assert ours == [p for p, _ in leaves.walk(both(lambda v: torch.tensor(v)))] == ["['z']", "['a'][0]", "['a'][1]", "['t'][0]"]


def test_what_the_other_side_can_not_build_is_refused():
    with pytest.raises(leaves.Unportable, match="object"):
        leaves.encode([object()], lambda a: a)


# --- arrays on disk ---


def test_arrays_come_back_and_equal_ones_are_kept_once(tmp_path, monkeypatch):
    monkeypatch.setattr("migrate.check.store.FLUSH", 100)
    writer = Writer(tmp_path)
    arrays = [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(12),
        np.arange(12.0),
        np.array(True),
        np.array(1.5),
        np.zeros((0, 2)),
        np.array([1 + 2j], np.complex64),
    ]
    keys = [writer.add(a) for a in arrays]
    assert writer.add(arrays[0].copy()) == keys[0]
    assert writer.add(arrays[0].reshape(4, 3)) != keys[0]
    writer.flush()
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    reader = Reader(tmp_path, json.loads(json.dumps(writer.files)))
    for key, array in zip(keys[:-1], arrays, strict=False):
        np.testing.assert_array_equal(reader.get(key), array)
        assert reader.get(key).shape == array.shape
    np.testing.assert_array_equal(reader.get(keys[-1]), [[1.0, 2.0]])


def test_oracles_of_another_version_are_refused(tmp_path):
    with pytest.raises(oracle.OracleError, match="no oracle"):
        oracle.read(tmp_path)
    oracle.write(tmp_path, {"version": 99})
    with pytest.raises(oracle.OracleError, match="version"):
        oracle.read(tmp_path)
    (tmp_path / "oracle.json").write_text("{")
    with pytest.raises(oracle.OracleError, match="damaged"):
        oracle.read(tmp_path)


# --- tolerance ---


def test_an_error_is_measured_in_units_of_the_original():
    want = np.linspace(-2, 2, 50, dtype=np.float32)
    one = unit(1e-5, 2.0, "float32")
    assert one == 1e-5
    assert not difference(want + np.float32(FACTOR * 0.9e-5), want, "float32", 1e-5).reason
    assert difference(want + np.float32(FACTOR * 1.2e-5), want, "float32", 1e-5).reason
    assert difference(want + np.float32(1e-5), want, "float32", 0.0).reason, "no error of its own: two roundings are the unit"
    assert not difference(want + np.float32(1e-6), want, "float32", 0.0).reason


@pytest.mark.parametrize(
    ("got", "want", "dtype"),
    [
        ([1, 2], [1, 3], "int64"),
        ([True], [False], "bool"),
        ([np.nan, 1], [0.0, 1], "float32"),
        ([0.0, 1], [np.nan, 1], "float32"),
        ([np.inf], [-np.inf], "float32"),
        ([1.0], [np.inf], "float32"),
        ([1.0], [1], "int64"),
        ([0.1], [0.0], "float32"),
    ],
)
def test_what_differs(got, want, dtype):
    assert difference(np.array(got), np.array(want), dtype, 1e-7).reason


@pytest.mark.parametrize(
    ("got", "want", "dtype"),
    [
        ([1, 2], [1, 2], "int64"),
        ([np.nan, 1], [np.nan, 1], "float32"),
        ([np.inf, -np.inf], [np.inf, -np.inf], "float32"),
        ([], [], "float32"),
        ([0.0], [-0.0], "float32"),
    ],
)
def test_what_does_not(got, want, dtype):
    assert not difference(np.array(got), np.array(want), dtype, 0.0).reason


def test_integers_that_pytorch_itself_is_undecided_about_are_excused():
    assert not difference(np.array([1, 5]), np.array([1, 2]), "int64", 0.0, np.array([False, True])).reason
    assert difference(np.array([0, 5]), np.array([1, 2]), "int64", 0.0, np.array([False, True])).reason


# --- shared draws ---


def test_both_sides_draw_the_same_numbers():
    def theirs():
        x = torch.zeros(3, 4)
        return [
            torch.rand(3, 4),
            torch.randn_like(x),
            torch.nn.functional.dropout(torch.ones(3, 4), 0.25),
            torch.bernoulli(torch.full((3, 4), 0.3)),
            torch.randint(2, 9, (3, 4)),
            torch.empty(3, 4).normal_(1.0, 2.0),
            torch.empty(3, 4).uniform_(-1, 1),
            torch.randperm(5),
            torch.rand(()),
        ]

    def ours():
        key = jax.random.key(0)
        return [
            jax.random.uniform(key, (3, 4)),
            jax.random.normal(key, (3, 4)),
            jax.random.bernoulli(key, 0.75, (3, 4)) / 0.75,
            jax.random.bernoulli(key, jnp.full((3, 4), 0.3)),
            jax.random.randint(key, (3, 4), 2, 9),
            1.0 + 2.0 * jax.random.normal(key, (3, 4)),
            jax.random.uniform(key, (3, 4), minval=-1, maxval=1),
            jax.random.permutation(key, 5),
            jax.random.uniform(key),
        ]

    a, b = Draws(), Draws()
    with mode(a, double=False):
        want = theirs()
    with shared(b):
        got = ours()
    assert a.log == b.log and len(a.log) == 9
    for x, y in zip(want, got, strict=True):
        np.testing.assert_allclose(np.asarray(y, np.float64), x.double().numpy(), rtol=1e-6, atol=1e-6)


def test_jax_draws_as_before_afterwards():
    key = jax.random.key(0)
    before = jax.random.uniform(key, (3,))
    with shared(Draws()):
        assert not np.array_equal(jax.random.uniform(key, (3,)), before)
    np.testing.assert_array_equal(jax.random.uniform(key, (3,)), before)


# --- float64 and perturbation ---


class Stubborn(torch.nn.Module):
    """Insists on float32 in several ways."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.plain = torch.ones(4) / 3
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        table = torch.arange(4, dtype=torch.float32) / 7
        y = self.fc(x.float()) * self.plain + table.to(torch.float32) + torch.zeros(4) + torch.finfo(x.dtype).eps * 0
        return y.softmax(-1, dtype=torch.float32)


def test_the_reference_is_in_float64_even_where_code_asks_for_float32():
    model = Stubborn().eval()
    sides = Sides(model, Stubborn)
    x = torch.randn(3, 4)
    results, _ = sides.each(lambda m, v: m(*v), (x,))
    assert not sides.failed
    assert results["f64"].dtype == results["near"].dtype == torch.float64 and results["f32"].dtype == torch.float32
    gap = (results["f32"].double() - results["f64"]).abs().max()
    assert 0 < gap < 1e-6
    assert float(model.count) == 0, "state comes back after a run"
    assert torch.get_default_dtype() == torch.float32 and torch.finfo(torch.float64).eps < 1e-15


def test_perturbed_values_show_what_defaults_hide():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.LayerNorm(8)).eval()
    torch.nn.init.zeros_(model[0].weight)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    assert perturb(model, lambda: model(torch.randn(16, 4))) == ""
    after = model.state_dict()
    for name in ("0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var", "2.weight", "2.bias"):
        assert (after[name] - before[name]).abs().mean() > 1e-3, name
    assert after["1.running_var"].min() > 0


def test_a_model_that_breaks_when_perturbed_keeps_its_values():
    class Fragile(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(3))

        def forward(self, x):
            return torch.where(self.w == 0, x, torch.full_like(x, float("nan"))).sum()

    model = Fragile().eval()
    assert "initial" in perturb(model, lambda: model(torch.randn(3)))
    assert torch.equal(model.w, torch.zeros(3))


def test_parameters_without_effect_are_named(tmp_path):
    class Unused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.spare = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.used(x)

    found = gradients(Sides(Unused().eval(), Unused), ((torch.randn(2, 3),), {}), Writer(tmp_path))
    assert unseen(found) == ["spare.weight", "spare.bias"]


# --- expressions, checkpoints, processes ---


def test_every_callee_that_takes_rngs_gets_one():
    def inner(*, rngs):
        return rngs

    def outer(a, n, *, rngs):
        return a, n, rngs

    assert evaluate("outer(inner(), max(1, 2))", {"inner": inner, "outer": outer}, lambda: "r") == ("r", 2, "r")
    with pytest.raises(UserError, match="no Python expression"):
        evaluate("outer(", {})


def test_checkpoints(tmp_path):
    state = {"module.a": torch.ones(2), "module.b": torch.zeros(3, dtype=torch.bfloat16)}
    torch.save({"epoch": 3, "model": state, "optimizer": {"state": {}}}, tmp_path / "a.pt")
    found, place = checkpoint.read(tmp_path / "a.pt")
    assert list(found) == ["a", "b"] and place == "model"
    with pytest.raises(checkpoint.CheckpointError, match="no entry `ema`"):
        checkpoint.read(tmp_path / "a.pt", "ema")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "b.pt")
    with pytest.raises(checkpoint.CheckpointError, match="Linear.*execute"):
        checkpoint.read(tmp_path / "b.pt")
    (tmp_path / "c.pt").write_text("hello")
    with pytest.raises(checkpoint.CheckpointError, match="not a file"):
        checkpoint.read(tmp_path / "c.pt")
    (tmp_path / "d.safetensors").write_bytes(b"hello")
    with pytest.raises(checkpoint.CheckpointError, match="safetensors"):
        checkpoint.read(tmp_path / "d.safetensors")
    torch.save([1, 2], tmp_path / "e.pt")
    with pytest.raises(checkpoint.CheckpointError, match="no state dict"):
        checkpoint.read(tmp_path / "e.pt")


def test_shards(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.ones(2)}, tmp_path / "1.safetensors")
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}))
    with pytest.raises(checkpoint.CheckpointError, match="2.safetensors is missing"):
        checkpoint.read(tmp_path / "m.safetensors.index.json")
    save_file({"b": torch.ones(3)}, tmp_path / "2.safetensors")
    assert list(checkpoint.read(tmp_path / "m.safetensors.index.json")[0]) == ["a", "b"]


CHILDREN = {
    "sleeps": ("import time; time.sleep(60)", "longer than"),
    "dies": ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
    "ends": ("print('last words'); raise SystemExit(3)", "code 3: last words"),
    "eats": ("from migrate.check.child import limit_memory; limit_memory(); x = bytearray(4 << 30)", "MemoryError"),
    "asks": ("input()", "EOFError"),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_child_that_dies_is_a_message(name, tmp_path, monkeypatch):
    code, said = CHILDREN[name]
    (tmp_path / "child_for_test.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    start = time.monotonic()
    with pytest.raises(ChildError, match=said):
        run("child_for_test", {"out": str(tmp_path)}, Limits(3.0 if name == "sleeps" else 60.0, 2.0), {})
    assert time.monotonic() - start < 30
    assert sys.executable


def test_gradients_of_odd_strides_are_read_as_they_are():
    grad = torch.randn(1, 4, 5, 6).permute(0, 2, 3, 1).contiguous().as_strided((1, 6, 4, 5), (6, 1, 30, 6))
    found = []
    for g in (grad, grad.clone(memory_format=torch.contiguous_format)):
        x = torch.linspace(-1, 2, 120).reshape(1, 6, 4, 5).requires_grad_()
        with mode(Draws(), False):
            torch.nn.functional.batch_norm(x, torch.zeros(6), torch.ones(6)).backward(g)
        found.append(x.grad)
    assert torch.equal(*found)


def test_what_is_stored_on_the_way_runs_twice_under_jit():
    source = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        self.seen = x * 2\n        return self.seen\n"
    names = {}
    exec(migrate.convert_source(source).code, names)
    model, run = names["Net"](rngs=nnx.Rngs(0)), nnx.jit(lambda model, x: model(x))
    for x in (jnp.ones(3), jnp.zeros(3)):
        assert np.array_equal(run(model, x), 2 * x) and np.array_equal(model.seen, 2 * x)
