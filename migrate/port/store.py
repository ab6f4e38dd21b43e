"""What a run keeps between runs, in the folder `.migrate` of the output: finished parts, and what was written.

A process may be killed at any moment: every file is written beside its place, flushed to the disk, and renamed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from migrate.settings import row_files

STATE = ".migrate"


class Busy(RuntimeError):
    """Another run is at work in the same output."""


def digest(data: bytes | str) -> str:
    """A short name for some content."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:32]


def canonical(value: Any) -> str:
    """JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def tool_version(project: Path) -> str:
    """The version of this tool and of the rows that users add: a part that another version converted is converted again."""
    return digest(_own_version() + "".join(digest(p.read_bytes()) for p in row_files(project)))


@cache
def _own_version() -> str:
    """The content of this tool's files."""
    folder = Path(__file__).parent.parent
    files = [p for p in sorted(folder.rglob("*")) if p.suffix in (".py", ".toml") and "cli" not in p.relative_to(folder).parts[:1]]
    return digest("".join(digest(p.read_bytes()) for p in files))


class Store:
    """The state of one output folder."""

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / STATE
        self.temporary = self.folder / "tmp"
        self.written: dict[str, str] = {}
        self._journal = self.folder / "written.jsonl"

    @contextlib.contextmanager
    def opened(self) -> Iterator["Store"]:
        """Takes the output for this run; what a killed run left half-written is removed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(str(self.out)) from None
            shutil.rmtree(self.temporary, ignore_errors=True)
            self.temporary.mkdir(exist_ok=True)
            self.written = self._read_journal()
            yield self

    def load(self, kind: str, name: str) -> dict[str, Any] | None:
        """Something that was kept; None where there is nothing, or not all of it."""
        return load(self.folder, kind, name)

    def keep(self, kind: str, name: str, value: Mapping[str, Any]) -> None:
        """Keeps something."""
        keep(self.folder, kind, name, value)

    def forget_others(self, kind: str, names: set[str]) -> None:
        """Removes what was kept and is not among the names."""
        for p in (self.folder / kind).glob("*.json"):
            if p.stem not in names:
                p.unlink(missing_ok=True)

    def announce(self, outputs: Mapping[str, str]) -> None:
        """Notes what is about to be written (path -> digest), so that a later run can tell its own files from edited ones."""
        new = {p: d for p, d in outputs.items() if self.written.get(p) != d}
        if new:
            with self._journal.open("a", encoding="utf-8") as f:
                f.writelines(canonical([p, d]) + "\n" for p, d in new.items())
                f.flush()
                os.fsync(f.fileno())
            self.written.update(new)

    def close_journal(self) -> None:
        """Replaces the journal by what holds at the end."""
        place(self._journal, "".join(canonical([p, d]) + "\n" for p, d in sorted(self.written.items())).encode(), self.temporary)

    def _read_journal(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self._journal.is_file():
            for line in self._journal.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError):  # the last line of a killed run
                    path, name = json.loads(line)
                    found[path] = name
        return found


def load(folder: Path, kind: str, name: str) -> dict[str, Any] | None:
    """Something that was kept in a state folder."""
    try:
        text = (folder / kind / f"{name}.json").read_text(encoding="utf-8")
        check, _, body = text.partition("\n")
        value = json.loads(body) if check == digest(body) else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def keep(folder: Path, kind: str, name: str, value: Mapping[str, Any]) -> None:
    """Keeps something in a state folder."""
    body = canonical(value)
    place(folder / kind / f"{name}.json", f"{digest(body)}\n{body}".encode(), folder / "tmp")


def place(path: Path, data: bytes, temporary: Path, mode: int = 0o644) -> None:
    """Writes a file whole: in the folder for unfinished files, flushed, then renamed to its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.mkdir(parents=True, exist_ok=True)
    unfinished = temporary / f"{os.getpid()}-{digest(str(path))}"
    with unfinished.open("wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    unfinished.chmod(mode)
    os.replace(unfinished, path)
