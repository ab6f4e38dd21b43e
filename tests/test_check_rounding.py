"""Float32's rounding made by chance: what is exact stays, and terms that cancel leave what they are off by."""

from functools import partial

import numpy as np
import torch

from migrate.check.draws import Draws
from migrate.check.kinks import largest, widen
from migrate.check.torch_gradients import _backward
from migrate.check.torch_mode import mode
from migrate.check.torch_sides import Sides


def rounded(function, *values, seed=0):
    with torch.no_grad(), mode(Draws(), True, np.random.default_rng(seed)):
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


def test_terms_that_cancel_leave_their_rounding():
    torch.manual_seed(0)
    model, values = Scores(), ((torch.randn(3, 6, 8),), {})
    sides = Sides(model, Scores)
    task = partial(_backward, lambda _, g: sides.spool.keep(g))
    results, _ = sides.each(task, values, whole=True)
    leaves = [{"own": 0.0} for _ in results["f64"][0]]
    widen(sides, task, values, results["f64"], lambda r: [*r[0].values()], leaves, large=True)
    exact = results["f64"][0]
    own = dict(zip(exact, (leaf["own"] for leaf in leaves), strict=True))
    assert largest(exact["k.bias"], torch.zeros(8)) < 1e-14, "the gradient itself"
    assert 1e-8 < own["k.bias"] < 1e-5
    assert own["q.bias"] < 1e-6 * largest(exact["q.bias"], torch.zeros(8)), "what does not cancel is judged as before"
