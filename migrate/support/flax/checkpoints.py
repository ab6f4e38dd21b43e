"""State dicts under PyTorch's names and in its layouts."""
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate.support.flax.building import axes_of, named_children, named_variables


def named_state(module, prefix=""):
    """(PyTorch's name, variable, axes that bring PyTorch's array into the variable's order) for all parameters and buffers."""
    for name, variable in named_variables(module):
        place = getattr(module, "torch_state", {}).get(name)
        axes = place[1] if place else axes_of(module) if name == "weight" else None
        if isinstance(variable, nnx.Param) or getattr(variable, "persistent", True):
            yield prefix + name, variable, axes
    for name, child in named_children(module):
        yield from named_state(child, f"{prefix}{name}.")


def state_dict(module):
    """The arrays of a module, in PyTorch's order of axes."""
    return {name: v[...] if axes is None else jnp.transpose(v[...], [axes.index(i) for i in range(len(axes))]) for name, v, axes in named_state(module)}


def load_state_dict(module, state, strict=True):
    """Puts a state dict of arrays or PyTorch's tensors into a module; returns the names that are missing and those without a place."""
    left, missing = dict(state), []
    for name, variable, axes in named_state(module):
        if name not in state:
            missing.append(name)
            continue
        value = left.pop(name, state[name])
        value = np.asarray(value.detach() if hasattr(value, "detach") else value)
        value = value if axes is None else value.transpose(axes)
        if value.shape != variable.shape:
            raise ValueError(f"{name}: shape {value.shape} instead of {variable.shape}")
        variable.set_value(jnp.asarray(value, variable.dtype))
    unexpected = [name for name in left if not name.endswith("num_batches_tracked")]
    if strict and (missing or unexpected):
        raise KeyError(f"missing: {missing}, unexpected: {unexpected}")
    return missing, unexpected
