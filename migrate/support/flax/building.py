"""Calls of what may or may not make modules, and walks over modules in PyTorch's order."""
import inspect

import jax.numpy as jnp
from flax import nnx


def build(fn, *args, rngs, **kwargs):
    """Calls `fn`, with `rngs` if it takes them."""
    takes = inspect.signature(fn).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in takes.values()) and (not isinstance(fn, type) or issubclass(fn, nnx.Module))
    if "rngs" in takes or takes_any:
        kwargs["rngs"] = rngs
    return fn(*args, **kwargs)


class MadeByNew(type(nnx.Module)):
    """Of modules whose `__new__` may give one of another class: that one is ready."""

    def __call__(cls, *args, **kwargs):
        made = cls.__new__(cls, *args, **kwargs)
        return super().__call__(*args, **kwargs) if isinstance(made, cls) else made


def signature(fn):
    """`inspect.signature`; of its constructor for a class of modules, whose own call takes anything."""
    if not (isinstance(fn, type) and issubclass(fn, nnx.Module)):
        return inspect.signature(fn)
    found = inspect.signature(fn.__init__)
    return found.replace(parameters=list(found.parameters.values())[1:])


def without_rngs(arguments):
    """Arguments of a constructor by name, also within a tuple or list, those that are random streams left out."""
    if isinstance(arguments, (tuple, list)):
        return type(arguments)(without_rngs(a) if isinstance(a, dict) else a for a in arguments)
    return type(arguments)((name, value) for name, value in arguments.items() if not isinstance(value, nnx.Rngs))


def in_order(module):
    """The attributes of a module by name, in the order in which they were assigned: Flax sorts those of a copy, and in `nnx.jit`, but remembers them."""
    held = vars(module)
    if list(held) != sorted(held):
        return held
    return {name: held[name] for name in (*held.get("_pytree__nodes", ()), *held) if name in held}


def named_children(module):
    """(name, submodule) for the direct submodules, in the order in which they were assigned."""
    if isinstance(module, nnx.Sequential):
        items = zip(getattr(module, "child_names", range(len(module.layers))), module.layers)
    elif hasattr(module, "child_names"):
        items = module.items()
    elif isinstance(module, (nnx.List, list, tuple)):
        items = enumerate(module)
    else:
        items = in_order(module).items()
    for name, child in items:
        if isinstance(child, nnx.Module):
            yield str(name), child


def children(module):
    """The direct submodules."""
    return (child for _, child in named_children(module))


def named_modules(module, prefix=""):
    """(path, module) for the module itself and all modules in it, parents first; a module that is shared comes once."""
    seen, stack = set(), [(prefix, module)]
    while stack:
        path, at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        yield path, at
        stack += reversed([(f"{path}.{name}" if path else name, child) for name, child in named_children(at)])


def modules(module):
    """The module itself and all modules in it, parents first."""
    return (m for _, m in named_modules(module))


def named_variables(module):
    """(PyTorch's name, variable) for the variables of a module itself."""
    own = dict(module.items()) if hasattr(module, "child_names") and not isinstance(module, nnx.Sequential) else in_order(module)
    names = {place[0]: name for name, place in getattr(module, "torch_state", {}).items() if place}
    if not names and isinstance(module, (nnx.Linear, nnx.LayerNorm, nnx.RMSNorm, nnx.Embed)):
        names = {"kernel": "weight", "scale": "weight", "embedding": "weight"}
    own = {name: own[name] for name in (*names, *own) if name in own}  # the weight first, as PyTorch has it
    return [(names.get(name, name), v) for name, v in own.items() if isinstance(v, nnx.Variable) and not isinstance(v, nnx.RngState)]


def named_parameters(module, recurse=True):
    """(path, nnx.Param) for all parameters, with PyTorch's names."""
    seen = set()
    for path, at in named_modules(module) if recurse else [("", module)]:
        for name, value in named_variables(at):
            if isinstance(value, nnx.Param) and id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value


def parameters(module, recurse=True):
    """All parameters."""
    return (p for _, p in named_parameters(module, recurse))


