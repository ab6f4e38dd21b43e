"""Layers that start anew."""
import numpy as np

from migrate.support.keras.linear import Embedding
from migrate.support.keras.walk import named_parameters


def reset_parameters(module):
    """Starts a layer anew, as PyTorch's would."""
    module.reset_parameters() if hasattr(module, "reset_parameters") else start_anew(module)


def start_anew(module):
    """Gives a layer PyTorch's initial weights; `keras.utils.set_random_seed` seeds them."""
    weight, variables = getattr(module, "weight", None), dict(named_parameters(module, recurse=False))
    if isinstance(module, Embedding):
        weight.assign(np.random.normal(size=weight.shape))
    elif weight is not None and len(weight.shape) == 1:  # a norm
        for name, variable in variables.items():
            variable.assign(np.full(variable.shape, float(name == "weight")))
    else:
        fan_in = getattr(module, "hidden_size", None) or int(np.prod(weight.shape[1:]))
        for variable in variables.values():
            variable.assign(np.random.uniform(-(fan_in**-0.5), fan_in**-0.5, variable.shape))
