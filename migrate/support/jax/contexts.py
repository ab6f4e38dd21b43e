"""What is left of PyTorch's context managers."""
import contextlib
import dataclasses

import jax
import jax.numpy as jnp


class NoContext(contextlib.nullcontext):
    """A context, or a decorator, that changes nothing."""

    def __call__(self, function):
        return function


def no_context(*args, **kwargs):
    """A context that does nothing; given a function, that function."""
    return args[0] if args and callable(args[0]) else NoContext()


def with_gradient_of(old, new):
    """The numbers of `new` with the gradient of `old`: a parameter that is written to where no gradient is recorded."""

    @jax.custom_jvp
    def write(old, new):
        return new

    @write.defjvp
    def of_old(values, tangents):
        return write(*values), tangents[0]

    old = jnp.asarray(old)
    return write(old, jnp.broadcast_to(jnp.asarray(new, old.dtype), old.shape))


def without_gradient(value):
    """The value as a constant to gradients: its arrays, also those within lists, tuples, mappings and records; all else is as it is."""
    if isinstance(value, jax.Array):
        return jax.lax.stop_gradient(value) if jnp.issubdtype(value.dtype, jnp.inexact) else value
    if isinstance(value, (list, tuple, dict)):
        items = dict(value.items() if isinstance(value, dict) else enumerate(value))
        held = {k: without_gradient(v) for k, v in items.items()}
        if all(held[k] is v for k, v in items.items()):
            return value
        if isinstance(value, dict):
            return type(value)(held)
        return type(value)(*held.values()) if hasattr(value, "_fields") else type(value)(held.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        held = {k: without_gradient(v) for k, v in fields.items()}
        return value if all(held[k] is v for k, v in fields.items()) else dataclasses.replace(value, **held)
    return value
