"""Containers that PyTorch has and `nnx.Sequential`, `nnx.List` and `nnx.Dict` are not enough for."""
from collections.abc import Mapping

import jax.numpy as jnp
from flax import nnx


def as_attribute(value):
    """A value that may take the place of another one: modules are data to Flax, functions are not."""
    return nnx.data(value) if nnx.is_data(value) else nnx.static(value)


class Sequential(nnx.Sequential):
    """`nnx.Sequential` that hands one value from layer to layer, with PyTorch's indexing and named layers."""

    def __init__(self, *args, rngs=None):
        named = dict(args[0]) if len(args) == 1 and isinstance(args[0], Mapping) else {str(i): layer for i, layer in enumerate(args)}
        super().__init__(*named.values())
        self.child_names = tuple(named)

    def __call__(self, input):
        for layer in self.layers:
            input = layer(input)
        return input

    def __getattr__(self, name):
        if name in vars(self).get("child_names", ()):
            return self.layers[self.child_names.index(name)]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name in vars(self).get("child_names", ()):
            self[self.child_names.index(name)] = value
        elif name != "layers" and isinstance(value, nnx.Module) and "child_names" in vars(self):
            self.add_module(name, value)
        else:
            super().__setattr__(name, value)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return Sequential(dict(zip(self.child_names[index], self.layers[index])))
        return self.layers[index]

    def __setitem__(self, index, layer):
        self.layers[index] = as_attribute(layer)

    def __delitem__(self, index):
        kept = list(self.layers)
        del kept[index]
        self.refill(kept)

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)

    def refill(self, layers):
        """Takes other layers, with numbers for names."""
        self.layers, self.child_names = nnx.List(layers), tuple(str(i) for i in range(len(layers)))

    def add_module(self, name, module):
        """Adds a layer at the end under that name."""
        self.layers, self.child_names = nnx.List([*self.layers, module]), (*self.child_names, name)

    def append(self, module):
        """Adds a layer at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, sequential):
        """Adds the layers of another one."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index, module):
        """Adds a layer before that index."""
        layers = list(self.layers)
        layers.insert(index, module)
        self.refill(layers)
        return self

    def pop(self, index):
        """Takes a layer out."""
        layer = self.layers[index]
        del self[index]
        return layer


class ModuleDict(nnx.Module):
    """Modules by name, in the order they were added; `nnx.Dict` sorts its keys under `nnx.jit`."""

    torch_children = "entries"

    def __init__(self, modules=None, *, rngs=None):
        self.child_names, self.entries = (), nnx.Dict()
        self.update(modules or {})

    def add_module(self, name, module):
        self[name] = module

    def __getitem__(self, key):
        return self.entries[key]

    def __setitem__(self, key, module):
        if key not in self.child_names:
            self.child_names += (key,)
        setattr(self.entries, key, as_attribute(module))

    def __delitem__(self, key):
        delattr(self.entries, key)
        self.child_names = tuple(name for name in self.child_names if name != key)

    def __getattr__(self, name):
        if name in vars(self).get("child_names", ()):
            return self[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name in vars(self).get("child_names", ()):
            self[name] = value
        else:
            super().__setattr__(name, value)

    def __contains__(self, key):
        return key in self.child_names

    def __len__(self):
        return len(self.child_names)

    def __iter__(self):
        return iter(self.child_names)

    def keys(self):
        """The names."""
        return self.child_names

    def values(self):
        """The modules."""
        return [self[name] for name in self.child_names]

    def items(self):
        """The names with their modules."""
        return [(name, self[name]) for name in self.child_names]

    def update(self, modules):
        """Adds modules from a mapping or from pairs."""
        for key, module in dict(modules).items():
            self[key] = module

    def pop(self, key):
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def clear(self):
        """Takes all out."""
        for key in self.child_names:
            del self[key]


def as_param(value):
    """An array as a parameter; anything else as it is."""
    return value if isinstance(value, nnx.Variable) or not hasattr(value, "shape") else nnx.Param(jnp.asarray(value))


class ParameterList(nnx.List):
    """Parameters by position; arrays become parameters."""

    def __init__(self, values=None, *, rngs=None):
        super().__init__(as_param(value) for value in values or ())

    def append(self, value):
        """Adds one at the end."""
        super().append(as_param(value))
        return self


class ParameterDict(ModuleDict):
    """Parameters by name; arrays become parameters."""

    def __init__(self, parameters=None, *, rngs=None):
        super().__init__(parameters)

    def update(self, parameters):
        """Adds parameters from a mapping or from pairs; as in PyTorch, those of a plain dict by the order of their names."""
        super().update(sorted(parameters.items()) if type(parameters) is dict else parameters)

    def __setitem__(self, key, value):
        super().__setitem__(key, as_param(value))

    def get(self, key, default=None):
        """The parameter of that name, or the default."""
        return self[key] if key in self else default
