"""Dtypes that are known only at run time."""
import numpy as np


def to(input, target):
    """input in the dtype of `target`, a dtype or an array; any other target is a device and changes nothing."""
    dtype = getattr(target, "dtype", target)
    return input.astype(dtype) if isinstance(dtype, np.dtype) else input
