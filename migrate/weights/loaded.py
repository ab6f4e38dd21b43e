"""What loading tells, and the values of a state dict as numpy arrays."""
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Loaded:
    """What became of a state dict: names of PyTorch's, in the order of the state dict, `missing` in the order of the model."""

    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # leaves of the model that no tensor was found for; they keep their values
    unexpected: tuple[str, ...] = ()  # tensors that the model has no place for

    @property
    def complete(self) -> bool:
        """Every leaf was found, and every tensor was used."""
        return not self.missing and not self.unexpected


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A torch tensor, numpy array or number as a numpy array of the same dtype."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach().cpu()
    if getattr(value, "is_sparse", False):
        value = value.to_dense()
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype.startswith(("bfloat16", "float8")):  # numpy has them through ml_dtypes, torch does not convert
        import ml_dtypes

        return np.asarray(value.float().numpy().astype(getattr(ml_dtypes, dtype)))
    return np.asarray(value.resolve_conj().resolve_neg().numpy())


def fit(name: str, leaf: str, value: Any, axes: tuple[int, ...] | None, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The tensor `name` in the layout of the model's `leaf`. Raises ValueError where the shapes do not agree."""
    array = to_numpy(value)
    given = array.shape
    if axes is not None and array.ndim == len(axes):
        array = array.transpose(axes)
    if shape == () and array.shape == (1,):  # PyTorch before 0.4 had no tensors without dimensions
        array = array[0]
    if array.shape != tuple(shape):
        turned = "" if axes is None else f", in this model's layout {array.shape}"
        raise ValueError(f"`{name}` of the state dict has shape {given}{turned}, but `{leaf}` of the model has shape {tuple(shape)}")
    return array


def cast(name: str, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """`array` in `dtype`; an integer that would not survive raises ValueError."""
    out = array.astype(dtype)
    if array.dtype.kind in "iu" and out.dtype.kind in "iu" and not np.array_equal(out.astype(array.dtype), array):
        hint = "enable jax_enable_x64 before the model is built"
        raise ValueError(f"`{name}` of the state dict holds integers that do not fit into {out.dtype}: {hint}")
    return out


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have the same values, NaN being the same as NaN."""
    if a.ctypes.data == b.ctypes.data and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype):
        return True  # one tensor, read once
    return np.array_equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


class Named(Protocol):
    """A leaf of a model: where it is, and what PyTorch may call it."""

    path: str
    names: list[str]


def apply_aliases(leaves: Collection[Named], aliases: Collection[tuple[str, str]]) -> None:
    """Gives each leaf the names that `torch_names` says are the same; a leaf's own name is never given to another."""
    own = {n for leaf in leaves for n in leaf.names}
    for leaf in leaves:
        todo = [*leaf.names, leaf.path]
        for name in todo:  # a renamed module may be inside another: what is found is looked up again
            for pair in aliases:
                for a, b in (pair, pair[::-1]):
                    other = b + name.removeprefix(a)
                    if (name == a or name.startswith(a + ".")) and other not in own and other not in leaf.names:
                        leaf.names.append(other)
                        todo.append(other)
