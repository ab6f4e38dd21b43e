"""Special functions of the support code."""
import numpy as np
import pytest
import torch
from math_common import agree, array, nan

from migrate.support.jax import special

WIDE = array(1e-3, 0.1, 0.5, 1, 2, 3, 5, 8, 12, 20, 24.9, 25.1, 40)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_polygamma_on_both_sides_of_zero(n):
    x = array(-20.3, -8.97, -3.4, -2.4, -0.6, 0.2, 0.5, 1, 3, 12)
    agree(lambda x: special.polygamma(n, x), lambda x: torch.polygamma(n, x), x, rtol=1e-4)


def test_digamma_at_the_poles():
    agree(special.digamma, torch.digamma, array(-2, -1, -0.0, 0.0, nan), grad=False)
    agree(special.digamma, torch.digamma, array(-11.3, -0.4, 0.1, 1, 9), rtol=1e-4)


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_bessel(name):
    both = np.concatenate([-WIDE, array(0), WIDE])
    agree(getattr(special, name), getattr(torch.special, name), both, grad=False, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"])
def test_modified_bessel(name):
    both = np.concatenate([-WIDE, array(0), WIDE])
    agree(getattr(special, name), getattr(torch.special, name), both, grad=False, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", [n for n in dir(special) if "_polynomial_" in n])
def test_orthogonal_polynomials(name):
    x, n = np.meshgrid(array(-1.5, -1, -0.3, 0, 0.7, 1, 2), array(-1, 0, 1, 2, 3, 5, 5.7))
    agree(getattr(special, name), getattr(torch.special, name), x.ravel(), n.ravel(), grad=False, rtol=1e-4, atol=1e-4)
    agree(lambda x: getattr(special, name)(x, 4), lambda x: getattr(torch.special, name)(x, 4), x, grad=False, rtol=1e-4, atol=1e-4)


def test_zeta_at_the_poles():
    x, q = np.meshgrid(array(-1, 0.5, 1, 2, 2.5, 3), array(-2, -1.5, -1, 0, 0.5, 1, 4))
    agree(special.zeta, torch.special.zeta, x.ravel(), q.ravel(), grad=False)


def test_whole_numbers():
    for ours, theirs in ((special.digamma, torch.digamma), (special.i0, torch.i0)):
        agree(ours, theirs, np.array([-1, 0, 1, 5]))


def test_truth_values():
    for name in ("bessel_j1", "modified_bessel_k0", "modified_bessel_k1"):
        agree(getattr(special, name), getattr(torch.special, name), np.array([True, False]), grad=False)
