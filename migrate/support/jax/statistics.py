"""Counts, integrals and distances."""
import math

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.reductions import vector_norm


def corrcoef(input):
    """Correlations of the rows; of a single row 1."""
    covariance = jnp.cov(input)
    return jnp.corrcoef(input) if covariance.ndim else jax.lax.stop_gradient(covariance / covariance)


def histc(input, bins=100, min=0, max=0):
    """How many elements fall into each of `bins` equal bins of [min, max]; the range of the data if both are equal."""
    input = jnp.ravel(input)
    low, high = (min, max) if min != max or not input.size else (input.min(), input.max())
    low, high = jnp.where(low == high, low - 1, low), jnp.where(low == high, high + 1, high)
    inside = (input >= low) & (input <= high)
    index = jnp.clip(((input - low) * bins / (high - low)).astype(int), 0, bins - 1)
    return jnp.zeros(bins, input.dtype).at[index].add(inside.astype(input.dtype))


def steps(x, dx, dim, ndim):
    """Distances between neighbours along dim, of given points or evenly spaced."""
    if x is None:
        return 1 if dx is None else dx
    if x.ndim == 1:
        x = x.reshape([-1 if axis == dim % ndim else 1 for axis in range(ndim)])
    return jnp.diff(x.reshape((1,) * (ndim - x.ndim) + x.shape), axis=dim)


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """Running integral of y along dim by the trapezoidal rule; one element less than y has."""
    n = y.shape[dim]
    first, second = jax.lax.slice_in_dim(y, 0, max(n - 1, 0), axis=dim), jax.lax.slice_in_dim(y, min(n, 1), n, axis=dim)
    return jnp.cumsum(steps(x, dx, dim, y.ndim) * (first + second) / 2, axis=dim)


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integral of y along dim by the trapezoidal rule."""
    if y.shape[dim] == 0:
        return jnp.sum(y, axis=dim)
    if x is not None and x.ndim > 1:
        x = x.reshape((1,) * (y.ndim - x.ndim) + x.shape)
    return jnp.trapezoid(y, x, 1 if dx is None else dx, axis=dim)


def cdist(x1, x2, p=2.0):
    """Distances between all pairs: (..., P, M), (..., R, M) -> (..., P, R); the gradient is 0 where they are 0."""
    if p != 2 or max(x1.shape[-2], x2.shape[-2]) <= 25:
        return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)
    products = jnp.matmul(x1, jnp.swapaxes(x2, -1, -2), precision="highest")  # many points: as PyTorch, without the differences
    squares = jnp.square(x1).sum(-1)[..., :, None] + jnp.square(x2).sum(-1)[..., None, :] - 2 * products
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


def renorm(input, p, dim, maxnorm):
    """input with every slice along dim scaled down to a norm of at most maxnorm."""
    others = tuple(axis for axis in range(input.ndim) if axis != dim % input.ndim)
    norm = vector_norm(input, p, others, keepdim=True)
    return input * jnp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


def slope(input, spacing, dim, edge_order):
    """Derivative of input along dim; spacing is one step, or the points."""
    dim = dim % input.ndim
    def part(x, start, stop):
        return jax.lax.slice_in_dim(x, start, stop, axis=dim)

    if jnp.ndim(spacing):
        h = jnp.diff(spacing).reshape([-1 if axis == dim else 1 for axis in range(input.ndim)])
        d, a, b = jnp.diff(input, axis=dim) / h, part(h, 0, -1), part(h, 1, None)
        inner = (b * part(d, 0, -1) + a * part(d, 1, None)) / (a + b)
        first, last = (part(a, 0, 1) / part(a + b, 0, 1), part(b, -1, None) / part(a + b, -1, None)) if edge_order == 2 else (0, 0)
    else:
        d, inner = jnp.diff(input, axis=dim) / spacing, (part(input, 2, None) - part(input, 0, -2)) / (2 * spacing)
        first = last = 0.5
    left, right = part(d, 0, 1), part(d, -1, None)
    if edge_order == 2:
        left = left + (left - part(d, 1, 2)) * first
        right = right + (right - part(d, -2, -1)) * last
    return jnp.concatenate([left, inner, right], dim)


def gradient(input, spacing=1, dim=None, edge_order=1):
    """Derivatives of sampled values along each of dim; spacing is one step, or for each axis a step or the points."""
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    spacings = spacing if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    return tuple(slope(input, h, d, edge_order) for d, h in zip(dims, spacings))


def histogram(input, bins, range=None, weight=None, density=False):
    """Counts (or weights, or densities) in bins, in input's dtype, and the edges of the bins."""
    weight = None if weight is None else jnp.ravel(weight)
    range = range or (None if input.size else (0, 1))
    hist, edges = jnp.histogram(input, bins, None if range is None else tuple(range), weight, density)
    return hist.astype(input.dtype), edges.astype(input.dtype)


def histogramdd(input, bins, range=None, weight=None, density=False):
    """Counts of points (..., D) in D-dimensional bins, in input's dtype, and the edges of each dimension."""
    points = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    range = range or (None if input.size else (0, 1) * points.shape[-1])
    pairs = None if range is None else [tuple(range[i : i + 2]) for i in np.arange(0, len(range), 2)]
    weight = None if weight is None else jnp.ravel(weight)
    hist, edges = jnp.histogramdd(points, bins, pairs, weight, density)
    return hist.astype(input.dtype), [e.astype(input.dtype) for e in edges]
