"""torch.nn.init: each function writes into a variable of Flax or Keras and returns it; given an array, it returns a new one.

A variable that holds a weight in another order of axes than PyTorch's comes with `axes`, the transposition from PyTorch's
order to its own: (1, 0) for the kernel of a linear layer, (2, 3, 1, 0) for that of a convolution in two dimensions.
"""
import math

import jax
import jax.numpy as jnp


def transposition(tensor, axes):
    """`axes` as a tuple; "kernel" is from (out, in, *window) to (*window, in, out)."""
    n = len(tensor.shape)
    return tuple(range(n)) if axes is None or n < 2 else (*range(2, n), 1, 0) if axes == "kernel" else axes


def torch_shape(tensor, axes):
    """The shape in PyTorch's order."""
    axes = transposition(tensor, axes)
    return tuple(tensor.shape[axes.index(i)] for i in range(len(axes)))


def initialized(tensor, value, axes=None):
    """Writes a value in PyTorch's order into the variable."""
    value = jnp.asarray(value, tensor.dtype).transpose(transposition(tensor, axes))
    if isinstance(tensor, jax.Array):
        return value
    (tensor.assign if hasattr(tensor, "assign") else tensor.set_value)(value)
    return tensor


def uniform_(tensor, a=0.0, b=1.0, *, axes=None, rngs):
    """Uniform on [a, b)."""
    return initialized(tensor, jax.random.uniform(rngs.params(), torch_shape(tensor, axes), minval=a, maxval=b), axes)


def normal_(tensor, mean=0.0, std=1.0, *, axes=None, rngs):
    """Normal."""
    return initialized(tensor, mean + std * jax.random.normal(rngs.params(), torch_shape(tensor, axes)), axes)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, *, axes=None, rngs):
    """Normal, but within [a, b]."""
    unit = jax.random.truncated_normal(rngs.params(), (a - mean) / std, (b - mean) / std, torch_shape(tensor, axes))
    return initialized(tensor, jnp.clip(mean + std * unit, a, b), axes)


def constant_(tensor, val):
    """One value everywhere."""
    return initialized(tensor, jnp.full(tensor.shape, val))


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1)


def eye_(tensor, *, axes=None):
    """Ones on the diagonal of a matrix."""
    return initialized(tensor, jnp.eye(*torch_shape(tensor, axes)), axes)


def dirac_(tensor, groups=1, *, axes=None):
    """A convolution that passes its channels on, in each group."""
    out, channels, *window = torch_shape(tensor, axes)
    size = out // groups
    value = jnp.zeros((groups, size, channels, *window))
    n = jnp.arange(min(size, channels))
    value = value.at[(slice(None), n, n, *[k // 2 for k in window])].set(1)
    return initialized(tensor, value.reshape(out, channels, *window), axes)


def fan_in_and_fan_out(tensor, axes=None):
    """Inputs and outputs of one unit as PyTorch counts them: by the dimensions 1 and 0 of the weight, times the window."""
    shape = torch_shape(tensor, axes)
    if len(shape) < 2:
        raise ValueError("fan in and fan out need a tensor with at least 2 dimensions")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def calculate_gain(nonlinearity, param=None):
    """The recommended gain for a nonlinearity; `param` is the negative slope of leaky_relu."""
    slope = 0.01 if param is None else param
    linear = ["linear", "sigmoid", *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))]
    special = {"tanh": 5 / 3, "relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / (1 + slope**2)), "selu": 3 / 4}
    return (dict.fromkeys(linear, 1) | special)[nonlinearity]


def xavier_uniform_(tensor, gain=1.0, *, axes=None, rngs):
    """Uniform, with a variance of gain**2 * 2 / (fan in + fan out)."""
    bound = gain * math.sqrt(6 / sum(fan_in_and_fan_out(tensor, axes)))
    return uniform_(tensor, -bound, bound, axes=axes, rngs=rngs)


def xavier_normal_(tensor, gain=1.0, *, axes=None, rngs):
    """Normal, with a variance of gain**2 * 2 / (fan in + fan out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fan_in_and_fan_out(tensor, axes))), axes=axes, rngs=rngs)


def kaiming_std(tensor, a, mode, nonlinearity, axes):
    """The standard deviation that keeps the scale of activations (fan_in) or of gradients (fan_out)."""
    fan = fan_in_and_fan_out(tensor, axes)[{"fan_in": 0, "fan_out": 1}[mode.lower()]]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", *, axes=None, rngs):
    """Uniform, with a variance of gain**2 / fan; `a` is the negative slope of a leaky ReLU."""
    bound = math.sqrt(3) * kaiming_std(tensor, a, mode, nonlinearity, axes)
    return uniform_(tensor, -bound, bound, axes=axes, rngs=rngs)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", *, axes=None, rngs):
    """Normal, with a variance of gain**2 / fan; `a` is the negative slope of a leaky ReLU."""
    return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity, axes), axes=axes, rngs=rngs)


def lecun_normal_(tensor, *, axes=None, rngs):
    """Normal within two deviations, with a variance of 1 / fan in before it is cut."""
    std = fan_in_and_fan_out(tensor, axes)[0] ** -0.5
    return trunc_normal_(tensor, std=std / 0.87962566103423978, axes=axes, rngs=rngs)


def fan_in_normal_(tensor, *, axes=None, rngs):
    """Normal, with a variance of 1 / fan in."""
    return normal_(tensor, std=fan_in_and_fan_out(tensor, axes)[0] ** -0.5, axes=axes, rngs=rngs)


def orthogonal_(tensor, gain=1, *, axes=None, rngs):
    """Orthogonal rows, or columns, of the tensor seen as a matrix with its first dimension as rows."""
    shape = torch_shape(tensor, axes)
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = jnp.linalg.qr(jax.random.normal(rngs.params(), (max(rows, columns), min(rows, columns))))
    q = q * jnp.sign(jnp.diagonal(r))
    return initialized(tensor, gain * (q.T if rows < columns else q).reshape(shape), axes)


def sparse_(tensor, sparsity, std=0.01, *, axes=None, rngs):
    """A normal matrix with the same share of zeros in each column."""
    rows, columns = torch_shape(tensor, axes)
    rank = jnp.argsort(jax.random.uniform(rngs.params(), (rows, columns)), axis=0)
    value = std * jax.random.normal(rngs.params(), (rows, columns))
    return initialized(tensor, jnp.where(rank < math.ceil(sparsity * rows), 0, value), axes)


def parameters_to_vector(parameters):
    """All parameters, one after the other, as one vector."""
    return jnp.concatenate([jnp.ravel(p[...]) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Writes the parts of a vector into the parameters."""
    at = 0
    for p in parameters:
        size = math.prod(p.shape)
        initialized(p, vec[at : at + size].reshape(p.shape))
        at += size
