"""Solving, norms and functions of matrices with PyTorch's argument orders, tolerances and gradients."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from migrate.support.jax.decompositions import adjoint, failed, hermitian_of, lu_unpack
from migrate.support.jax.pointwise import absolute
from migrate.support.jax.reductions import vector_norm


class Inverse(NamedTuple):
    """Inverse matrices, and which of them failed (0: none)."""

    inverse: jax.Array
    info: jax.Array


class Result(NamedTuple):
    """A solution, and which matrices failed (0: none)."""

    result: jax.Array
    info: jax.Array


class LeastSquares(NamedTuple):
    """Solution of a least squares problem; what the driver does not compute is empty."""

    solution: jax.Array
    residuals: jax.Array
    rank: jax.Array
    singular_values: jax.Array


class Triangular(NamedTuple):
    """Solution of a triangular system, and its matrix."""

    solution: jax.Array
    cloned_coefficient: jax.Array


def inv_ex(A):
    """Inverse and failures."""
    inverse = jnp.linalg.inv(A)
    return Inverse(inverse, failed(inverse))


def solve(A, B, left=True):
    """X of A X = B (or X A = B); B is a batch of vectors where its shape is A's without the last axis."""
    if not left:
        return jnp.swapaxes(solve(jnp.swapaxes(A, -1, -2), jnp.swapaxes(B, -1, -2)), -1, -2)
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return jnp.linalg.solve(A, B[..., None])[..., 0]
    return jnp.linalg.solve(A, B)


def solve_ex(A, B, left=True):
    """`solve`, and failures of A."""
    return Result(solve(A, B, left), failed(jnp.linalg.inv(A)))


def same_batch(A, B):
    """Both with the same leading axes."""
    batch = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return jnp.broadcast_to(A, batch + A.shape[-2:]), jnp.broadcast_to(B, batch + B.shape[-2:])


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """X of A X = B (or X A = B) for triangular A."""
    A, B = same_batch(jnp.asarray(A), jnp.asarray(B))
    return jax.lax.linalg.triangular_solve(A, B, left_side=left, lower=not upper, unit_diagonal=unitriangular)


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """X of A X = b for triangular A, and A."""
    A, b = same_batch(jnp.asarray(A), jnp.asarray(b))
    x = jax.lax.linalg.triangular_solve(A, b, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unitriangular)
    return Triangular(x, A)


def gram(L, upper):
    """L L^H (upper: L^H L) of the triangle; the gradient goes to all of L, as PyTorch's does."""
    triangle = jnp.triu(L) if upper else jnp.tril(L)
    L = L + jax.lax.stop_gradient(triangle - L)
    return adjoint(L) @ L if upper else L @ adjoint(L)


def cholesky_solve(B, L, upper=False):
    """X of A X = B, where A = L L^H (upper: L^H L)."""
    return jnp.linalg.solve(gram(L, upper), B)


