"""Elementwise support functions at their kinks and special points."""
import jax
import numpy as np
import pytest
import torch
from math_common import agree, array, floats, grid, inf, nan

from migrate.support.jax import pointwise, special

FINITE = array(-3.5, -2, -1.5, -1, -0.3, -0.0, 0.0, 0.3, 0.5, 1, 1.5, 2, 30)
WITH_NAN = array(-inf, -2, -0.0, 0.0, 0.5, 1, inf, nan)
PAIRS = grid(-2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pointwise.absolute, torch.abs),
        (pointwise.sign, torch.sign),
        (pointwise.angle, torch.angle),
        (special.i0, torch.i0),
        (lambda x: pointwise.clamp(x, -1, 0.5), lambda x: torch.clamp(x, -1, 0.5)),
        (lambda x: pointwise.clamp(x, 1, -1), lambda x: torch.clamp(x, 1, -1)),
        (lambda x: pointwise.power(x, 0.0), lambda x: torch.pow(x, 0.0)),
        (lambda x: pointwise.copysign(x, -0.0), lambda x: torch.copysign(x, -0.0)),
    ],
)
def test_unary_at_kinks(ours, theirs):
    agree(ours, theirs, FINITE)


@pytest.mark.parametrize("name", ["absolute", "sign", "angle"])
def test_unary_with_infinities_and_nan(name):
    theirs = {"absolute": torch.abs, "sign": torch.sign, "angle": torch.angle}[name]
    agree(getattr(pointwise, name), theirs, WITH_NAN, grad=False)


@pytest.mark.parametrize("name", ["fmax", "fmin", "copysign", "atan2", "clamp", "ldexp", "nextafter", "xlogy", "xlog1py"])
def test_binary_at_kinks(name):
    """For xlogy the points where PyTorch's own gradient is NaN are left out."""
    theirs = getattr(torch, name, None) or getattr(torch.special, name)
    ours = getattr(pointwise, name, None) or getattr(special, name)
    a, b = PAIRS
    bad = {"xlogy": (a == 0) & (b == 0), "xlog1py": (a == 0) & (b == -1)}.get(name, np.zeros_like(a, bool))
    agree(ours, theirs, a[~bad], b[~bad])


@pytest.mark.parametrize("name", ["fmax", "fmin", "clamp", "heaviside", "xlogy"])
def test_binary_with_infinities_and_nan(name):
    a, b = grid(-inf, -1, 0, 2, inf, nan)
    agree(getattr(pointwise, name, None) or getattr(special, name), getattr(torch, name), a, b, grad=False)


def test_power_of_tensors():
    a, b = grid(0, 0.5, 1, 2)
    agree(pointwise.power, torch.pow, a, b)
    agree(pointwise.power, torch.pow, array(-2, -1, 0, 3), array(2, 3, 2, 0), grad=False)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_trunc_divide(dtype):
    a, b = (v.astype(dtype) for v in grid(-7, -2, -1, 1, 2, 5))
    agree(pointwise.trunc_divide, lambda x, y: torch.div(x, y, rounding_mode="trunc"), a, b, grad=False)


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_lerp(weight):
    a, b = floats(3, 4), floats(4)
    agree(lambda x, y: pointwise.lerp(x, y, weight), lambda x, y: torch.lerp(x, y, weight), a, b)
    assert (np.asarray(pointwise.lerp(a, b, 1.0)) == np.broadcast_to(b, a.shape)).all()


def test_clamp_promotes_whole_numbers():
    agree(lambda x: pointwise.clamp(x, 0.5, 2), lambda x: torch.clamp(x, 0.5, 2), np.arange(5, dtype=np.int32))
    agree(lambda x: pointwise.clamp(x, 1, 2), lambda x: torch.clamp(x, 1, 2), np.arange(5, dtype=np.int32))


def test_complex():
    z = (floats(3, 4) + 1j * floats(3, 4)).astype(np.complex64)
    agree(pointwise.view_as_real, torch.view_as_real, z)
    agree(pointwise.angle, torch.angle, z)
    agree(pointwise.absolute, torch.abs, z)
    agree(pointwise.view_as_complex, torch.view_as_complex, floats(3, 2), grad=False)
    agree(pointwise.polar, torch.polar, np.abs(floats(3, 4)), floats(3, 4), grad=False)


@pytest.mark.parametrize(("ours", "theirs"), [(pointwise.absolute, torch.abs), (lambda x: pointwise.clamp(x, -1, 1), lambda x: torch.clamp(x, -1, 1))], ids=["absolute", "clamp"])
def test_nan_has_no_gradient(ours, theirs):
    x = torch.tensor(WITH_NAN, requires_grad=True)
    (wanted,) = torch.autograd.grad(theirs(x).sum(), x)
    np.testing.assert_array_equal(jax.grad(lambda x: ours(x).sum())(WITH_NAN), wanted.numpy())
