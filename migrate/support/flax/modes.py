"""Modules whose own `train` decides what training and evaluation are."""
from migrate.support.flax.building import children


class OwnMode:
    """`deterministic` of a module with a `train` of its own: `eval()`, also of a module around it, calls that."""

    def __get__(self, module, owner=None):
        return module is not None and vars(module).get("in_evaluation", False)

    def __set__(self, module, value):
        module.train(not value)


def set_mode(module, mode=True):
    """What `train` of PyTorch's base class does: sets the module and those in it, and returns it."""
    module.in_evaluation = not mode
    for child in children(module):
        child.train() if mode else child.eval()
    return module
