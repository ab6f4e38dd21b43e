"""Writes the output: converted files, copies, the support module. A file that somebody edited since is kept."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate.port.store import Store, digest, place


@dataclass
class Delivery:
    """Writes into an output folder, and remembers what belongs there."""

    store: Store
    force: bool = False
    outputs: set[str] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)

    def write(self, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Writes files, given as path -> (content, mode). Those that are there already stay untouched."""
        todo: dict[str, tuple[bytes, int]] = {}
        for path, (data, mode) in files.items():
            self.outputs.add(path)
            there = self._there(path)
            if there == digest(data):
                self.store.written.setdefault(path, there)
            elif there is not None and not self.force and self.store.written.get(path) not in (there, _mark(self.store.out / path)):
                self.edited.append(path)
            else:
                todo[path] = data, mode
        self.store.announce({p: digest(d) for p, (d, _) in todo.items()})
        for path, (data, mode) in todo.items():
            self._clear(path)
            place(self.store.out / path, data, self.store.temporary, mode)
            self.changed.append(path)

    def copy(self, source: Path, path: str, replace: bool = True) -> None:
        """Copies a file with its mode and time. `replace=False`: only where nothing is there yet."""
        self.outputs.add(path)
        target = self.store.out / path
        if source.is_symlink():
            self._link(source, target, path)
            return
        mark, there = _mark(source), _mark(target)
        if there == mark or (there is not None and not replace):
            return
        if (
            there is not None
            and there != self.store.written.get(path)
            and self._there(path) != self.store.written.get(path)
            and not self.force
        ):
            self.edited.append(path)
            return
        self.store.announce({path: mark or ""})
        target.parent.mkdir(parents=True, exist_ok=True)
        self._clear(path)
        unfinished = self.store.temporary / f"{os.getpid()}-{digest(path)}"
        shutil.copy2(source, unfinished)
        with unfinished.open("rb") as f:
            os.fsync(f.fileno())
        os.replace(unfinished, target)
        self.changed.append(path)

    def _link(self, source: Path, target: Path, path: str) -> None:
        to = os.readlink(source)
        if os.path.isabs(to) or (target.is_symlink() and os.readlink(target) == to):
            return
        self.store.announce({path: f"link:{to}"})
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.store.temporary / f"{os.getpid()}-link"
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(to)
        os.replace(unfinished, target)

    def remove_others(self) -> list[str]:
        """Removes what earlier runs wrote and this project no longer has, where nobody edited it."""
        gone = []
        for path, was in sorted(self.store.written.items()):
            target = self.store.out / path
            if path in self.outputs:
                continue
            if was in (self._there(path), _mark(target)):
                target.unlink()
                gone.append(path)
                for folder in target.parents:
                    if folder == self.store.out or any(folder.iterdir()):
                        break
                    folder.rmdir()
            del self.store.written[path]
        return gone

    def _there(self, path: str) -> str | None:
        target = self.store.out / path
        return digest(target.read_bytes()) if target.is_file() else None

    def _clear(self, path: str) -> None:
        """Makes way where a folder that is empty stands in a file's place, or a file in a folder's."""
        target = self.store.out / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target) if self.force else target.rmdir()


def _mark(path: Path) -> str | None:
    """What tells a copy from another without reading it: size and time."""
    try:
        found = path.stat()
    except OSError:
        return None
    return f"copy:{found.st_size}:{found.st_mtime_ns}"
