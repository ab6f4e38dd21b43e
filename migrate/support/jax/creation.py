"""What is known only at run time: whether a target is a dtype, whether a condition holds."""
import jax
import jax.numpy as jnp
import numpy as np


def to(input, target):
    """input in the dtype of `target`, a dtype or an array; any other target is a device and changes nothing."""
    dtype = getattr(target, "dtype", target)
    return input.astype(dtype) if isinstance(dtype, np.dtype) else input


def check(condition, message=None):
    """Raises unless the condition holds; `message` is a text or makes one. While tracing, no value is known and nothing is checked."""
    assert isinstance(condition, jax.core.Tracer) or condition, message() if callable(message) else message


def known(condition):
    """Whether a condition, or what it makes, holds. While tracing, no value is known: then what it would refuse is not looked for."""
    try:
        return bool(condition() if callable(condition) else condition)
    except jax.errors.ConcretizationTypeError:
        return False


def float_tensor(data):
    """What `torch.Tensor(data)` makes: an array of that size for a number, of those values for anything else."""
    if isinstance(data, tuple):
        raise TypeError("whether a tuple is a size or data is not known here: use jnp.empty or jnp.asarray")
    return jnp.zeros(data, jnp.float32) if isinstance(data, int) else jnp.asarray(data, jnp.float32)


def arrays(held):
    """The same with arrays in the place of PyTorch's tensors, in dicts, lists and tuples too."""
    if hasattr(held, "detach"):
        return jnp.asarray(held.detach().cpu().numpy())
    if isinstance(held, dict):
        return {key: arrays(value) for key, value in held.items()}
    return type(held)(map(arrays, held)) if type(held) in (list, tuple) else held


def can_cast(from_, to):
    """Whether PyTorch casts a dtype to another on its own: within truth values, integers, floats or complex numbers, or to later ones of these."""
    kinds = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)
    first, second = (next(i for i, kind in enumerate(kinds) if jnp.issubdtype(d, kind)) for d in (from_, to))
    return first <= second
