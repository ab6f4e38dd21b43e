"""Writing by index; each function returns a new array."""
import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.shapes import strided_positions


def at_dim(input, dim, index):
    """The place of `index` along `dim`, all of the other dimensions, as input.at[...] takes it."""
    return (slice(None),) * (dim % input.ndim) + (index,)


def positions(dim, index):
    """Where each element of `index` points: its own place, but for `dim`, where it is the value."""
    grid = list(jnp.indices(index.shape, sparse=True))
    grid[dim % index.ndim] = index
    return tuple(grid)


def scatter(input, dim, index, src, reduce=None):
    """input with out[index[i][j]][j] = src[i][j] (dim 0); `src` is an array, whose leading part is used, or a number."""
    if input.ndim == 0:
        return scatter(input[None], 0, index.reshape(1), jnp.reshape(src, -1), reduce)[0]
    if jnp.ndim(src):
        src = src[tuple(slice(n) for n in index.shape)]
    place = input.at[positions(dim, index)]
    if reduce is None:
        return place.set(src)
    return place.multiply(src) if reduce == "multiply" else place.add(src)


def scatter_add(input, dim, index, src):
    """input with src[i][j] added to out[index[i][j]][j] (dim 0)."""
    return scatter(input, dim, index, src, reduce="add")


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """input reduced with the values of `src` that point to each place: sum, prod, mean, amax or amin.

    The gradient of amax and amin is shared by all that are equal to the result.
    """
    if input.ndim == 0:
        return scatter_reduce(input[None], 0, index.reshape(1), src.reshape(-1), reduce, include_self=include_self)[0]
    return reduced_at(input, src[tuple(slice(n) for n in index.shape)], positions(dim, index), reduce, include_self)


def reduced_at(input, src, place, reduce, include_self):
    """input reduced with what `src` sends to each `place`, a tuple of index arrays."""
    if reduce in ("amax", "amin"):
        return scatter_extreme(input, src, place, reduce == "amax", include_self)
    if not include_self:
        input = input.at[place].set(1 if reduce == "prod" else 0)
    if reduce == "prod":
        return scatter_product(input, src, place)
    total = input.at[place].add(src)
    if reduce == "sum":
        return total
    count = jnp.ones(input.shape, int)
    count = (count if include_self else count.at[place].set(0)).at[place].add(1)
    return total / count if jnp.issubdtype(input.dtype, jnp.inexact) else total // count


def scatter_extreme(input, src, place, largest, include_self):
    """The largest (or smallest) of what `place` sends to each element; all that are equal to it share the gradient."""

    @jax.custom_jvp
    def extreme(input, src, place):
        if not include_self:
            input = input.at[place].set(src)
        return input.at[place].max(src) if largest else input.at[place].min(src)

    @extreme.defjvp
    def tangent(primals, tangents):
        (input, src, place), (input_dot, src_dot, _) = primals, tangents
        out = extreme(input, src, place)
        mine, theirs = (input == out).astype(out.dtype), (src == out[place]).astype(out.dtype)
        share = 1 / jnp.maximum(mine.at[place].add(theirs), 1)
        mine = mine if include_self else mine.at[place].set(0)
        return out, (input_dot * mine).at[place].add(src_dot * theirs) * share

    return extreme(input, src, place)


def scatter_product(input, src, place):
    """input.at[place].multiply(src); the derivative by a factor is the product of the others, zeros among them included."""

    @jax.custom_jvp
    def product(input, src, place):
        return input.at[place].multiply(src)

    @product.defjvp
    def tangent(primals, tangents):
        (input, src, place), (input_dot, src_dot, _) = primals, tangents
        zeros = (input == 0).astype(int).at[place].add(src == 0)
        rest = jnp.where(input == 0, 1, input).at[place].multiply(jnp.where(src == 0, 1, src))  # the product without zeros

        def others(factor, zeros, rest):
            return jnp.where(zeros - (factor == 0) > 0, 0, rest / jnp.where(factor == 0, 1, factor))

        dot = input_dot * others(input, zeros, rest)
        return product(input, src, place), dot.at[place].add(src_dot * others(src, zeros[place], rest[place]))

    return product(input, src, place)


def index_add(input, dim, index, source, *, alpha=1):
    """input with alpha * source added at `index` along `dim`."""
    if input.ndim == 0:
        return input + alpha * jnp.sum(source)
    return input.at[at_dim(input, dim, index)].add(source if alpha == 1 else alpha * source)


def index_copy(input, dim, index, source):
    """input with `source` at `index` along `dim`."""
    if input.ndim == 0:
        return jnp.ravel(source)[-1]
    return input.at[at_dim(input, dim, index)].set(source)


def index_fill(input, dim, index, value):
    """input with one value at `index` along `dim`."""
    if input.ndim == 0:
        return jnp.full_like(input, value)
    return input.at[at_dim(input, dim, index)].set(value)


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """input reduced with the slices of `source` that `index` sends to each place along `dim`: prod, mean, amax or amin."""
    if input.ndim == 0:
        return scatter_reduce(input, 0, index, source, reduce, include_self=include_self)
    rows = reduced_at(jnp.moveaxis(input, dim, 0), jnp.moveaxis(source, dim, 0), (index.reshape(-1),), reduce, include_self)
    return jnp.moveaxis(rows, 0, dim)


def put(input, index, source, accumulate=False):
    """input with `source` written, or added, at positions of the flattened array."""
    place = input.ravel().at[index.ravel()]
    return (place.add(source.ravel()) if accumulate else place.set(source.ravel())).reshape(input.shape)


def select_scatter(input, src, dim, index):
    """input with `src` at one index of `dim`."""
    return input.at[at_dim(input, dim, index)].set(src)


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with `src` at a slice of `dim`."""
    return input.at[at_dim(input, dim, slice(start, end, step))].set(src)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with `src` on a diagonal of the dimensions `dim1` and `dim2`."""
    moved = jnp.moveaxis(input, (dim1, dim2), (-2, -1))
    n = src.shape[-1]
    out = moved.at[..., np.arange(n) + max(-offset, 0), np.arange(n) + max(offset, 0)].set(src)
    return jnp.moveaxis(out, (-2, -1), (dim1, dim2))


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """input with `src` at the positions of the flattened array that `size` and `stride` describe.

    As PyTorch's, the derivative by `input` is 1 where it is overwritten and 0 elsewhere.
    """
    place = strided_positions(size, stride, storage_offset)
    written = np.zeros(input.size, bool)
    written[place] = True

    @jax.custom_jvp
    def write(flat, src):
        return flat.at[place].set(src)

    @write.defjvp
    def tangent(primals, tangents):
        flat, src = tangents
        return write(*primals), jnp.where(written, flat, 0).at[place].add(src)

    return write(input.ravel(), src).reshape(input.shape)
