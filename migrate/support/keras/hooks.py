"""Functions that are called before or after a module."""


class Hooked:
    """Runs the hooks of a module around its call."""

    def call(self, *args, **kwargs):
        for hook in self.hooks_before:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = super().call(*args, **kwargs)
        for hook in self.hooks_after:
            changed = hook(self, args, output)
            output = output if changed is None else changed
        return output


class Handle:
    """Takes a hook off again."""

    def __init__(self, module, where, hook):
        self.module, self.where, self.hook = module, where, hook

    def remove(self):
        left = tuple(hook for hook in getattr(self.module, self.where) if hook is not self.hook)
        setattr(self.module, self.where, left)


def add_hook(module, where, hook):
    """Adds a hook to this one module, whose class becomes one that runs them."""
    if not isinstance(module, Hooked):
        kind = type(module)
        object.__setattr__(module, "__class__", type(kind.__name__, (Hooked, kind), {}))
        module.hooks_before = module.hooks_after = ()
    setattr(module, where, (*getattr(module, where), hook))
    return Handle(module, where, hook)


def register_forward_hook(module, hook):
    """Calls hook(module, args, output) after the module; what it returns, unless None, takes the output's place."""
    return add_hook(module, "hooks_after", hook)


def register_forward_pre_hook(module, hook):
    """Calls hook(module, args) before the module; what it returns, unless None, takes the arguments' place."""
    return add_hook(module, "hooks_before", hook)
