"""Functions that are called before or after a module."""
from flax import nnx


def call_with_hooks(module, forward, args, kwargs):
    """Calls a module whose class computes `forward`, and its hooks around it."""
    for hook in module.hooks_before:
        changed = hook(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    output = forward(module, *args, **kwargs)
    for hook in module.hooks_after:
        changed = hook(module, args, output)
        output = output if changed is None else changed
    return output


class Handle:
    """Takes a hook off again."""

    def __init__(self, module, where, hook):
        self.module, self.where, self.hook = module, where, hook

    def remove(self):
        left = tuple(hook for hook in getattr(self.module, self.where) if hook is not self.hook)
        setattr(self.module, self.where, nnx.static(left))


def add_hook(module, where, hook):
    """Adds a hook to this one module, whose class becomes one that runs them."""
    if not hasattr(module, "hooks_after"):
        kind = type(module)
        call = {"__call__": lambda self, *args, **kwargs: call_with_hooks(self, kind.__call__, args, kwargs)}
        object.__setattr__(module, "__class__", type(kind.__name__, (kind,), call))
        module.hooks_before = module.hooks_after = nnx.static(())
    setattr(module, where, nnx.static((*getattr(module, where), hook)))
    return Handle(module, where, hook)


def register_forward_hook(module, hook):
    """Calls hook(module, args, output) after the module; what it returns, unless None, takes the output's place."""
    return add_hook(module, "hooks_after", hook)


def register_forward_pre_hook(module, hook):
    """Calls hook(module, args) before the module; what it returns, unless None, takes the arguments' place."""
    return add_hook(module, "hooks_before", hook)
