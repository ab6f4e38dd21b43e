"""What the tables say of inputs that raise: each call does raise, and PyTorch's does not; what takes an axis agrees on a number, or says that it raises."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rows_common import HEADER, flat, load, values

import migrate
from migrate.known import corners, difference, known
from migrate.report.operators import notes
from migrate.report.rows import describe
from migrate.tables import TableError, read, standard

CALLS = [(row, name, call) for row in standard().rows for name, call in row.known.items()]
AXIS = "axis-of-a-number"
FILL = {"q": "0.5", "k": "1", "index": "torch.tensor([0])", "value": "2.0", "source": "x", "src": "x", "x2": "x", "y": "x", "dim1": "0", "correction": "0", "reduce": "'amax'"}


def both(call, inputs, target="flax"):
    """What PyTorch gives, and a function that runs the converted call."""
    text = f"{HEADER}def f({', '.join(inputs)}):\n    return {call}\n"
    space = {}
    exec(text, space)
    want = flat(space["f"](*map(torch.tensor, inputs.values())))
    made = migrate.convert_source(text, target=target, filename="case.py")
    return want, made, lambda: flat(load(made.code, dict(made.support))["f"](*map(jnp.asarray, inputs.values())))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("row", "name", "call"), CALLS, ids=lambda v: getattr(v, "torch", None))
def test_it_raises(row, name, call):
    inputs = {n: values(spec, 0) for n, spec in difference(name, row.torch).inputs.items()}
    want, made, run = both(call, inputs)
    assert not [d for d in made.diagnostics if d.severity == "error"]
    if difference(name, row.torch).gradient:
        np.testing.assert_array_equal(run(), want)
        gradient = jax.grad(lambda *a: load(made.code, dict(made.support))["f"](*a).sum())
        run = lambda: gradient(*map(jnp.asarray, inputs.values()))  # noqa: E731
    with pytest.raises((ValueError, IndexError, TypeError, OverflowError)):
        run()


def test_every_one_is_named_by_a_row():
    assert {name for _, name, _ in CALLS} == set(known())
    assert "instead, leave the axis out" in describe(standard().by_name["torch.sum"], ("flax",))


def test_corners_are_of_rows_and_told():
    assert set(corners()) <= set(standard().by_name)
    assert "open: which of equal elements comes first" in describe(standard().by_name["torch.topk"], ("flax",))
    assert "open: which of equal elements comes first" in notes(standard().by_name["torch.topk"])


def test_a_row_names_only_what_there_is():
    (row,) = read('[[op]]\ntorch = "a.b"\nknown = { nothing = "a.b(x)" }\n[[op.jax]]\nto = "jnp.abs(input)"\n', "mine.toml")
    with pytest.raises(TableError, match=r"nothing is not in mappings/known\.toml"):
        describe(row, ("flax",))


def axis_call(row):
    """A call with axis 0 of a number; None where the row has no axis, or needs what this can't write."""
    given = []
    named = {p.name for p in row.parameters}
    if row.kind != "function" or not row.torch.startswith("torch.") or "dim" not in named or row.torch.startswith(("torch.nn.utils", "torch.nn.functional.gumbel", "torch.nn.DataParallel")):
        return None
    for i, p in enumerate(row.parameters):
        if p.name == "dim":
            given.append("dim=0" if p.kind == "keyword" else "0")
        elif p.kind != "positional" or "dim" not in [q.name for q in row.parameters[i:]] and p.default is not None:
            continue
        elif i and p.default is None and p.name not in FILL:
            return None
        else:
            given.append("x" if i == 0 else FILL[p.name] if p.default is None else p.default)
    return f"{row.torch}({', '.join(given)})" if not row.torch.startswith("torch.Tensor.") else f"x.{row.methods[0]}({', '.join(given[1:])})"


@pytest.mark.filterwarnings("ignore")
def test_an_axis_of_a_number_agrees_where_nothing_is_said():
    agreed = []
    for row in standard().rows:
        call = axis_call(row)
        if call is None or AXIS in row.known:
            continue
        try:
            want, made, run = both(call, {"x": np.float32(1.5)})
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue  # PyTorch raises
        if not [d for d in made.diagnostics if d.severity != "info"]:
            got = run()
            assert [(a.shape, a.dtype.kind) for a in want] == [(a.shape, a.dtype.kind) for a in got], call
            for a, b in zip(want, got, strict=True):
                np.testing.assert_allclose(b, a, err_msg=call)
            agreed.append(call)
    assert len(agreed) >= 15