class InTorchLayout(nnx.Param):
    """A parameter in PyTorch's order of axes; what is written to it goes into the layer's own, `source`."""

    def set_value(self, value, **index):
        super().set_value(value, **index)
        self.source.set_value(jnp.transpose(self[...], self.axes))


def named_torch_parameters(module, recurse=True):
    """`named_parameters`, each in PyTorch's order of axes."""
    for path, value in named_parameters(module, recurse):
        owner, _, name = path.rpartition(".")
        owner = get_submodule(module, owner)
        axes = owner.torch_state[name][1] if name in getattr(owner, "torch_state", {}) else axes_of(owner) if name == "weight" else None
        if axes is not None:
            turned = jnp.transpose(value[...], [axes.index(i) for i in range(len(axes))])
            value = InTorchLayout(turned, source=value, axes=axes)
        yield path, value


def torch_parameters(module, recurse=True):
    """`parameters`, each in PyTorch's order of axes."""
    return (p for _, p in named_torch_parameters(module, recurse))


def named_buffers(module):
    """(path, variable) for all state that is no parameter, with PyTorch's names."""
    for path, at in named_modules(module):
        for name, value in named_variables(at):
            if not isinstance(value, nnx.Param):
                yield f"{path}.{name}" if path else name, value


def buffers(module):
    """All state that is no parameter."""
    return (b for _, b in named_buffers(module))


def get_submodule(module, path):
    """The submodule at a dotted path."""
    for name in path.split(".") if path else []:
        module = dict(named_children(module))[name]
    return module


def apply(module, fn, **kwargs):
    """Calls `fn` with every module, children first."""
    for child in children(module):
        apply(child, fn, **kwargs)
    fn(module, **kwargs)
    return module


def weight_of(module):
    """The variable that PyTorch calls `weight`, or None."""
    return next((v for n in ("weight", "kernel", "scale", "embedding") if (v := getattr(module, n, None)) is not None), None)


def has_weight(module):
    """Whether PyTorch's layer has an attribute `weight`, be it None."""
    native = (nnx.Linear, nnx.Conv, nnx.Embed, nnx.LayerNorm, nnx.RMSNorm)
    return hasattr(module, "weight") or "weight" in getattr(module, "torch_state", ()) or isinstance(module, native)


def axes_of(module):
    """The axes that bring PyTorch's weight into the order of the module's own, or None."""
    if isinstance(module, nnx.Linear):
        return (1, 0)
    if isinstance(module, nnx.Conv):
        n = module.kernel.ndim
        return (*range(2, n), 1, 0)
    return None


def torch_weight(module):
    """The weight of a layer as an array in PyTorch's layout, or None."""
    weight, axes = weight_of(module), axes_of(module)
    if not isinstance(weight, nnx.Variable):
        return weight
    return weight[...] if axes is None else jnp.transpose(weight[...], [axes.index(i) for i in range(len(axes))])


def set_torch_weight(module, value):
    """Gives a layer a weight that is in PyTorch's layout."""
    axes = axes_of(module)
    weight_of(module)[...] = value if axes is None else jnp.transpose(value, axes)


def bias_of(module):
    """The variable that PyTorch calls `bias`, or None."""
    return getattr(module, "bias", None)


def reset_parameters(module, *, rngs):
    """Starts a layer anew, as PyTorch's would."""
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
    else:
        start_anew(module, rngs=rngs)


def start_anew(module, *, rngs):
    """Gives a layer PyTorch's initial weights."""
    weight = weight_of(module)
    for variable in vars(module).values():
        if not isinstance(variable, nnx.Param):
            continue
        if isinstance(module, nnx.Embed):
            variable[...] = rngs.params.normal(variable.shape)
        elif weight is not None and weight.ndim == 1:  # a norm
            variable[...] = jnp.full(variable.shape, 1.0 if variable is weight else 0.0)
        else:
            bound = (module.hidden_size if weight is None else torch_weight(module)[0].size) ** -0.5
            variable[...] = rngs.params.uniform(variable.shape, minval=-bound, maxval=bound)


def eval_mode(module):
    """Sets a module to evaluation and returns it."""
    module.eval()
    return module


def train_mode(module, mode=True):
    """Sets a module to training (or not) and returns it."""
    module.train() if mode else module.eval()
    return module
