"""A file or a folder under review: its conversion read as pieces, and the files that the decisions make."""

import ast
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.diagnostics import Diagnostic
from migrate.fitting.extract import load as load_support
from migrate.pipeline import Conversion, deep
from migrate.project import Planned, plan_as_written
from migrate.review.pieces import FileReview, group, read
from migrate.review.session import Session
from migrate.settings import table_for
from migrate.source.trimming import close_gaps
from migrate.tables import Table


@dataclass(frozen=True, eq=False)
class Review:
    """A session and the conversion that it is about."""

    session: Session
    planned: Planned
    files: Mapping[Path, FileReview]
    loose: tuple[Diagnostic, ...]  # warnings and errors that belong to no piece

    @property
    def fingerprint(self) -> str:
        """Of everything that the pieces come from: equal fingerprints have equal pieces."""
        parts = [f"{f.name}\0{f.source.text}\0{f.converted}" for f in self.files.values()]
        return hashlib.blake2b("\0\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def outputs(self, out: Path) -> dict[Path, bytes]:
        """The files as decided: exactly what was accepted, the original elsewhere. Raises Unparsable."""
        conversions = {path: self._decided(path, c) for path, c in self.planned.files.items()}
        return self.planned.outputs(out, conversions)

    def converted(self, out: Path) -> dict[Path, bytes]:
        """The files as `migrate convert` writes them."""
        return self.planned.outputs(out)

    def _decided(self, path: Path, c: Conversion) -> Conversion:
        if path not in self.files:
            return c
        review = self.files[path]
        text = self.session.text(review)
        names = c.names if text == review.converted else _support_names(text, review.imports.support) & set(review.imports.support_names)
        whole = next((m.whole for m in self.planned.modules.values() if m.path == path), True)
        used = c.used if text == review.converted else None
        return replace(c, code=(text if whole else close_gaps(text)).replace("\n", c.newline), names=names, used=used)


def _support_names(text: str, support: str) -> frozenset[str]:
    """The definitions of the support module that a text imports."""
    return frozenset(a.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom) and n.module == support for a in n.names)


def open_review(path: str | Path, target: str = "flax", roots: Sequence[str | Path] = (), table: Table | None = None) -> Review:
    """Converts in memory and reads the result as pieces. Raises FileNotFoundError."""
    planned = plan_as_written(path, target, roots, table, plans=True)
    table = table or table_for(path)
    support = list(load_support(target).definitions)
    found = {p: deep(lambda p=p, c=c: read(_shown(p, planned.folder), c, support)) for p, c in planned.files.items()}  # type: ignore[misc]
    readings = [r for r in found.values() if r is not None]
    needs = group(readings, table, target)
    files = {p: r.file for p, r in found.items() if r is not None}
    unread = [d for p, c in planned.files.items() if p not in files for d in c.diagnostics]
    loose = (*unread, *(d for f in files.values() for d in f.loose))
    return Review(Session(list(files.values()), needs), planned, files, loose)


def _shown(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
