"""Linear algebra: argument orders, unused triangles, tolerances, gradients."""
import numpy as np
import pytest
import torch
from math_common import agree, agree_with, floats, inf

from migrate.support.jax import decompositions, linalg

SQUARE, WIDE = floats(2, 3, 3) + 2 * np.eye(3, dtype=np.float32), floats(3, 5)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(3, dtype=np.float32)


@pytest.mark.parametrize("left", [True, False])
def test_solve(left):
    agree(lambda a, b: linalg.solve(a, b, left), lambda a, b: torch.linalg.solve(a, b, left=left), SQUARE, floats(2, 3, 3))
    agree(linalg.solve, torch.linalg.solve, SQUARE, floats(2, 3))
    agree(linalg.solve_ex, torch.linalg.solve_ex, SQUARE, floats(3))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_solve_triangular(upper, left):
    options = {"upper": upper, "left": left}
    agree_with(options, linalg.solve_triangular, torch.linalg.solve_triangular, SQUARE, floats(3, 3))


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_triangular_solve():
    agree_with({"transpose": True}, linalg.triangular_solve, torch.triangular_solve, floats(3, 2), SQUARE[0])


@pytest.mark.parametrize("upper", [True, False])
def test_only_one_triangle_of_a_factor_counts(upper):
    solves = (lambda b, l: linalg.cholesky_solve(b, l, upper)), (lambda b, l: torch.cholesky_solve(b, l, upper))
    inverts = (lambda l: linalg.cholesky_inverse(l, upper)), (lambda l: torch.cholesky_inverse(l, upper))
    triangle = np.triu(SQUARE) if upper else np.tril(SQUARE)
    agree(*solves, floats(2, 3, 2), triangle, rtol=1e-4)
    agree(*solves, floats(2, 3, 2), SQUARE, grad=False, rtol=1e-4)
    agree(*inverts, triangle, rtol=1e-4)
    agree(*inverts, SQUARE, grad=False, rtol=1e-4)
    agree(lambda a: decompositions.eigvalsh(a, "U" if upper else "L"), lambda a: torch.linalg.eigvalsh(a, "U" if upper else "L"), SQUARE)


def test_failures_are_counted():
    bad = np.stack([POSITIVE[0], -POSITIVE[0]])
    assert np.asarray(decompositions.cholesky_ex(bad).info).tolist() == [0, 1]
    agree(decompositions.cholesky_ex, torch.linalg.cholesky_ex, POSITIVE)
    agree(linalg.inv_ex, torch.linalg.inv_ex, SQUARE)


@pytest.mark.parametrize("x", [SQUARE, WIDE, WIDE.T.copy()], ids=["square", "wide", "tall"])
def test_lu(x):
    agree(decompositions.lu_factor, torch.linalg.lu_factor, x, grad=False)
    agree(decompositions.lu_factor_ex, torch.linalg.lu_factor_ex, x, grad=False)
    agree(decompositions.lu, torch.linalg.lu, x, grad=False)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left, adjoint):
    packed, pivots = (t.numpy() for t in torch.linalg.lu_factor(torch.from_numpy(SQUARE)))
    options = {"left": left, "adjoint": adjoint}
    agree_with(options, linalg.lu_solve, torch.linalg.lu_solve, packed, pivots, floats(2, 3, 3))


def test_householder():
    a, tau = (t.numpy() for t in torch.geqrf(torch.from_numpy(WIDE.T.copy())))
    agree(decompositions.geqrf, torch.geqrf, WIDE.T.copy(), grad=False)
    agree(decompositions.householder_product, torch.linalg.householder_product, a, tau)
    for left in (True, False):
        for transpose in (True, False):
            agree(
                lambda a, t, c: decompositions.ormqr(a, t, c, left, transpose), lambda a, t, c: torch.ormqr(a, t, c, left, transpose),
                a, tau, floats(5, 2) if left else floats(2, 5),
            )


def test_tolerances():
    x = np.diag(np.array([1, 0.1, 1e-9], np.float32))
    for options in ({}, {"rtol": 0.5}, {"atol": 0.05}, {"atol": 0.05, "rtol": 0.2}):
        agree_with(options, linalg.matrix_rank, torch.linalg.matrix_rank, x)
        agree_with(options, linalg.pinv, torch.linalg.pinv, x, grad=False)
    agree(linalg.pinv, torch.linalg.pinv, WIDE)
    low = floats(2, 4, 2) @ floats(2, 2, 3)
    agree(lambda a: linalg.pinv(a, rtol=1e-3), lambda a: torch.linalg.pinv(a, rtol=1e-3), low, rtol=1e-3)
    agree(lambda a: linalg.pinv(a, hermitian=True), lambda a: torch.linalg.pinv(a, hermitian=True), POSITIVE)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
def test_lstsq(driver):
    agree_with({"driver": driver}, linalg.lstsq, torch.linalg.lstsq, WIDE.T.copy(), floats(5, 2), grad=False, rtol=1e-4)
    agree(lambda a, b: linalg.lstsq(a, b)[0], lambda a, b: torch.linalg.lstsq(a, b)[0], WIDE.T.copy(), floats(5, 2), rtol=1e-4)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, inf, -inf])
def test_matrix_norm(ord):
    x = floats(3, 2, 4)
    agree(lambda a: linalg.matrix_norm(a, ord), lambda a: torch.linalg.matrix_norm(a, ord), x)
    agree(lambda a: linalg.matrix_norm(a, ord, (0, 2), keepdim=True), lambda a: torch.linalg.matrix_norm(a, ord, (0, 2), keepdim=True), x)


@pytest.mark.parametrize("ord", [None, 1, 2, inf])
@pytest.mark.parametrize("dim", [None, 0, (0, 1), (1,)])
def test_norm(ord, dim):
    agree(lambda a: linalg.norm(a, ord, dim), lambda a: torch.linalg.norm(a, ord, dim), WIDE)
    agree(linalg.norm, torch.linalg.norm, np.zeros(3, np.float32))


@pytest.mark.parametrize("p", [None, 1, inf, "fro", 2, -2])
def test_cond(p):
    """PyTorch cannot differentiate the others."""
    agree(lambda a: linalg.cond(a, p), lambda a: torch.linalg.cond(a, p), SQUARE, grad=p in (None, 2, -2), rtol=1e-4)


def test_logdet_of_a_negative_determinant():
    agree(linalg.logdet, torch.logdet, np.array([[0, 1], [1, 0]], np.float32), grad=False)
    agree(linalg.logdet, torch.logdet, POSITIVE)


def test_svd_and_eigh_give_back_the_matrix():
    U, S, V = decompositions.svd(WIDE)
    np.testing.assert_allclose((U * S) @ V.T, WIDE, atol=1e-5)
    assert decompositions.svd(WIDE, some=False).V.shape == (5, 5)
    values, vectors = decompositions.eigh(np.triu(POSITIVE[0]), "U")
    np.testing.assert_allclose((vectors * values) @ vectors.T, POSITIVE[0], atol=1e-4)


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim arg is deprecated")
def test_cross_picks_the_first_axis_of_three():
    agree(linalg.cross, torch.cross, floats(3, 2, 3), floats(3, 2, 3))
    agree(lambda x: linalg.vander(x, 3), lambda x: torch.linalg.vander(x, N=3), floats(2, 4))
