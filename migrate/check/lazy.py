"""Weights that stay in their file until they are needed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Lazy(Mapping[str, Any]):
    """A state dict whose tensors are read when they are asked for."""

    def __init__(self, entries: Mapping[str, Any], read: Callable[[Any], Any]) -> None:
        self.entries = entries
        self.read = read
        self._last: tuple[Any, Any] = (None, None)

    def __getitem__(self, name: str) -> Any:
        entry = self.entries[name]
        if entry != self._last[0]:  # tied tensors follow each other, and are read once
            self._last = (entry, self.read(entry))
        return self._last[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries
