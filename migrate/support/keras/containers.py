"""PyTorch's containers: layers in a row, and modules and parameters by position or name."""
from collections.abc import Mapping

import keras

from migrate.support.keras.module import Module, Parameter


class NamedEntries(Module):
    """What containers by name share: `entries` by name, in the order they were added, and as attributes."""

    torch_children = "entries"

    def __init__(self, entries=()):
        super().__init__()
        self.entries = dict(entries)

    def __getattr__(self, name):
        entries = vars(self).get("entries", {})
        if name in entries:
            return entries[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self):
        return len(self.entries)

    def add_module(self, name, module):
        """Adds a module, or puts another in the place of the one of that name."""
        self.refill({**self.entries, name: module})

    def refill(self, entries):
        """Puts other entries in, so that Keras forgets the old ones."""
        for name in [*self.entries]:
            self.entries.pop(name)
        self.entries.update(entries)


class Sequential(NamedEntries):
    """Hands one value from layer to layer; layers may be any callables, by position or with names."""

    def __init__(self, *args):
        super().__init__(args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {str(i): f for i, f in enumerate(args)})

    def call(self, input):
        for layer in self.entries.values():
            input = layer(input)
        return input

    def __setattr__(self, name, value):
        if isinstance(value, keras.Layer) and "entries" in vars(self):
            self.add_module(name, value)
        else:
            super().__setattr__(name, value)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return Sequential(dict([*self.entries.items()][index]))
        return [*self.entries.values()][index]

    def __setitem__(self, index, layer):
        self.add_module([*self.entries][index], layer)

    def __delitem__(self, index):
        gone = [*self.entries][index]
        kept = [f for name, f in self.entries.items() if name not in (gone if isinstance(gone, list) else [gone])]
        self.refill({str(i): f for i, f in enumerate(kept)})

    def __iter__(self):
        return iter([*self.entries.values()])

    def __add__(self, other):
        return Sequential(*self, *other)

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
        layers = [*self]
        layers.insert(index, module)
        self.refill({str(i): f for i, f in enumerate(layers)})
        return self

    def pop(self, index):
        """Takes a layer out."""
        layer = self[index]
        del self[index]
        return layer


class ModuleDict(NamedEntries):
    """Modules by name."""

    def __init__(self, modules=None):
        super().__init__(modules or {})

    def __getitem__(self, key):
        return self.entries[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        self.entries.pop(key)

    def __contains__(self, key):
        return key in self.entries

    def __iter__(self):
        return iter([*self.entries])

    def keys(self):
        """The names."""
        return self.entries.keys()

    def values(self):
        """The modules."""
        return self.entries.values()

    def items(self):
        """The names with their modules."""
        return self.entries.items()

    def get(self, key, default=None):
        """The module of that name, or the default."""
        return self.entries.get(key, default)

    def update(self, modules):
        """Adds modules from a mapping or from pairs."""
        self.refill({**self.entries, **dict(modules)})

    def pop(self, key):
        """Takes a module out."""
        return self.entries.pop(key)

    def clear(self):
        """Takes all out."""
        self.refill({})


class ModuleList(Module):
    """Modules by position."""

    torch_children = "entries"

    def __init__(self, modules=None):
        super().__init__()
        self.entries = []
        self.extend(modules or ())

    def __len__(self):
        return len(self.entries)

    def __iter__(self):
        return iter([*self.entries])

    def __getitem__(self, index):
        return type(self)(self.entries[index]) if isinstance(index, slice) else self.entries[index]

    def __setitem__(self, index, module):
        entries = [*self.entries]
        entries[index] = module
        self.refill(entries)

    def __delitem__(self, index):
        entries = [*self.entries]
        del entries[index]
        self.refill(entries)

    def __contains__(self, module):
        return any(m is module for m in self.entries)

    def __add__(self, other):
        return type(self)([*self.entries, *other])

    def refill(self, entries):
        """Puts other entries in, so that Keras forgets the old ones."""
        self.entries.clear()
        self.entries.extend(entries)

    def append(self, module):
        """Adds a module at the end."""
        self.entries.append(module)
        return self

    def extend(self, modules):
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    __iadd__ = extend

    def insert(self, index, module):
        """Adds a module before that index."""
        self.entries.insert(index, module)

    def pop(self, index=-1):
        """Takes a module out."""
        module = self.entries[index]
        del self[index]
        return module


def as_parameter(value):
    """An array as a parameter; anything else as it is."""
    return value if isinstance(value, keras.Variable) or not hasattr(value, "shape") else Parameter(value)


class ParameterList(ModuleList):
    """Parameters by position; arrays become parameters."""

    def append(self, value):
        """Adds one at the end."""
        return super().append(as_parameter(value))

    def __setitem__(self, index, value):
        super().__setitem__(index, as_parameter(value))


class ParameterDict(ModuleDict):
    """Parameters by name; arrays become parameters."""

    def __init__(self, parameters=None):
        super().__init__({name: as_parameter(value) for name, value in dict(parameters or {}).items()})

    def add_module(self, name, value):
        """Adds a parameter, or puts another in the place of the one of that name."""
        super().add_module(name, as_parameter(value))

    def update(self, parameters):
        """Adds parameters from a mapping or from pairs."""
        super().update({name: as_parameter(value) for name, value in dict(parameters).items()})
