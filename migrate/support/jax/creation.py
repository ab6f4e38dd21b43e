"""What is known only at run time: whether a target is a dtype, whether a condition holds."""
import numpy as np


def to(input, target):
    """input in the dtype of `target`, a dtype or an array; any other target is a device and changes nothing."""
    dtype = getattr(target, "dtype", target)
    return input.astype(dtype) if isinstance(dtype, np.dtype) else input


def check(condition, message=None):
    """Raises unless the condition holds; `message` is a text or makes one."""
    assert condition, message() if callable(message) else message
