"""Reductions whose results, or whose gradients among equal elements and at zero, jax.numpy has otherwise."""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.pointwise import absolute


class ValuesIndices(NamedTuple):
    """Elements along an axis, and where they are."""

    values: jax.Array
    indices: jax.Array


class MinMax(NamedTuple):
    """Smallest and largest elements."""

    min: jax.Array
    max: jax.Array


def values_at(find, input, dim, keepdim):
    """The elements along dim that `find(input, dim)` gives the indices of; only those get a gradient."""
    input = jnp.asarray(input)
    if input.ndim == 0:
        return ValuesIndices(input, jnp.zeros((), int))
    indices = jnp.expand_dims(find(jax.lax.stop_gradient(input), dim), dim)
    values = jnp.take_along_axis(input, indices, axis=dim)
    return ValuesIndices(values, indices) if keepdim else ValuesIndices(jnp.squeeze(values, dim), jnp.squeeze(indices, dim))


def extreme_dim(best, where, input, dim, keepdim):
    """The extreme elements along dim and the first indices of them; only those get a gradient."""
    input = jnp.asarray(input)
    if input.ndim == 0:
        return ValuesIndices(input, jnp.zeros((), int))

    @jax.custom_jvp
    def find(x):
        return best(x, axis=dim, keepdims=True), where(x, axis=dim, keepdims=True)

    @find.defjvp
    def tangent(primals, tangents):
        values, indices = find(*primals)
        return (values, indices), (jnp.take_along_axis(tangents[0], indices, axis=dim), np.zeros(indices.shape, jax.dtypes.float0))

    values, indices = find(input)
    return ValuesIndices(values, indices) if keepdim else ValuesIndices(jnp.squeeze(values, dim), jnp.squeeze(indices, dim))


def max_dim(input, dim, keepdim=False):
    """Largest elements along dim, and the first indices of them."""
    return extreme_dim(jnp.max, jnp.argmax, input, dim, keepdim)


def min_dim(input, dim, keepdim=False):
    """Smallest elements along dim, and the first indices of them."""
    return extreme_dim(jnp.min, jnp.argmin, input, dim, keepdim)


def max_or_maximum(input, dim, keepdim=False):
    """`max_dim` where dim is a number, the elementwise maximum where it is an array."""
    return max_dim(input, dim, keepdim) if isinstance(dim, int) else jnp.maximum(input, dim)


def min_or_minimum(input, dim, keepdim=False):
    """`min_dim` where dim is a number, the elementwise minimum where it is an array."""
    return min_dim(input, dim, keepdim) if isinstance(dim, int) else jnp.minimum(input, dim)


def aminmax(input, dim=None, keepdim=False):
    """Smallest and largest elements, over all axes or along one."""
    dim = None if jnp.ndim(input) == 0 else dim
    return MinMax(jnp.min(input, axis=dim, keepdims=keepdim), jnp.max(input, axis=dim, keepdims=keepdim))


def kth_index(input, k, dim):
    """Index of the k-th smallest element along dim, counted from 0; NaN is the largest."""
    return jnp.take_along_axis(jnp.argsort(input, axis=dim), jnp.expand_dims(k, dim), axis=dim).squeeze(dim)


def kthvalue(input, k, dim=-1, keepdim=False):
    """The k-th smallest elements along dim, counted from 1."""
    return values_at(lambda x, axis: jnp.take(jnp.argsort(x, axis=axis), k - 1, axis=axis), input, dim, keepdim)


def nanmedian_index(input, dim):
    """Index along dim of the lower median of the elements that are not NaN."""
    count = jnp.sum(~jnp.isnan(input), axis=dim)
    return kth_index(input, jnp.maximum(count - 1, 0) // 2, dim)


def median_index(input, dim):
    """Index of the lower median along dim, or of the first NaN."""
    nan = jnp.isnan(input)
    return jnp.where(nan.any(dim), nan.argmax(dim), nanmedian_index(input, dim))


def median_dim(input, dim=-1, keepdim=False):
    """The lower of the two middle elements along dim; NaN if there is one."""
    return values_at(median_index, input, dim, keepdim)


def nanmedian_dim(input, dim=-1, keepdim=False):
    """The lower of the two middle elements along dim, without NaN."""
    return values_at(nanmedian_index, input, dim, keepdim)


def shared_among_equal(input, value):
    """value, one of the elements of input, with its gradient shared evenly among the elements equal to it."""
    value = jax.lax.stop_gradient(value)
    if jnp.issubdtype(value.dtype, jnp.integer):
        return value
    equal = (input == value) | (jnp.isnan(input) & jnp.isnan(value))
    return value + jnp.mean(input - jax.lax.stop_gradient(input), where=equal)


def median(input):
    """The lower median of all elements; NaN if there is one."""
    return shared_among_equal(input, median_dim(jnp.ravel(input), 0).values)


def nanmedian(input):
    """The lower median of all elements, without NaN."""
    return shared_among_equal(input, nanmedian_dim(jnp.ravel(input), 0).values)


def mode_index(input, dim):
    """Last index along dim of the most frequent element, the smallest of those if several are."""
    x = jnp.moveaxis(input, dim, -1)
    place, ordered = jnp.arange(x.shape[-1]), jnp.sort(x, axis=-1)
    new = jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], -1)
    length = place - jax.lax.cummax(jnp.where(new, place, 0), axis=x.ndim - 1)  # of the run of equal ones so far
    value = jnp.take_along_axis(ordered, jnp.argmax(length, axis=-1, keepdims=True), axis=-1)
    return jnp.max(jnp.where((x == value) | (value != value), place, 0), axis=-1)


