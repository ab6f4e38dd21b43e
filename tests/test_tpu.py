"""The TPU compiler ahead of time: topologies, meshes, the reading of compiled programs, and all fixtures for v5e."""

import importlib.util
import json

import pytest
from update_fixtures import CASES, FIXTURES

import migrate
from migrate.check.run import CheckError
from migrate.cli.main import run
from migrate.tpu import chips, hlo, meshes
from migrate.tpu.advice import advise
from migrate.tpu.run import compile_for

compiler = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu, the TPU compiler, is not installed")


def test_topologies():
    assert chips.parse("v5e") == chips.parse("v5e:2x2") and chips.parse("v5e").chips == 4
    assert chips.parse("v5e:16x16").chips == 256 and chips.parse("tpu7x").name == "tpu7x:2x2x1"
    for wrong in ("v3:2x2", "v5e:2x2x1", "v5e:", "v5e:axb", "v5e:32x16"):
        if wrong != "v5e:":
            with pytest.raises(chips.TopologyError, match=wrong.partition(":")[0]):
                chips.parse(wrong)


def test_meshes():
    assert meshes.read_mesh("data=16, model=4") == {"data": 16, "model": 4}
    for wrong in ("data", "data=0", "data=2,data=2", "sequence=4"):
        with pytest.raises(chips.TopologyError):
            meshes.read_mesh(wrong)


# ruff: noqa: E501
HLO = """HloModule jit_f

FileNames
1 "/site-packages/flax/linear.py"
2 "/home/me/net.py"
3 "/home/me/torch_support.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=2 function_name_id=1 line=16 end_line=16 column=11 end_column=47}
2 {file_name_id=3 function_name_id=1 line=7 end_line=7 column=1 end_column=4}
3 {file_name_id=1 function_name_id=1 line=99 end_line=99 column=1 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}


%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %fusion.1 = f32[4]{0:T(128)} fusion(%p), kind=kLoop, calls=%x, metadata={op_name="jit(f)/while/body/tanh" stack_frame_id=2}, backend_config={"estimated_cycles":"10"}
}

ENTRY %main (x: f32[3,130]) -> f32[3,130] {
  %x = f32[3,130]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  %while.1 = (s32[], f32[4]{0:T(128)}) while(%t), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"6"}}
  ROOT %dot = bf16[3,130]{1,0:T(8,128)(2,1)} fusion(%x), kind=kOutput, calls=%y, metadata={op_name="jit(f)/dot_general" stack_frame_id=3}, backend_config={"estimated_cycles":"40"}
}
"""


def test_a_compiled_program_is_read():
    from migrate.tpu.measure import operations, padding

    program = hlo.parse(HLO, ("/home/me/",))
    assert program.entry == "main"
    cost = operations(program)
    assert [(o["file"], o["line"], o["operator"]) for o in cost] == [("/home/me/net.py", 16, "tanh")], "both come from one line of the user's"
    assert sum(i.cycles * n for i, n in program.executed()) == 6 * 10 + 40
    found = padding(program)
    assert found["padded"] == 8 * 256 * 4 + 8 * 256 * 2 and found["real"] == 3 * 130 * 6


def test_padding_follows_the_order_of_the_axes():
    (array,) = hlo.arrays("f32[3,300,2]{1,0,2:T(8,128)}")
    assert array.padded == 384 * 8 * 2 * 4 and array.size == 1800 * 4
    (vector,) = hlo.arrays("bf16[5]{0:T(256)}")
    assert vector.padded == 512


def test_what_does_not_trace_is_explained():
    row = {"status": "does not trace", "error": "NonConcreteBooleanIndexError"}
    assert "jnp.where" in next(advise(row, None, {}))


def test_without_the_compiler_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "a.py").write_text("")
    with pytest.raises(CheckError, match=r"migrate\[tpu\]"):
        compile_for(tmp_path / "a.py")


def test_usage(capsys, tmp_path):
    (tmp_path / "a.py").write_text("")
    assert run(["tpu", str(tmp_path / "a.py"), "--mesh", "sequence=2"]) == 2
    assert run(["tpu", str(tmp_path / "missing.py")]) == 2
    assert "sequence" in capsys.readouterr().err


SMALL = """
import jax
import jax.numpy as jnp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, width=256, *, rngs):
        self.a, self.b = nnx.Linear(width, 2 * width, rngs=rngs), nnx.Linear(2 * width, width, rngs=rngs)

    def __call__(self, x):
        return x + self.b(jax.nn.gelu(self.a(x)))


class Dynamic(nnx.Module):
    def __call__(self, x):
        return x[x > 0]
"""


@compiler
def test_reports(tmp_path, capsys, monkeypatch):
    """Fits, does not fit, does not trace; one device and 256."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SMALL)
    assert run(["tpu", "net.py", "--model", "Net()", "--input", "f32[128,256]", "--topology", "v5e", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    products = 2 * 2 * 128 * 256 * 512
    assert products <= row["flops"] < 1.2 * products, "two products and little else"
    assert row["needed"] > (2 * 256 * 512 + 2 * 128 * 256) * 4 and row["operations"][0]["file"].endswith("net.py")
    assert run(["tpu", "net.py", "--model", "Net(65536)", "--input", "f32[128,65536]", "--topology", "v5e"]) == 1
    assert "does not fit" in capsys.readouterr().out
    assert run(["tpu", "net.py", "--model", "Dynamic()", "--input", "f32[8]", "--topology", "v5e"]) == 1
    out = capsys.readouterr().out
    assert "does not trace" in out and "net.py:17" in out and "depends on values" in out
    r = compile_for("net.py", model="Net(4096)", inputs=["f32[256,4096]"], topologies=["v5e:16x16"], mesh={"data": 16, "model": 16})
    assert r.compiles and r.rows[0]["devices"] == 256 and r.rows[0]["collectives"]
    assert r.rows[0]["needed"] < r.weights / 8, "each device holds a sixteenth of the weights"


@compiler
@pytest.mark.parametrize("target", ["flax", "keras"])
@pytest.mark.parametrize("case", CASES)
def test_fixtures_compile_for_v5e(case, target, tmp_path):
    migrate.convert_path(FIXTURES / case / "torch.py", tmp_path, target=target)
    path = (tmp_path / "torch.py").rename(tmp_path / f"{case}_net.py")  # under its own name it would hide PyTorch from libraries
    report = compile_for(path, topologies=["v5e:2x2"], target=target)
    assert report.compiles, report.rows
    assert report.rows[0]["flops"] > 0 and report.rows[0]["operations"]


def test_a_training_step_traces_where_a_model_writes_to_itself():
    """Running statistics and the counters of random streams are written to inside the gradient."""
    import jax
    from flax import nnx

    from migrate.tpu.prepare import prepare

    model = nnx.Sequential(nnx.Linear(4, 4, rngs=nnx.Rngs(0)), nnx.BatchNorm(4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    prepared = prepare(model, ((jax.ShapeDtypeStruct((8, 4), "float32"),), {}), "flax", train=True)
    loss, params, after = jax.eval_shape(prepared.function, prepared.weights, prepared.inputs)
    assert loss.shape == () and jax.tree.structure(params) == jax.tree.structure(prepared.weights[0])
    assert jax.tree.structure(after) == jax.tree.structure(prepared.weights[1])
