"""Walks over modules and their variables, in PyTorch's order and under PyTorch's names."""
import keras

from migrate.support.keras.module import Buffer


def named_members(module):
    """(name, value) of the layers and variables that are attributes of a module, or entries of a container."""
    entries = getattr(module, getattr(module, "torch_children", ""), None)
    if entries is not None:
        members = entries.items() if isinstance(entries, dict) else enumerate(entries)
    else:
        names = {ours: theirs for theirs, ours in getattr(module, "torch_names", {}).items()}
        members = [(names.get(name, name), value) for name, value in vars(module).items()]
    return [(str(name), value) for name, value in members if isinstance(value, keras.Layer | keras.Variable)]


def named_children(module):
    """The modules directly inside, each once."""
    seen = set()
    for name, value in named_members(module):
        if isinstance(value, keras.Layer) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def children(module):
    """The modules directly inside."""
    return (child for _, child in named_children(module))


def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    """The module itself and all below it, each before its own."""
    memo = set() if memo is None else memo
    if id(module) in memo:
        return
    if remove_duplicate:
        memo.add(id(module))
    yield prefix, module
    for name, child in named_children(module):
        yield from named_modules(child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)


def modules(module):
    """The module itself and all below it, each before its own."""
    return (m for _, m in named_modules(module))


def named_variables(module, prefix, recurse, remove_duplicate, wanted):
    """The variables that satisfy `wanted`, module by module."""
    seen = set()
    for path, m in named_modules(module, None, prefix, remove_duplicate) if recurse else [(prefix, module)]:
        for name, value in named_members(m):
            if isinstance(value, keras.Variable) and wanted(value) and id(value) not in seen:
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value


def named_parameters(module, prefix="", recurse=True, remove_duplicate=True):
    """The parameters, frozen ones included."""
    return named_variables(module, prefix, recurse, remove_duplicate, lambda v: not isinstance(v, Buffer))


def parameters(module, recurse=True):
    """The parameters, frozen ones included."""
    return (value for _, value in named_parameters(module, "", recurse))


def named_buffers(module, prefix="", recurse=True, remove_duplicate=True):
    """The buffers."""
    return named_variables(module, prefix, recurse, remove_duplicate, lambda v: isinstance(v, Buffer))


def buffers(module, recurse=True):
    """The buffers."""
    return (value for _, value in named_buffers(module, "", recurse))


def get_submodule(module, target):
    """The module of a dotted name."""
    for name in target.split(".") if target else ():
        module = dict(named_children(module))[name]
    return module


def get_parameter(module, target):
    """The parameter of a dotted name."""
    path, _, name = target.rpartition(".")
    return dict(named_members(get_submodule(module, path)))[name]


def apply(module, fn):
    """Calls `fn` with every module, the inner ones first."""
    for child in children(module):
        apply(child, fn)
    fn(module)
    return module
