"""Reading and writing for the command line: whole files, atomically, never over something that is not ours."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from migrate.cli.failure import Failure

SUPPORT = ("torch_support.py", "torch_support_.py")  # written by us, and replaced without asking
MARK = "migrate"  # in the first lines of each support module


def read_bytes(path: Path | str) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise Failure(e.strerror or str(e), path) from None


def ours(path: Path) -> bool:
    """Whether a file is a support module that an earlier run wrote."""
    if path.name not in SUPPORT:
        return False
    head = path.read_bytes()[:400]
    return MARK.encode() in head


def refuse_existing(paths: Iterable[Path], force: bool) -> None:
    """Raises Failure where a file exists that may not be replaced."""
    there = [p for p in paths if p.exists() and not (force or ours(p))]
    if there:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise Failure(f"exists already{more}; --force replaces it", there[0])


def write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all: a temporary file beside it takes its place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(data)
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
            os.chmod(name, mode)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as e:
        raise Failure(f"can't be written: {e.strerror or e}", path) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def relative(path: Path) -> str:
    """A path as a person would type it from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
