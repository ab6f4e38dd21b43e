"""Weights that are computed from other parameters: weight norm, spectral norm, and parametrizations of one's own."""
from functools import cache

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import Buffer
from migrate.support.jax.reductions import vector_norm


def place_of(cls, name):
    """The attribute of a class that holds PyTorch's parameter `name`, and the axes that transpose PyTorch's tensor to it."""
    known = getattr(cls, "torch_state", {})
    if name not in known and name == "weight" and issubclass(cls, (nnx.Linear, nnx.Embed)):
        return ("kernel", (1, 0)) if issubclass(cls, nnx.Linear) else ("embedding", None)
    return known.get(name, (name, None))


def to_torch(value, axes):
    """A parameter in PyTorch's layout."""
    return value if axes is None else jnp.transpose(value, [axes.index(i) for i in range(len(axes))])


def computed_class(cls, name, compute, places, forward=None):
    """A subclass of `cls` whose parameter `name` is what `compute(self)` gives; writing into it changes nothing, as in PyTorch."""
    attribute = place_of(cls, name)[0]
    state = {k: v for k, v in getattr(cls, "torch_state", {}).items() if k != name} | places
    body = {attribute: property(lambda self: nnx.Variable(compute(self))), "torch_state": state, "torch_computed": name}
    return type(cls)(cls.__name__, (cls,), body | ({"__call__": forward} if forward else {}))


def restore(module, name, parts):
    """Makes a computed parameter a plain one again, with the value that it has."""
    cls = type(module)
    if vars(cls).get("torch_computed") != name:
        raise ValueError(f"{name!r} of {cls.__name__} is not computed from other parameters")
    attribute = place_of(cls.__mro__[1], name)[0]
    value = getattr(module, attribute)[...]
    module.__class__ = cls.__mro__[1]
    for part in parts:
        delattr(module, part)
    setattr(module, attribute, nnx.Param(value))
    return module


def length_of(weight, axis):
    """The length of a weight along all axes but one, kept as 1; of the whole weight where the axis is None."""
    return vector_norm(weight) if axis is None else vector_norm(weight, 2, tuple(i for i in range(weight.ndim) if i != axis), keepdim=True)


@cache
def weight_normed(cls, name, axis, axes):
    """The subclass for `weight_norm`."""
    g, v = name + "_g", name + "_v"
    g_axes = None if axis is None else axes
    places = {g: (g, g_axes), v: (v, axes)}
    places |= {f"parametrizations.{name}.original0": (g, g_axes), f"parametrizations.{name}.original1": (v, axes)}

    def compute(self):
        weight = getattr(self, v)[...]
        return weight * (getattr(self, g)[...] / length_of(weight, axis))

    return computed_class(cls, name, compute, places)


