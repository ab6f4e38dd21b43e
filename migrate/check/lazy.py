"""Weights that stay in their file until they are needed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

PART = 64 << 20  # bytes of a large model that are compared at a time


class Lazy(Mapping[str, Any]):
    """A state dict whose tensors are read when they are asked for."""

    def __init__(self, entries: Mapping[str, Any], read: Callable[[Any], Any]) -> None:
        self.entries = entries
        self.read = read

    def __getitem__(self, name: str) -> Any:
        return self.read(self.entries[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def with_(self, others: Mapping[str, Any]) -> "Lazy":
        """With other tensors under those of its names that `others` has."""
        return Lazy({n: others.get(n, e) for n, e in self.entries.items()}, self.read)

    def where(self, names: set[str]) -> "Lazy":
        """Only these names."""
        return Lazy({n: e for n, e in self.entries.items() if n in names}, self.read)


def parts(rows: dict[str, Any], entries: dict[str, Any]) -> list[set[str]]:
    """Names of about PART bytes each, all names of a leaf in the same; one empty set for a model that is no larger than a few."""
    sizes = {path: value.nbytes for path, (names, value) in rows.items() if set(names) & set(entries)}
    if sum(sizes.values()) < 4 * PART:
        return [set()]
    found: list[set[str]] = []
    size = PART
    for path, nbytes in sizes.items():
        if size + nbytes > PART:
            found.append(set())
            size = 0
        found[-1] |= set(rows[path][0])
        size += nbytes
    return found
