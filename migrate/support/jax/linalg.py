"""Linear algebra with PyTorch's results, argument orders and tolerances."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from migrate.support.jax.pointwise import absolute
from migrate.support.jax.reductions import vector_norm


class Factor(NamedTuple):
    """A Cholesky factor, and which matrices failed (0: none)."""

    L: jax.Array
    info: jax.Array


class Inverse(NamedTuple):
    """Inverse matrices, and which of them failed (0: none)."""

    inverse: jax.Array
    info: jax.Array


class Result(NamedTuple):
    """A solution, and which matrices failed (0: none)."""

    result: jax.Array
    info: jax.Array


class LU(NamedTuple):
    """A packed LU factorisation and its row exchanges, counted from 1."""

    LU: jax.Array
    pivots: jax.Array


class LUInfo(NamedTuple):
    """`LU`, and which matrices failed (0: none)."""

    LU: jax.Array
    pivots: jax.Array
    info: jax.Array


class PLU(NamedTuple):
    """Permutation, lower and upper factor."""

    P: jax.Array
    L: jax.Array
    U: jax.Array


class SVD(NamedTuple):
    """Singular value decomposition, V not transposed."""

    U: jax.Array
    S: jax.Array
    V: jax.Array


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


class QR(NamedTuple):
    """Householder vectors below R, and their factors."""

    a: jax.Array
    tau: jax.Array


def adjoint(x):
    """Conjugate transpose of the last two axes."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def failed(*arrays):
    """1 for each matrix with a value that is not finite, else 0."""
    bad = [~jnp.isfinite(a).all((-2, -1)) for a in arrays]
    return jnp.stack(bad).any(0).astype(jnp.int32)


def cholesky_ex(input, upper=False):
    """Cholesky factor and failures."""
    factor = jnp.linalg.cholesky(input, upper=upper)
    return Factor(factor, failed(factor))


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


def lu_factor(A):
    """Packed LU factors and pivots."""
    packed, pivots, _ = jax.lax.linalg.lu(A)
    return LU(packed, pivots + 1)


def lu_factor_ex(A):
    """`lu_factor`, and which matrices have a zero pivot (its number; 0: none)."""
    packed, pivots = lu_factor(A)
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), zero.argmax(-1) + 1, 0)
    return LUInfo(packed, pivots, info.astype(jnp.int32))


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U of packed factors; what is not asked for is empty."""
    m, n = LU_data.shape[-2:]
    none = jnp.zeros(0, LU_data.dtype)
    P = L = U = none
    if unpack_data:
        k = min(m, n)
        L = jnp.tril(LU_data[..., :, :k], -1) + jnp.eye(m, k, dtype=LU_data.dtype)
        U = jnp.triu(LU_data[..., :k, :])
    if unpack_pivots:
        order = jax.lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, m)
        P = jnp.swapaxes(jax.nn.one_hot(order, m, dtype=LU_data.dtype), -1, -2)
    return PLU(P, L, U)


def lu(A):
    """A = P L U."""
    return lu_unpack(*lu_factor(A))


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X of A X = B (or X A = B; adjoint: with A^H), from the LU factors of A."""
    P, L, U = lu_unpack(LU, pivots)
    A = P @ L @ U
    A = jnp.conj(jnp.swapaxes(A, -1, -2)) if adjoint else A
    return jnp.linalg.solve(A, B) if left else jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(A, -1, -2), jnp.swapaxes(B, -1, -2)), -1, -2)


def logdet(A):
    """Logarithm of the determinant; NaN where it is negative."""
    sign, log = jnp.linalg.slogdet(A)
    return log + jnp.log(sign)


def svd(input, some=True):
    """U, S and V with input = U diag(S) V^H; some: only the needed columns."""
    U, S, Vh = jnp.linalg.svd(input, full_matrices=not some)
    return SVD(U, S, adjoint(Vh))


def hermitian_of(A, upper=False):
    """The hermitian matrix with the lower (or upper) triangle of A; the gradient goes to both."""
    full = jnp.triu(A) + adjoint(jnp.triu(A, 1)) if upper else jnp.tril(A) + adjoint(jnp.tril(A, -1))
    mean = (A + adjoint(A)) / 2
    return mean + jax.lax.stop_gradient(full - mean)


def eigh(A, UPLO="L"):
    """Eigenvalues and eigenvectors of the hermitian matrix with one triangle of A."""
    return jnp.linalg.eigh(hermitian_of(A, UPLO == "U"))


def eigvalsh(A, UPLO="L"):
    """Eigenvalues of the hermitian matrix with one triangle of A."""
    return jnp.linalg.eigvalsh(hermitian_of(A, UPLO == "U"))


