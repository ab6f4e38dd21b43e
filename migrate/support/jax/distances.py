"""Norms and distances; the derivative of a norm at 0 is 0, as in PyTorch."""
import jax
import jax.numpy as jnp
import numpy as np


def p_norm(x, p=2.0, axis=-1, keepdims=False):
    """(sum |x|^p)^(1/p) along an axis; p may be 0 or infinite."""
    size = x * jnp.sign(x)  # |x|, with derivative 0 at 0
    if p == 0:
        return (x != 0).sum(axis, keepdims=keepdims).astype(x.dtype)
    if np.isinf(p):
        return size.max(axis, keepdims=keepdims) if p > 0 else size.min(axis, keepdims=keepdims)
    if p == 1:
        return size.sum(axis, keepdims=keepdims)
    total = jnp.where(x == 0, 0.0 if p > 0 else jnp.inf, jnp.where(x == 0, 1, size) ** p).sum(axis, keepdims=keepdims)
    zero = (total == 0) | jnp.isinf(total)
    return jnp.where(zero, jax.lax.stop_gradient(total) ** (1 / p), jnp.where(zero, 1, total) ** (1 / p))


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """x / max(|x|_p, eps) along `dim`."""
    norm = p_norm(input, p, dim, keepdims=True)
    return input / jnp.where(norm < eps, eps, norm)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle along `dim`; norms count as eps at least."""
    x1, x2 = jnp.broadcast_arrays(x1, x2)
    norms = [p_norm(x, 2, dim, keepdims=True) for x in (x1, x2)]
    # the floor has no derivative of its own: the norm's passes through it
    n1, n2 = (n + jax.lax.stop_gradient(jnp.maximum(n, eps) - n) for n in norms)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """|x1 - x2 + eps|_p along the last axis."""
    return p_norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(input, p=2.0):
    """(N, M) -> the distances of all pairs i < j, (N * (N - 1) / 2,)."""
    i, j = np.triu_indices(input.shape[0], 1)
    difference = input[i] - input[j]
    if p != np.inf:
        return p_norm(difference, p)
    size = difference * jnp.sign(difference)
    largest = jax.lax.stop_gradient(size.max(-1, keepdims=True))
    # each of several largest gets the whole derivative
    return jnp.where(size == largest, size - jax.lax.stop_gradient(size), 0).sum(-1) + largest[:, 0]


def bilinear(input1, input2, weight, bias=None):
    """(..., a), (..., b) by weight (out, a, b) -> (..., out)."""
    out = jnp.einsum("...a,oab,...b->...o", input1, weight, input2)
    return out if bias is None else out + bias
