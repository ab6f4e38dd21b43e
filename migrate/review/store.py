"""Progress on disk: one file for each review, written whole after every decision, so that a crash loses nothing.

`OUT/.migrate/review-NAME-TARGET.json`. Pieces are known by their content, so decisions survive changes elsewhere in the source.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from migrate.project import write_atomically
from migrate.review.decisions import Decisions

FOLDER = ".migrate"
VERSION = 1


class Store:
    """The state file of one review."""

    def __init__(self, out: Path, name: str, target: str) -> None:
        self.out = out
        self.folder = out / FOLDER
        self.path = self.folder / f"review-{name}-{target}.json"
        self.written: dict[str, str] = {}  # output file -> digest of what a review wrote there
        self.fingerprint = ""

    def load(self, keys: Iterable[str], fingerprint: str) -> tuple[Decisions, bool]:
        """(the decisions kept, whether the conversion has changed since). A file that can't be read counts as none."""
        data = _read(self.path)
        self.written = {str(k): str(v) for k, v in data.get("written", {}).items()}
        self.fingerprint = fingerprint
        try:
            decisions = Decisions.from_json(data, keys) if data else Decisions()
        except (ValueError, KeyError, TypeError, AttributeError):
            return Decisions(), False
        return decisions, bool(data) and data.get("fingerprint") != fingerprint

    def save(self, decisions: Decisions) -> None:
        """Writes the progress."""
        data = {"version": VERSION, "fingerprint": self.fingerprint, "written": self.written} | decisions.to_json()
        ignore(self.folder)
        write_atomically(self.path, json.dumps(data, indent=1).encode())

    def forget(self) -> None:
        """Starts afresh; what was written stays known."""
        self.path.unlink(missing_ok=True)

    def note_written(self, files: Mapping[Path, bytes]) -> None:
        """Remembers what was written, so that the next review may replace it."""
        self.written |= {self._name(p): digest(data) for p, data in files.items()}

    def may_replace(self, path: Path, converted: bytes) -> bool:
        """Whether a file holds only what the conversion or a review wrote."""
        found = path.read_bytes()
        return found == converted or self.written.get(self._name(path)) == digest(found)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.out).as_posix() if path.is_relative_to(self.out) else path.as_posix()


def digest(data: bytes) -> str:
    """A name for some bytes."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def ignore(folder: Path) -> None:
    """Makes the folder, and keeps it out of version control."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / ".gitignore"
    if not mark.exists():
        write_atomically(mark, b"*\n")


def check_path(converted: Path) -> Path:
    """Where the last check of a converted file is kept."""
    return converted.parent / FOLDER / f"check-{converted.stem}.json"


def save_check(converted: Path, verdict: Mapping[str, Any]) -> None:
    """Keeps a check's outcome for reviews."""
    path = check_path(converted)
    ignore(path.parent)
    write_atomically(path, json.dumps(verdict, indent=1).encode())


def load_check(path: Path) -> dict[str, Any]:
    """A check's outcome; {} where there is none."""
    return _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("version") == VERSION else {}