def magnitudes(A, hermitian):
    """Singular values; of a hermitian matrix by its eigenvalues."""
    return jnp.abs(jnp.linalg.eigvalsh(hermitian_of(A))) if hermitian else jnp.linalg.svdvals(A)


def cutoff(A, atol, rtol, hermitian):
    """Up to where singular values count as 0: max(atol, rtol * the largest one); by default rtol is epsilon times the larger size."""
    if rtol is None:
        rtol = 0.0 if atol is not None else jnp.finfo(A.dtype).eps * max(A.shape[-2:])
    largest = jax.lax.stop_gradient(magnitudes(A, hermitian)).max(-1, initial=0)
    return jnp.maximum(0 if atol is None else atol, rtol * largest)


def matrix_rank(A, *, atol=None, rtol=None, hermitian=False):
    """How many singular values are larger than max(atol, rtol * the largest one)."""
    return jnp.sum(magnitudes(A, hermitian) > cutoff(A, atol, rtol, hermitian)[..., None], axis=-1)


def pinv(A, *, atol=None, rtol=None, hermitian=False):
    """Pseudoinverse; singular values up to max(atol, rtol * the largest one) count as 0."""
    @jax.custom_jvp
    def invert(A, limit):
        if hermitian:
            s, U = jnp.linalg.eigh(hermitian_of(A))
            Vh = adjoint(U)
        else:
            U, s, Vh = jnp.linalg.svd(A, full_matrices=False)
        kept = jnp.abs(s) > limit
        return (adjoint(Vh) * jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)[..., None, :]) @ adjoint(U)

    @invert.defjvp
    def tangent(primals, tangents):
        (A, limit), (dA, _) = primals, tangents
        P = invert(A, limit)
        row_part = P @ adjoint(P) @ (adjoint(dA) - adjoint(dA) @ A @ P)
        column_part = (adjoint(dA) - P @ A @ adjoint(dA)) @ adjoint(P) @ P
        return P, row_part + column_part - P @ dA @ P

    return invert(A, cutoff(A, atol, rtol, hermitian)[..., None])


def lstsq(A, B, rcond=None, driver="gelsy"):
    """X that minimises |A X - B|; residuals, rank and singular values where PyTorch's driver gives them, else empty."""
    none = jnp.zeros(0, A.dtype)
    x = jnp.matmul(pinv(A, rtol=rcond), B)
    has_residuals = A.shape[-2] > A.shape[-1] and driver != "gelsy"
    residuals = jnp.sum(jnp.abs(jnp.matmul(A, x) - B) ** 2, axis=-2) if has_residuals else none
    rank = none.astype(int) if driver == "gels" else matrix_rank(A, rtol=rcond)
    return LeastSquares(x, residuals, rank, jnp.linalg.svdvals(A) if driver in ("gelsd", "gelss") else none)


def geqrf(input):
    """Householder form of a QR decomposition."""
    packed, tau = jnp.linalg.qr(input, mode="raw")
    return QR(jnp.swapaxes(packed, -1, -2), tau)


def reflect(A, tau, X, last_first=True):
    """X after the Householder reflections in the columns of A, the last one first."""
    k = tau.shape[-1]
    V = jnp.tril(A[..., :k], -1) + jnp.eye(A.shape[-2], k, dtype=A.dtype)
    for i in reversed(range(k)) if last_first else range(k):
        v = V[..., i : i + 1]
        factor = tau[..., i : i + 1, None] if last_first else jnp.conj(tau[..., i : i + 1, None])
        X = X - factor * v @ (adjoint(v) @ X)
    return X


def householder_product(A, tau):
    """The first columns of the product of the reflections in A: (..., m, n) -> (..., m, n)."""
    return reflect(A, tau, jnp.eye(*A.shape[-2:], dtype=A.dtype))


def ormqr(input, tau, other, left=True, transpose=False):
    """Q other (or other Q; transpose: with Q^H), Q being the product of the reflections in input."""
    if left:
        return reflect(input, tau, other, last_first=not transpose)
    return adjoint(reflect(input, tau, adjoint(other), last_first=transpose))


def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False):
    """Norm of the matrices in the two axes dim; the gradient is 0 where it is 0."""
    dim = tuple(d % input.ndim for d in dim)
    if ord == "fro":
        return vector_norm(input, 2, dim, keepdim)
    x = jnp.moveaxis(input, dim, (-2, -1))
    size = jnp.linalg.svdvals(x) if ord in ("nuc", 2, -2) else jnp.sum(absolute(x), axis=-2 if abs(ord) == 1 else -1)
    pick = jnp.sum if ord == "nuc" else jnp.max if ord > 0 else jnp.min
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