def cholesky_inverse(L, upper=False):
    """Inverse of A = L L^H (upper: L^H L)."""
    return jnp.linalg.inv(gram(L, upper))


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X of A X = B (or X A = B; adjoint: with A^H), from the LU factors of A."""
    def turned(M):
        return jnp.conj(jnp.swapaxes(M, -1, -2))

    if not left:
        return turned(lu_solve(LU, pivots, turned(B), adjoint=not adjoint))
    P, L, U = lu_unpack(LU, pivots)
    if adjoint:
        return P @ solve_triangular(turned(L), solve_triangular(turned(U), B, upper=False), upper=True, unitriangular=True)
    return solve_triangular(U, solve_triangular(L, turned(P) @ B, upper=False, unitriangular=True), upper=True)


def logdet(A):
    """Logarithm of the determinant; NaN where it is negative."""
    sign, log = jnp.linalg.slogdet(A)
    return log + jnp.log(sign)


def magnitudes(A, hermitian):
    """Singular values; of a hermitian matrix by its eigenvalues."""
    return jnp.abs(jnp.linalg.eigvalsh(hermitian_of(A))) if hermitian else jnp.linalg.svdvals(A)


def tolerances(A, atol, rtol):
    """Both tolerances as arrays; by default rtol is epsilon times the larger size, or 0 where atol is given."""
    if rtol is None:
        rtol = 0.0 if atol is not None else jnp.finfo(A.dtype).eps * max(A.shape[-2:])
    return jnp.asarray(0.0 if atol is None else atol), jnp.asarray(rtol)


def counted(s, atol, rtol):
    """Which of the singular values (the last axis) are larger than max(atol, rtol * the largest one)."""
    return s > jnp.maximum(atol, rtol * s.max(-1, initial=0))[..., None]


def matrix_rank(A, *, atol=None, rtol=None, hermitian=False):
    """How many singular values are larger than max(atol, rtol * the largest one)."""
    return jnp.sum(counted(magnitudes(A, hermitian), *tolerances(A, atol, rtol)), axis=-1)


def pinv(A, *, atol=None, rtol=None, hermitian=False):
    """Pseudoinverse; singular values up to max(atol, rtol * the largest one) count as 0."""
    if A.size == 0:
        return jnp.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)

    @jax.custom_jvp
    def invert(A, atol, rtol):
        if hermitian:
            s, U = jnp.linalg.eigh(hermitian_of(A))
            Vh = adjoint(U)
        else:
            U, s, Vh = jnp.linalg.svd(A, full_matrices=False)
        kept = counted(jnp.abs(s), atol, rtol)
        return (adjoint(Vh) * jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)[..., None, :]) @ adjoint(U)

    @invert.defjvp
    def tangent(primals, tangents):
        A, dA = primals[0], tangents[0]
        P = invert(*primals)
        row_part = P @ adjoint(P) @ (adjoint(dA) - adjoint(dA) @ A @ P)
        column_part = (adjoint(dA) - P @ A @ adjoint(dA)) @ adjoint(P) @ P
        return P, row_part + column_part - P @ dA @ P

    return invert(A, *tolerances(A, atol, rtol))


def lstsq(A, B, rcond=None, driver="gelsy"):
    """X that minimises |A X - B|; residuals, rank and singular values where PyTorch's driver gives them, else empty."""
    none = jnp.zeros(0, A.dtype)
    x = jnp.matmul(pinv(A, rtol=rcond), B)
    has_residuals = A.shape[-2] > A.shape[-1] and driver != "gelsy"
    residuals = jnp.sum(jnp.abs(jnp.matmul(A, x) - B) ** 2, axis=-2) if has_residuals else none
    rank = none.astype(int) if driver == "gels" else matrix_rank(A, rtol=rcond)
    return LeastSquares(x, residuals, rank, jnp.linalg.svdvals(A) if driver in ("gelsd", "gelss") else none)


def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False):
    """Norm of the matrices in the two axes dim; the gradient is 0 where it is 0."""
    dim = tuple(d % input.ndim for d in dim)
    if ord == "fro":
        return vector_norm(input, 2, dim, keepdim)
    x = jnp.moveaxis(input, dim, (-2, -1))
    size = jnp.linalg.svdvals(x) if ord in ("nuc", 2, -2) else jnp.sum(absolute(x), axis=-2 if abs(ord) == 1 else -1)
    pick = jnp.sum if ord == "nuc" or not size.size else jnp.max if ord > 0 else jnp.min
    norm = pick(size, axis=-1)
    return jnp.expand_dims(norm, dim) if keepdim else norm


def norm(input, ord=None, dim=None, keepdim=False):
    """Norm of vectors (dim a number, or one axis) or of matrices (two axes); without ord of all elements."""
    axes = dim if dim is None or isinstance(dim, int) else tuple(dim)
    if ord is None or isinstance(axes, int) or (axes is None and input.ndim == 1) or (axes is not None and len(axes) == 1):
        return vector_norm(input, 2 if ord is None else ord, axes, keepdim)
    return matrix_norm(input, ord, (-2, -1) if axes is None else axes, keepdim)


def cond(A, p=None):
    """Norm of A times norm of its inverse."""
    if p in (None, 2, -2):
        s = jnp.linalg.svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(jnp.linalg.inv(A), p)


def cross(input, other):
    """Cross product along the first axis of size 3."""
    shape = jnp.broadcast_shapes(input.shape, other.shape)
    return jnp.cross(input, other, axis=shape.index(3))


def vander(x, N=None):
    """Powers 0 to N - 1 of the elements, as a last axis."""
    x = jnp.atleast_1d(x)
    return x[..., None] ** jnp.arange(x.shape[-1] if N is None else N)
