"""Decompositions of matrices with PyTorch's results and argument orders."""
from typing import NamedTuple

import jax
import jax.numpy as jnp


def adjoint(x):
    """Conjugate transpose of the last two axes."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def hermitian_of(A, upper=False):
    """The hermitian matrix with the lower (or upper) triangle of A; the gradient goes to both."""
    full = jnp.triu(A) + adjoint(jnp.triu(A, 1)) if upper else jnp.tril(A) + adjoint(jnp.tril(A, -1))
    mean = (A + adjoint(A)) / 2
    return mean + jax.lax.stop_gradient(full - mean)


def failed(*arrays):
    """1 for each matrix with a value that is not finite, else 0."""
    bad = [~jnp.isfinite(a).all((-2, -1)) for a in arrays]
    return jnp.stack(bad).any(0).astype(jnp.int32)


class Factor(NamedTuple):
    """A Cholesky factor, and which matrices failed (0: none)."""

    L: jax.Array
    info: jax.Array


def cholesky_ex(input, upper=False):
    """Cholesky factor and failures."""
    factor = jnp.linalg.cholesky(input, upper=upper)
    return Factor(factor, failed(factor))


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


class SVD(NamedTuple):
    """Singular value decomposition, V not transposed."""

    U: jax.Array
    S: jax.Array
    V: jax.Array


def svd(input, some=True):
    """U, S and V with input = U diag(S) V^H; some: only the needed columns."""
    U, S, Vh = jnp.linalg.svd(input, full_matrices=not some)
    return SVD(U, S, adjoint(Vh))


def eigh(A, UPLO="L"):
    """Eigenvalues and eigenvectors of the hermitian matrix with one triangle of A."""
    return jnp.linalg.eigh(hermitian_of(A, UPLO == "U"))


def eigvalsh(A, UPLO="L"):
    """Eigenvalues of the hermitian matrix with one triangle of A."""
    return jnp.linalg.eigvalsh(hermitian_of(A, UPLO == "U"))


class QR(NamedTuple):
    """Householder vectors below R, and their factors."""

    a: jax.Array
    tau: jax.Array


def geqrf(input):
    """Householder form of a QR decomposition."""
    packed, tau = jnp.linalg.qr(input, mode="raw")
    return QR(jnp.swapaxes(packed, -1, -2), tau)


def reflect(A, tau, X, last_first=True):
    """X after the Householder reflections in the columns of A, the last one first (else the first one first, each conjugated).

    Their product is 1 - V T V^H, where T solves (1 + tau * triu(V^H V, 1)) T = tau.
    """
    k = tau.shape[-1]
    V = jnp.tril(A[..., :k], -1) + jnp.eye(A.shape[-2], k, dtype=A.dtype)
    system = jnp.eye(k, dtype=A.dtype) + tau[..., None] * jnp.triu(adjoint(V) @ V, 1)
    Y = adjoint(V) @ X
    if last_first:
        return X - V @ jax.lax.linalg.triangular_solve(system, tau[..., None] * Y, left_side=True, unit_diagonal=True)
    solved = jax.lax.linalg.triangular_solve(system, Y, left_side=True, unit_diagonal=True, transpose_a=True, conjugate_a=True)
    return X - V @ (jnp.conj(tau)[..., None] * solved)


def householder_product(A, tau):
    """The first columns of the product of the reflections in A: (..., m, n) -> (..., m, n)."""
    return reflect(A, tau, jnp.eye(*A.shape[-2:], dtype=A.dtype))


def ormqr(input, tau, other, left=True, transpose=False):
    """Q other (or other Q; transpose: with Q^H), Q being the product of the reflections in input."""
    if left:
        return reflect(input, tau, other, last_first=not transpose)
    return adjoint(reflect(input, tau, adjoint(other), last_first=transpose))