def weight_norm(module, name="weight", dim=0):
    """Splits a parameter into its length along all axes but `dim` of PyTorch's layout (None: one length), and its direction."""
    attribute, axes = place_of(type(module), name)
    weight = getattr(module, attribute)[...]
    axis = None if dim in (None, -1) else dim if axes is None else axes.index(dim)
    delattr(module, attribute)
    setattr(module, name + "_g", nnx.Param(length_of(weight, axis)))
    setattr(module, name + "_v", nnx.Param(weight))
    module.__class__ = weight_normed(type(module), name, axis, axes)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the parameter a plain one again."""
    return restore(module, name, (name + "_g", name + "_v"))


def unit(x, eps):
    """x divided by its length, which counts as eps at least."""
    return x / jnp.maximum(jnp.linalg.norm(x), eps)


@cache
def spectrally_normed(cls, name, axes, dim, steps, eps, u_first):
    """The subclass for `spectral_norm`."""
    original, u, v = (name + end for end in ("_orig", "_u", "_v"))
    places = {
        original: (original, axes), u: (u, None), v: (v, None), f"parametrizations.{name}.original": (original, axes),
        f"parametrizations.{name}.0._u": (u, None), f"parametrizations.{name}.0._v": (v, None),
    }

    def matrix(self):
        weight = to_torch(getattr(self, original)[...], axes)
        return jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)

    def iterate(self, steps=steps):
        """Steps of the power method towards the first singular vectors."""
        w = jax.lax.stop_gradient(matrix(self))
        left, right = getattr(self, u)[...], getattr(self, v)[...]
        for _ in range(steps):
            if u_first:
                left = unit(w @ right, eps)
            right = unit(w.T @ left, eps)
            if not u_first:
                left = unit(w @ right, eps)
        getattr(self, u)[...], getattr(self, v)[...] = left, right

    def compute(self):
        return getattr(self, original)[...] / (getattr(self, u)[...] @ matrix(self) @ getattr(self, v)[...])

    def forward(self, *args, **kwargs):
        if not self.deterministic:
            iterate(self)
        return cls.__call__(self, *args, **kwargs)

    made = computed_class(cls, name, compute, places, forward)
    made.iterate = iterate
    return made


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, u_first=False, *, rngs):
    """Divides a parameter by its largest singular value, which training follows by the power method.

    The matrix has axis `dim` of PyTorch's layout first. `u_first` is the order of steps of `torch.nn.utils.parametrizations`.
    """
    attribute, axes = place_of(type(module), name)
    weight = getattr(module, attribute)[...]
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    rows = to_torch(weight, axes).shape[dim]
    delattr(module, attribute)
    setattr(module, name + "_orig", nnx.Param(weight))
    for end, size in (("_u", rows), ("_v", weight.size // rows)):
        setattr(module, name + end, Buffer(unit(jax.random.normal(rngs.params(), (size,)), eps)))
    module.deterministic = False
    module.__class__ = spectrally_normed(type(module), name, axes, dim, n_power_iterations, eps, u_first)
    if u_first:
        module.iterate(15)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes the parameter a plain one again."""
    return restore(module, name, (name + "_orig", name + "_u", name + "_v"))


@cache
def parametrized(cls, name, axes):
    """The subclass for `register_parametrization`."""

    def compute(self):
        parts = self.parametrizations[name]
        weight = parts.original[...]
        for i in range(parts.count):
            weight = parts[str(i)](weight)
        return weight if axes is None else jnp.transpose(weight, axes)

    return computed_class(cls, name, compute, {})


def register_parametrization(module, tensor_name, parametrization):
    """Makes a parameter the result of `parametrization(original)`, in PyTorch's layout; several follow each other."""
    cls = type(module)
    if vars(cls).get("torch_computed") != tensor_name:
        attribute, axes = place_of(cls, tensor_name)
        weight = to_torch(getattr(module, attribute)[...], axes)
        delattr(module, attribute)
        if not hasattr(module, "parametrizations"):
            module.parametrizations = nnx.Dict()
        module.parametrizations[tensor_name] = nnx.Dict(original=nnx.Param(weight), count=0)
        module.__class__ = parametrized(cls, tensor_name, axes)
    parts = module.parametrizations[tensor_name]
    if hasattr(parametrization, "right_inverse"):
        parts.original[...] = parametrization.right_inverse(parts.original[...])
    parts[str(parts.count)] = parametrization
    parts.count += 1
    return module


def remove_parametrizations(module, tensor_name):
    """Makes the parameter a plain one again, with the value that it has."""
    cls = type(module)
    if vars(cls).get("torch_computed") == tensor_name and hasattr(module, tensor_name + "_g"):
        return remove_weight_norm(module, tensor_name)
    if vars(cls).get("torch_computed") == tensor_name and hasattr(module, tensor_name + "_orig"):
        return remove_spectral_norm(module, tensor_name)
    restore(module, tensor_name, ())
    del module.parametrizations[tensor_name]
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a parameter (or any) is computed from others."""
    made = [vars(c)["torch_computed"] for c in type(module).__mro__ if "torch_computed" in vars(c)]
    return tensor_name in made if tensor_name else bool(made)