def mode(input, dim=-1, keepdim=False):
    """The most frequent elements along dim, the smallest of those if several are."""
    return values_at(mode_index, input, dim, keepdim)


def cumulative_extremum(input, dim, extreme):
    """The extreme element so far along dim, and its index; of equal ones the last. Only those get a gradient."""
    def later(a, b):
        value = extreme(a[0], b[0])  # NaN, where one of them is
        return value, jnp.where((b[0] == value) | (b[0] != b[0]), b[1], a[1])

    input = jnp.asarray(input)
    if input.ndim == 0:
        return ValuesIndices(input, jnp.zeros((), int))
    axis = dim % input.ndim

    @jax.custom_jvp
    def find(input):
        return jax.lax.associative_scan(later, (input, jax.lax.broadcasted_iota(int, input.shape, axis)), axis=axis)

    @find.defjvp
    def of_those(primals, tangents):
        values, indices = find(*primals)
        return (values, indices), (jnp.take_along_axis(tangents[0], indices, axis=axis), np.zeros(indices.shape, jax.dtypes.float0))

    return ValuesIndices(*find(input))


def cummax(input, dim):
    """Largest elements so far along dim, and where they were."""
    return cumulative_extremum(input, dim, jnp.maximum)


def cummin(input, dim):
    """Smallest elements so far along dim, and where they were."""
    return cumulative_extremum(input, dim, jnp.minimum)


def std(input, dim=None, correction=1, keepdim=False):
    """Standard deviation, divided by n - correction, with gradient 0 where it is 0."""
    dim = None if jnp.ndim(input) == 0 else dim
    var = jnp.var(input, axis=dim, ddof=correction, keepdims=keepdim)
    return jnp.where(var == 0, 0, jnp.sqrt(jnp.where(var == 0, 1, var)))


def variance(input, dim=None, correction=1, keepdim=False):
    """Variance, divided by n - correction, or by 0 where that is negative."""
    dim = None if jnp.ndim(input) == 0 else dim
    var = jnp.var(input, axis=dim, keepdims=keepdim)
    n = jnp.size(input) // max(var.size, 1)
    return var * n / jnp.maximum(n - correction, 0)


def deviation(input, dim=None, correction=1, keepdim=False):
    """Standard deviation, divided by n - correction, or by 0 where that is negative, with gradient 0 where it is 0."""
    var = variance(input, dim, correction, keepdim)
    return jnp.where(var == 0, 0, jnp.sqrt(jnp.where(var == 0, 1, var)))


def std_mean(input, dim=None, correction=1, keepdim=False):
    """Standard deviation, divided by n - correction, and mean."""
    dim = None if jnp.ndim(input) == 0 else dim
    return deviation(input, dim, correction, keepdim), jnp.mean(input, axis=dim, keepdims=keepdim)


def var_mean(input, dim=None, correction=1, keepdim=False):
    """Variance, divided by n - correction, and mean."""
    dim = None if jnp.ndim(input) == 0 else dim
    return variance(input, dim, correction, keepdim), jnp.mean(input, axis=dim, keepdims=keepdim)


def vector_norm(input, ord=2, dim=None, keepdim=False):
    """(sum of |input| ** ord) ** (1 / ord) over dim, None being all axes; the gradient is 0 where it is 0."""
    input = jnp.asarray(input)
    size = absolute(input)
    dim = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    dim = None if dim == () or size.ndim == 0 else dim
    axes = range(size.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    if ord != 0 and all(size.shape[i] == 1 for i in axes):  # one value: its own length, in the gradient too
        return size if keepdim else jnp.squeeze(size, axis=dim)
    if ord in (float("inf"), float("-inf")):
        return (jnp.max if ord > 0 else jnp.min)(size, axis=dim, keepdims=keepdim)
    if ord == 0:
        return jnp.sum(size != 0, axis=dim, keepdims=keepdim).astype(size.dtype)
    if ord == 1:
        return jnp.sum(size, axis=dim, keepdims=keepdim)
    powers = size**ord if ord != 2 else input * input if jnp.isrealobj(input) else input.real**2 + input.imag**2
    total = jnp.sum(powers, axis=dim, keepdims=keepdim)
    safe = jnp.where(total == 0, 1, total)
    return jnp.where(total == 0, 0, jnp.sqrt(safe) if ord == 2 else safe ** (1 / ord))


def all_true(input, dim=None, keepdim=False):
    """Whether all elements are true; of uint8 the result is uint8."""
    found = jnp.all(input, axis=None if dim == () else dim, keepdims=keepdim)
    return found.astype(input.dtype) if input.dtype == jnp.uint8 else found


def any_true(input, dim=None, keepdim=False):
    """Whether an element is true; of uint8 the result is uint8."""
    found = jnp.any(input, axis=None if dim == () else dim, keepdims=keepdim)
    return found.astype(input.dtype) if input.dtype == jnp.uint8 else found
