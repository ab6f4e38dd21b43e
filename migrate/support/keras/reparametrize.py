"""Weights that are computed from other parameters: weight norm, spectral norm, and parametrizations of one's own."""
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.reductions import vector_norm
from migrate.support.keras.containers import ModuleDict, ModuleList
from migrate.support.keras.module import Buffer, Parameter


class Computed:
    """An array that is read like a variable; writing into it changes nothing, as in PyTorch."""

    def __init__(self, value):
        self.value, self.shape, self.dtype, self.ndim = value, value.shape, value.dtype, value.ndim

    def assign(self, value):
        """Nothing."""


def computed_class(cls, name, compute, state=None, **members):
    """A subclass of `cls` whose parameter `name` is what `compute(self)` gives; `state` says what the state dict calls its parts."""
    members |= {name: property(lambda self: Computed(compute(self))), "torch_computed": name}
    known = {torch_name: (attribute, None) for torch_name, attribute in (state or {}).items()}
    members["torch_state"] = getattr(cls, "torch_state", {}) | known
    return type(cls)(cls.__name__, (cls,), members)


def restore(module, name, parts):
    """Makes a computed parameter a plain one again, with the value that it has."""
    cls = type(module)
    if vars(cls).get("torch_computed") != name:
        raise ValueError(f"{name!r} of {cls.__name__} is not computed from other parameters")
    value = getattr(module, name).value
    module.__class__ = cls.__mro__[1]
    for part in parts:
        delattr(module, part)
    setattr(module, name, Parameter(value))
    return module


def length_of(weight, dim):
    """The length of a weight along all axes but one, kept as 1; of the whole weight where the axis is None."""
    return vector_norm(weight) if dim is None else vector_norm(weight, 2, tuple(i for i in range(weight.ndim) if i != dim), keepdim=True)


@cache
def weight_normed(cls, name, dim):
    """The subclass for `weight_norm`."""
    g, v = name + "_g", name + "_v"

    def compute(self):
        weight = getattr(self, v).value
        return weight * (getattr(self, g).value / length_of(weight, dim))

    state = {g: g, v: v, f"parametrizations.{name}.original0": g, f"parametrizations.{name}.original1": v}
    return computed_class(cls, name, compute, state)


def weight_norm(module, name="weight", dim=0):
    """Splits a parameter into its length along all axes but `dim` (None: one length), and its direction."""
    weight = getattr(module, name).value
    dim = None if dim in (None, -1) else dim
    delattr(module, name)
    setattr(module, name + "_g", Parameter(length_of(weight, dim)))
    setattr(module, name + "_v", Parameter(weight))
    module.__class__ = weight_normed(type(module), name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the parameter a plain one again."""
    return restore(module, name, (name + "_g", name + "_v"))


def unit(x, eps):
    """x divided by its length, which counts as eps at least."""
    return x / jnp.maximum(jnp.linalg.norm(x), eps)


@cache
def spectrally_normed(cls, name, dim, steps, eps, u_first):
    """The subclass for `spectral_norm`."""
    original, u, v = (name + end for end in ("_orig", "_u", "_v"))
    state = {original: original, u: u, v: v, f"parametrizations.{name}.original": original}
    state |= {f"parametrizations.{name}.0._u": u, f"parametrizations.{name}.0._v": v}

    def matrix(self):
        weight = getattr(self, original).value
        return jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)

    def iterate(self, steps=steps):
        """Steps of the power method towards the first singular vectors."""
        w = jax.lax.stop_gradient(matrix(self))
        left, right = getattr(self, u).value, getattr(self, v).value
        for _ in range(steps):
            if u_first:
                left = unit(w @ right, eps)
            right = unit(w.T @ left, eps)
            if not u_first:
                left = unit(w @ right, eps)
        getattr(self, u).assign(left)
        getattr(self, v).assign(right)

    def compute(self):
        return getattr(self, original).value / (getattr(self, u).value @ matrix(self) @ getattr(self, v).value)

    def call(self, *args, **kwargs):
        if self.training:
            iterate(self)
        return cls.call(self, *args, **kwargs)

    return computed_class(cls, name, compute, state, call=call, iterate=iterate)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, u_first=False):
    """Divides a parameter by its largest singular value, which training follows by the power method.

    The matrix has axis `dim` first. `u_first` is the order of steps of `torch.nn.utils.parametrizations`.
    """
    weight = getattr(module, name).value
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    delattr(module, name)
    setattr(module, name + "_orig", Parameter(weight))
    for end, size in (("_u", weight.shape[dim]), ("_v", weight.size // weight.shape[dim])):
        setattr(module, name + end, Buffer(unit(np.random.normal(size=size).astype("float32"), eps)))
    module.__class__ = spectrally_normed(type(module), name, dim, n_power_iterations, eps, u_first)
    if u_first:
        module.iterate(15)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes the parameter a plain one again."""
    return restore(module, name, (name + "_orig", name + "_u", name + "_v"))


class Parametrizations(ModuleList):
    """The functions that make a parameter of `original`, one after the other."""

    def __init__(self, original):
        super().__init__()
        self.original = Parameter(original)

    def call(self):
        weight = self.original.value
        for part in self.entries:
            weight = part(weight)
        return weight


@cache
def parametrized(cls, name):
    """The subclass for `register_parametrization`."""
    return computed_class(cls, name, lambda self: self.parametrizations[name]())


def register_parametrization(module, tensor_name, parametrization):
    """Makes a parameter the result of `parametrization(original)`; several follow each other."""
    if not is_parametrized(module, tensor_name):
        weight = getattr(module, tensor_name).value
        delattr(module, tensor_name)
        if not hasattr(module, "parametrizations"):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = Parametrizations(weight)
        module.__class__ = parametrized(type(module), tensor_name)
    parts = module.parametrizations[tensor_name]
    if hasattr(parametrization, "right_inverse"):
        parts.original.assign(parametrization.right_inverse(parts.original.value))
    parts.append(parametrization)
    return module


def remove_parametrizations(module, tensor_name):
    """Makes the parameter a plain one again, with the value that it has."""
    for part, remove in (("_g", remove_weight_norm), ("_orig", remove_spectral_norm)):
        if hasattr(module, tensor_name + part):
            return remove(module, tensor_name)
    restore(module, tensor_name, ())
    del module.parametrizations[tensor_name]
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a parameter (or any) is computed from others."""
    made = [vars(c)["torch_computed"] for c in type(module).__mro__ if "torch_computed" in vars(c)]
    return tensor_name in made if tensor_name else bool(made)
