"""Reductions: ties, zeros, NaN, scalars."""
import numpy as np
import pytest
import torch
from math_common import agree, array, floats, inf, nan

from migrate.support.jax import reductions, statistics

TIES = array([3, 1, 3, 2], [0, 0, 0, 0], [-1, -1, 5, 5])
HOLES = array([1, nan, 3, 2, 2], [nan, nan, nan, nan, nan], [4, 0, 1, 1, nan])
SCALAR = np.array(1.5, np.float32)



@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "cummax", "cummin"])
@pytest.mark.parametrize("x", [TIES, SCALAR, floats(4, 3, 5)], ids=["ties", "scalar", "random"])
@pytest.mark.parametrize("dim", [0, -1])
def test_values_and_indices(name, x, dim):
    """Where indices among equal elements are anyone's choice in PyTorch, only values are compared."""
    ours = getattr(reductions, name if hasattr(reductions, name) and "median" not in name else f"{name}_dim")
    free = "median" in name and x is TIES
    if free:
        agree(lambda x: ours(x, dim)[0], lambda x: getattr(torch, name)(x, dim)[0], x, grad=False)
    else:
        agree(lambda x: ours(x, dim), lambda x: getattr(torch, name)(x, dim), x)
    if name[:3] != "cum":
        agree(lambda x: ours(x, dim, keepdim=True)[0], lambda x: getattr(torch, name)(x, dim, keepdim=True)[0], x, grad=not free)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "cummax", "cummin"])
def test_nan(name):
    ours = getattr(reductions, name if name[:3] == "cum" else f"{name}_dim")
    agree(lambda x: ours(x, 1)[0], lambda x: getattr(torch, name)(x, 1)[0], HOLES, grad=False)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("x", [TIES, floats(4, 3), HOLES], ids=["ties", "random", "nan"])
def test_median_of_all(name, x):
    agree(getattr(reductions, name), getattr(torch, name), x, grad=x is not HOLES)
    agree(getattr(reductions, name), getattr(torch, name), np.array([3, 1, 2, 1]))


def test_max_or_maximum():
    agree(lambda x: reductions.max_or_maximum(x, 1, keepdim=True), lambda x: torch.max(x, 1, keepdim=True), TIES)
    agree(reductions.max_or_maximum, torch.max, TIES, floats(4))
    agree(lambda x: reductions.min_or_minimum(x, 1), lambda x: torch.min(x, 1), TIES)
    agree(reductions.min_or_minimum, torch.min, TIES, floats(4))


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_aminmax(dim):
    agree(lambda x: reductions.aminmax(x, dim=dim), lambda x: torch.aminmax(x, dim=dim), TIES)


@pytest.mark.parametrize("k", [1, 3])
def test_kthvalue(k):
    agree(lambda x: reductions.kthvalue(x, k, dim=0), lambda x: torch.kthvalue(x, k, dim=0), floats(4, 3))


@pytest.mark.parametrize("correction", [0, 1, 1.5])
def test_std_of_constants_has_no_gradient(correction):
    x = array([1, 1, 1], [1, 2, 4])
    agree(lambda x: reductions.std(x, 1, correction), lambda x: torch.std(x, 1, correction=correction), x)
    agree(lambda x: reductions.std_mean(x, 1, correction), lambda x: torch.std_mean(x, 1, correction=correction), x)
    agree(lambda x: reductions.var_mean(x, 1, correction), lambda x: torch.var_mean(x, 1, correction=correction), x)


@pytest.mark.parametrize("p", [2, 1, 3, 0.5, 0, inf, -inf, -1])
@pytest.mark.parametrize("dim", [None, 1, (0, 1)])
def test_vector_norm(p, dim):
    x = array([0, 0, 0], [1, -2, 2], [0, 3, 0])
    x = x[1:2] if p == -1 else x
    agree(lambda x: reductions.vector_norm(x, p, dim), lambda x: torch.linalg.vector_norm(x, p, dim), x)
    agree(lambda x: reductions.vector_norm(x, p, dim, keepdim=True), lambda x: torch.linalg.vector_norm(x, p, dim, keepdim=True), x)


@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, inf])
def test_cdist_of_equal_points(p):
    x, y = floats(2, 4, 3), floats(2, 5, 3)
    y[:, 1] = x[:, 2]
    agree(lambda x, y: statistics.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p), x, y)


def test_cdist_of_many_points():
    agree(statistics.cdist, torch.cdist, floats(30, 3), floats(2, 40, 3), rtol=1e-4)


def test_histc_at_the_edges():
    x = array(-1, 0, 0.25, 0.5, 1, 1, 2)
    agree(lambda x: statistics.histc(x, 4, 0, 1), lambda x: torch.histc(x, 4, 0, 1), x, grad=False)
    agree(lambda x: statistics.histc(x, 3), lambda x: torch.histc(x, 3), x, grad=False)
    agree(lambda x: statistics.histc(x, 3), lambda x: torch.histc(x, 3), array(2, 2), grad=False)


def test_renorm():
    agree(lambda x: statistics.renorm(x, 2, 1, 1.0), lambda x: torch.renorm(x, 2, 1, 1.0), floats(3, 4, 2))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("spacing", [1, 0.5, [2.0, 0.5]])
def test_gradient(edge_order, spacing):
    agree(
        lambda x: statistics.gradient(x, spacing, None, edge_order),
        lambda x: torch.gradient(x, spacing=spacing, edge_order=edge_order), floats(4, 5),
    )


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_trapezoid(name):
    ours, theirs = getattr(statistics, name), getattr(torch, name)
    agree(ours, theirs, floats(3, 4), floats(4))
    agree(lambda y: ours(y, dx=2.0, dim=0), lambda y: theirs(y, dx=2.0, dim=0), floats(3, 4))


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_trapezoid_of_points_of_fewer_axes_and_of_nothing(name):
    ours, theirs = getattr(statistics, name), getattr(torch, name)
    agree(lambda y, x: ours(y, x, dim=1), lambda y, x: theirs(y, x, dim=1), floats(2, 3, 4), floats(3, 4))
    agree(lambda y: ours(y, dim=0), lambda y: theirs(y, dim=0), floats(0, 4), grad=False)
