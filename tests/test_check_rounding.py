"""Float32's rounding made by chance: what is exact stays, and terms that cancel leave what they are off by."""

from functools import partial

import torch

from migrate.check.draws import Draws
from migrate.check.kinks import largest, widen
from migrate.check.torch_gradients import backward
from migrate.check.torch_mode import mode
from migrate.check.torch_rounding import Rounding
from migrate.check.torch_sides import Sides


def rounded(function, *values, seed=0):
    with torch.no_grad(), mode(Draws(), True, Rounding(seed)):
        return function(*values)


def test_what_float32_holds_is_exact():
    x = torch.tensor([0.5, -3.0, 0.0, float("inf"), float("nan")], dtype=torch.float64)
    assert torch.equal(rounded(lambda x: x * 2 + 1, x)[:4], (x * 2 + 1)[:4])
    narrow = torch.randn(50).double()
    assert torch.equal(rounded(lambda x: x.reshape(5, 10).t().contiguous(), narrow), narrow.reshape(5, 10).t())


def test_other_results_become_a_neighbour_in_float32():
    x = torch.full((10000,), 1.0, dtype=torch.float64)
    third = rounded(lambda x: x / 3, x)
    assert torch.equal(third, third.float().double())
    assert 0 < (third - 1 / 3).abs().max() < 2.0**-24 / 2, "less than one unit in the last place"
    assert len(third.unique()) == 2 and not torch.equal(third, rounded(lambda x: x / 3, x, seed=1))
    pairs = torch.view_as_complex(torch.randn(20, 2).double())
    assert (gap := (rounded(lambda z: z * z, pairs) - pairs * pairs).abs().max()) > 0 and gap < 1e-5
    y = torch.ones(4, dtype=torch.float64)
    assert torch.equal(rounded(lambda y: y.div_(3), y), y) and torch.equal(y, y.float().double()), "in place, what was written to"


class Scores(torch.nn.Module):
    """The gradient of the keys' bias is zero in exact arithmetic: it moves all scores of a row alike."""

    def __init__(self):
        super().__init__()
        self.q, self.k = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return (self.q(x) @ self.k(x).mT).softmax(-1) @ x


def test_chance_decides_between_equals():
    """Where PyTorch promises no order; `sort` keeps the one it had."""
    equal = torch.zeros(4, 8, dtype=torch.float64)
    equal[:, 3] = 1.0

    def taken(function, wary):
        with torch.no_grad(), mode(Draws(), True, Rounding(0, wary)):
            return function(equal)

    values, places = taken(lambda x: x.topk(3), True)
    assert torch.equal(places[:, 0], torch.full((4,), 3)) and not torch.equal(places, equal.topk(3).indices)
    assert (values - equal.topk(3).values).abs().max() < 1e-6
    assert torch.equal(taken(lambda x: x.topk(3), False).indices, equal.topk(3).indices)
    assert torch.equal(taken(lambda x: x.sort(stable=True), True).indices, equal.sort(stable=True).indices)


def test_terms_that_cancel_leave_their_rounding():
    torch.manual_seed(0)
    model, values = Scores(), ((torch.randn(3, 6, 8),), {})
    sides = Sides(model, Scores)
    task = partial(backward, lambda _, g: sides.spool.keep(g))
    results, _ = sides.each(task, values, whole=True)
    leaves = [{"own": 0.0} for _ in results["f64"][0]]
    widen(sides, task, values, results["f64"], lambda r: [*r[0].values()], leaves, large=True)
    exact = results["f64"][0]
    own = dict(zip(exact, (leaf["own"] for leaf in leaves), strict=True))
    assert largest(exact["k.bias"], torch.zeros(8)) < 1e-14, "the gradient itself"
    assert 1e-8 < own["k.bias"] < 1e-5
    assert own["q.bias"] < 1e-6 * largest(exact["q.bias"], torch.zeros(8)), "what does not cancel is judged as before"


KINKED = """
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 3)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        x = F.leaky_relu(self.norm(self.first(x.clamp(min=-1.0))), 0.25)
        return self.last(x) / self.scale.abs()


def make():
    return Net(), (torch.randn(4, 12),)
"""
# One change each, which shows at single points only.
FAULTS = {
    "the other slope at 0": ("jnp.where(input > 0, input, input * neg", "jnp.where(input >= 0, input, input * neg"),
    "no gradient at the bound": ("(input < min) |", "(input <= min) |"),
    "no gradient at 1": ("(input != 0) &", "(input != 1) &"),
}


def test_the_side_of_a_kink_is_compared(tmp_path, monkeypatch):
    """The slope at 0 after a normalisation, at a bound, and of a single number."""
    import sys

    import migrate
    from migrate.check import jax_side
    from migrate.check.run import NEEDED, make_oracle
    from migrate.check.verdict import from_result

    (tmp_path / "net.py").write_text(KINKED)
    stages = (*NEEDED, "forward", "gradients", "kinks")
    content = make_oracle(tmp_path / "net.py", tmp_path / "oracle", stages=stages)
    assert not content["kinks"]["skipped"]
    made = migrate.convert_source(KINKED)
    support = "".join(made.support.values())

    def stage(name, support):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(made.code)
        (folder / "torch_support.py").write_text(support)
        job = {"converted": str(folder / f"{name}.py"), "roots": [], "oracle": str(tmp_path / "oracle"), "out": str(folder), "target": "flax"}
        with monkeypatch.context() as m:
            m.setattr(sys, "path", list(sys.path))
            m.setattr(sys, "argv", list(sys.argv))
            m.delitem(sys.modules, "torch_support", raising=False)
            verdict = from_result(jax_side.check(job | {"stages": list(stages)}), content, 0.0, "flax", stages)
        return next((s.name for s in verdict.stages if s.status == "failed"), "")

    assert stage("plain", support) == ""
    for i, (what, (old, new)) in enumerate(FAULTS.items()):
        assert support.count(old) == 1
        assert stage(f"fault{i}", support.replace(old, new)) == "kinks", what
