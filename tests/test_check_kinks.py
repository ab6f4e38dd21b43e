"""What jumps within rounding, and draws that can or can't be compared."""

import pytest
import torch

from migrate.check.draws import Draws, same_draws
from migrate.check.jax_draws import shared
from migrate.check.kinks import widen
from migrate.check.stages import Skipped, StageError
from migrate.check.torch_mode import mode
from migrate.check.torch_sides import Sides


class Switch(torch.nn.Module):
    """Its first unit is on or off, as rounding has it; `smooth` has nothing that switches."""

    def __init__(self, smooth):
        super().__init__()
        self.smooth = smooth
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 1.0]))

    def forward(self, x):
        y = torch.stack([x[0] * self.weight[0] - 3.0 + 1e-9, x[1] * self.weight[1]])
        return torch.tanh(y) if self.smooth else torch.relu(y)


def own(smooth, large=False):
    """What the slope of the weights may be off by, for each."""
    sides = Sides(Switch(smooth), lambda: Switch(smooth))
    values = (torch.tensor([3.0, 2.0]),)

    def task(model, given):
        model.weight.grad = None
        model(*given).sum().backward()
        return model.weight.grad.clone()

    results, _ = sides.each(task, values)
    leaf = {"own": 0.0}
    widen(sides, task, values, results["f64"], lambda r: [r], [leaf], large)
    return leaf["own"]


def test_a_unit_that_switches_within_rounding_may_be_on_or_off():
    assert own(smooth=False) > 0.7  # the slope of the unit is 3
    assert own(smooth=False, large=True) == pytest.approx(3.0 / 4, rel=1e-3)


def test_what_is_smooth_is_judged_no_more_kindly():
    assert 0 < own(smooth=True) < 1e-6  # a few roundings
    assert own(smooth=True, large=True) < 1e-6


def test_an_axis_of_one_changes_no_draw():
    a, b = Draws(), Draws()
    with mode(a, double=False):
        want = torch.nn.functional.dropout1d(torch.ones(6, 5), 0.5, True)
    import jax

    with shared(b):
        keep = jax.random.bernoulli(jax.random.key(0), 0.5, (6, 1))
    assert a.log == b.log
    assert (want[:, 0].numpy() / 2 == keep[:, 0]).all()


@pytest.mark.parametrize(
    ("got", "error"),
    [
        ([["uniform", [2, 8]]], None),
        ([], StageError),  # no draw at all
        ([["uniform", [2, 8, 3]]], StageError),  # value by value where channels were dropped
        ([["normal", [2, 8]]], StageError),
        ([["uniform", [8, 2]]], Skipped),  # as many, but in which order?
        ([["uniform", [2, 8]], ["uniform", [2, 8]]], Skipped),
        ([["other: gamma", []]], Skipped),
    ],
)
def test_draws(got, error):
    if error is None:
        same_draws([["uniform", [2, 8]]], got)
    else:
        with pytest.raises(error):
            same_draws([["uniform", [2, 8]]], got)
