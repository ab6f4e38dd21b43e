"""Functions with a gradient of their own, written as PyTorch's `torch.autograd.Function`."""
import jax
import jax.numpy as jnp
import numpy as np


class Context:
    """What `forward` leaves for `backward`: saved tensors, and any attribute."""

    def __init__(self, needs_input_grad):
        self.saved_tensors, self.constants, self.needs_input_grad = (), (), needs_input_grad

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *outputs):
        self.constants = outputs

    def set_materialize_grads(self, value):
        """JAX has an array of zeros where a gradient is missing in any case."""


class Function:
    """`apply` computes `forward`, and its gradient is what `backward` says, by `jax.custom_vjp`."""

    @classmethod
    def apply(cls, *args):
        where = [i for i, a in enumerate(args) if hasattr(a, "shape") and hasattr(a, "dtype")]
        floating = [i in where and jnp.issubdtype(args[i].dtype, jnp.inexact) for i in range(len(args))]
        kept = {}  # what is no array does not pass through `custom_vjp`

        def run(arrays):
            ctx, given = Context(tuple(floating)), list(args)
            for i, a in zip(where, arrays):
                given[i] = a
            if not hasattr(cls, "setup_context"):
                return ctx, cls.forward(ctx, *given)
            output = cls.forward(*given)
            cls.setup_context(ctx, tuple(given), output)
            return ctx, output

        def forward(*arrays):
            ctx, output = run(arrays)
            kept["constants"] = [any(o is c for c in ctx.constants) for o in jax.tree.leaves(output)]
            leaves, kept["tree"] = jax.tree.flatten(vars(ctx))
            kept["rest"] = [None if isinstance(x, jax.Array) else x for x in leaves]
            return output, [x if isinstance(x, jax.Array) else None for x in leaves]

        def backward(saved, grads):
            ctx = Context(())
            leaves = [rest if x is None else x for x, rest in zip(saved, kept["rest"])]
            vars(ctx).update(jax.tree.unflatten(kept["tree"], leaves))
            flat, tree = jax.tree.flatten(grads)
            flat = [jnp.zeros(g.shape) if constant or g.dtype == jax.dtypes.float0 else g for g, constant in zip(flat, kept["constants"])]
            grads = jax.tree.unflatten(tree, flat)
            found = cls.backward(ctx, *grads) if isinstance(grads, (tuple, list)) else cls.backward(ctx, grads)
            found = found if isinstance(found, (tuple, list)) else (found,)
            return tuple(gradient_for(args[i], found[i]) for i in where)

        call = jax.custom_vjp(lambda *arrays: run(arrays)[1])
        call.defvjp(forward, backward)
        return call(*(jnp.asarray(args[i]) for i in where))


def gradient_for(input, found):
    """A gradient as JAX wants it: zeros for None, of no type at all for integers."""
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        return np.zeros(input.shape, jax.dtypes.float0)
    return jnp.zeros(input.shape, input.dtype) if found is None else jnp.asarray(found, input.dtype)
