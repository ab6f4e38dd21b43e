"""Large tensors on disk while they wait to be compared."""

import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

SMALL = 1 << 17  # bytes that may stay in memory


@dataclass(frozen=True)
class Spooled:
    """A tensor that lies in a file; `dtype` is what it had."""

    file: Any
    offset: int
    shape: tuple[int, ...]
    dtype: str
    kept_as: Any

    def read(self) -> np.ndarray[Any, Any]:
        """Its values, read as they are looked at."""
        return np.memmap(self.file, self.kept_as, "c", self.offset, self.shape)


class Spool:
    """A file without a name, which ends with the process."""

    def __init__(self) -> None:
        self._file: Any = None

    def keep(self, value: Any) -> Any:
        """A tensor as it is now: code may write into it later. Other values as they are."""
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach()
        if value.numel() * value.element_size() < SMALL or value.layout != torch.strided:
            return value.clone()
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it ends with the process)
        offset = self._file.seek(0, 2)
        array = to_numpy(value)
        np.ascontiguousarray(array).tofile(self._file)
        self._file.flush()
        return Spooled(self._file, offset, array.shape, dtype_name(value), array.dtype)


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A tensor or number as numpy; half precision as float32."""
    if isinstance(value, Spooled):
        return value.read()
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach()
    if value.is_sparse or value.layout != torch.strided:
        value = value.to_dense()
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    return np.asarray(value.resolve_conj().resolve_neg().cpu().numpy())


def dtype_name(value: Any) -> str:
    """The dtype of a tensor or number, without its framework."""
    if isinstance(value, Spooled):
        return value.dtype
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch.")
    return {bool: "bool", int: "int64", float: "float32", complex: "complex64"}.get(type(value), str(np.asarray(value).dtype))
