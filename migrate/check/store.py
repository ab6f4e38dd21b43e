"""Arrays on disk: a folder of safetensors files, written as they come and read one at a time. Equal arrays are kept once."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

FLUSH = 48 << 20  # bytes that wait in memory before a file is written

Array = np.ndarray[Any, Any]


class Writer:
    """Collects arrays under keys made from their content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}  # key -> file
        self._waiting: dict[str, Array] = {}
        self._size = 0
        self._count = 0

    def add(self, array: Array, alone: bool = False) -> str:
        """Keeps an array; returns its key. Complex numbers are kept as pairs. `alone`: there is no equal one, to look for which takes time."""
        array = np.asarray(array, order="C")
        if array.dtype.kind == "c":
            array = array.view(array.real.dtype).reshape(*array.shape, 2)
        key = f"alone-{len(self.files)}" if alone else _content(array)
        if key not in self.files:
            self.files[key] = f"arrays-{self._count:03}.safetensors"
            self._waiting[key] = array
            self._size += array.nbytes
            if self._size > FLUSH:
                self.flush()
        return key

    def flush(self) -> None:
        """Writes what waits."""
        if self._waiting:
            save_file(self._waiting, self.folder / f"arrays-{self._count:03}.safetensors")
            self._count += 1
            self._waiting, self._size = {}, 0


def _content(array: Array) -> str:
    digest = hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=12, person=str(array.dtype).encode())
    digest.update(str(array.shape).encode())
    return digest.hexdigest()


class Reader:
    """Reads single arrays from what a Writer wrote."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        self.files = files
        self._open: dict[str, Any] = {}
        self._size = 0

    def get(self, key: str) -> Array:
        """The array of a key."""
        name = self.files[key]
        if name not in self._open:
            self._open[name] = safe_open(self.folder / name, framework="np")
        array: Array = self._open[name].get_tensor(key)
        self._size += array.nbytes
        if self._size > FLUSH:  # what was read of an open file counts as memory of the process
            self._open, self._size = {}, 0
        return array
