"""Norms and distances."""
import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.pointwise import absolute
from migrate.support.jax.reductions import vector_norm


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """x / max(|x|_p, eps) along `dim`."""
    norm = vector_norm(input, p, dim, keepdim=True)
    return quotient(input, jnp.where(norm < eps, eps, norm))


def quotient(x, length):
    """x / length, whose derivative is exactly 0 where a number is divided by its own length."""

    @jax.custom_jvp
    def divide(x, length):
        return x / length

    @divide.defjvp
    def tangent(primals, tangents):
        y = divide(*primals)
        return y, (tangents[0] - y * tangents[1]) / primals[1]

    return divide(x, length)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle along `dim`; norms count as eps at least."""
    x1, x2 = jnp.broadcast_arrays(x1, x2)
    norms = [vector_norm(x, 2, dim, keepdim=True) for x in (x1, x2)]
    # the floor has no derivative of its own: the norm's passes through it
    n1, n2 = (n + jax.lax.stop_gradient(jnp.maximum(n, eps) - n) for n in norms)
    return ((x1 * (1 / n1)) * (x2 * (1 / n2))).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """|x1 - x2 + eps|_p along the last axis."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(input, p=2.0):
    """(N, M) -> the distances of all pairs i < j, (N * (N - 1) / 2,)."""
    i, j = np.triu_indices(input.shape[0], 1)
    difference = input[i] - input[j]
    if p != np.inf:
        return vector_norm(difference, p, -1)
    size = absolute(difference)
    largest = jax.lax.stop_gradient(size.max(-1, keepdims=True))
    # each of several largest gets the whole derivative
    return jnp.where(size == largest, size - jax.lax.stop_gradient(size), 0).sum(-1) + largest[:, 0]


def bilinear(input1, input2, weight, bias=None):
    """(..., a), (..., b) by weight (out, a, b) -> (..., out)."""
    out = jnp.einsum("...a,oab,...b->...o", input1, weight, input2)
    return out if bias is None else out + bias
