"""Notebooks, cell by cell: the code cells make one module, magics stand aside meanwhile, outputs are dropped."""

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any

from migrate.pipeline import Conversion
from migrate.port.interface import rewrites, uses

MARK = "# migrate: cell {}"
MAGIC = "__notebook_line__({})"
LINE_MAGIC = re.compile(r"^(\s*)([%!?].*|[\w.]+\?{1,2})$")
ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)([%!].*)$")
PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun", "memit", "python", "python3"})


@dataclass
class Notebook:
    """A notebook's JSON, the Python of its cells, and the lines that are no Python."""

    data: dict[str, Any]
    cells: dict[int, str] = field(default_factory=dict)  # the cells that are converted
    aside: list[str] = field(default_factory=list)
    unreadable: dict[int, str] = field(default_factory=dict)
    indent: int = 1

    @property
    def lines(self) -> int:
        """How many lines of Python it has."""
        return sum(t.count("\n") + 1 for t in self.cells.values())

    def source(self) -> bytes:
        """All cells as one module."""
        return "".join(f"{MARK.format(i)}\n{text.rstrip()}\n\n" for i, text in self.cells.items()).encode()

    def result(self, c: Conversion) -> dict[str, Any]:
        """The notebook with its cells converted."""
        found = _split(c.code, list(self.cells))
        places = self._places()
        diagnostics = [[*_placed(places, d.line), d.column, d.code, d.message] for d in c.diagnostics]
        listed = [[line, column, code, f"cell {cell}: {message}"] for cell, line, column, code, message in diagnostics]
        listed += [[1, 1, "MIG501", f"cell {i + 1}: {why}"] for i, why in self.unreadable.items()]
        if found is None:
            listed.append([1, 1, "MIG901", "the cells could not be told apart after the conversion; the notebook is left as it is"])
            found = {}
        data = json.loads(json.dumps(self.data))
        for i, cell in enumerate(data.get("cells", ())):
            if cell.get("cell_type") == "code":
                cell["outputs"], cell["execution_count"] = [], None
                if i in found:
                    text = self._back(found[i])
                    cell["source"] = text.splitlines(keepends=True) if isinstance(cell.get("source"), list) else text
        used, imported = uses(c)
        text = json.dumps(data, indent=self.indent, ensure_ascii=False) + "\n"
        return {
            "code": text,
            "encoding": "utf-8",
            "names": sorted(c.names) if found else [],
            "used": sorted(used) if found else [],
            "imports": list(imported) if found else [],
            "lines": self.lines,
            "rewrites": rewrites(c),
            "diagnostics": sorted(listed),
        }

    def _back(self, text: str) -> str:
        return re.sub(r"__notebook_line__\((\d+)\)", lambda m: self.aside[int(m[1])], text)

    def _places(self) -> list[tuple[int, int]]:
        """(first line in the module, cell) of each cell."""
        at, places = 1, []
        for i, text in self.cells.items():
            places.append((at + 1, i + 1))
            at += len(text.rstrip().split("\n")) + 2
        return places


def read(data: bytes) -> Notebook:
    """A notebook. Raises ValueError where it is none."""
    text = data.decode("utf-8")
    content = json.loads(text)
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise ValueError("not a notebook of format 4")
    indent = re.match(r"\{\n( *)", text)
    book = Notebook(content, indent=len(indent[1]) if indent else 1)
    for i, cell in enumerate(content["cells"]):
        if cell.get("cell_type") != "code":
            continue
        source = "".join(cell["source"]) if isinstance(cell.get("source"), list) else str(cell.get("source", ""))
        start = len(book.aside)
        python = _aside(book, source)
        if python is None or not python.strip():
            continue
        try:
            ast.parse(python)
        except (SyntaxError, ValueError, RecursionError) as e:
            del book.aside[start:]
            book.unreadable[i] = f"not valid Python: {getattr(e, 'msg', e)}"
            continue
        book.cells[i] = python
    return book


def _aside(book: Notebook, source: str) -> str | None:
    """The cell with its magics put aside; None for a cell of another language."""
    lines = source.split("\n")
    if lines and lines[0].startswith("%%") and lines[0][2:].split(" ")[0].strip() not in PYTHON_CELLS:
        return None
    for number, line in enumerate(lines):
        if (m := LINE_MAGIC.match(line)) or (m := ASSIGNED.match(line)):
            lines[number] = m[1] + MAGIC.format(len(book.aside))
            book.aside.append(m[2])
    return "\n".join(lines)


def _split(code: str, cells: list[int]) -> dict[int, str] | None:
    """The text of each cell; None where the marks are not all there, in order."""
    pieces = re.split(r"^# migrate: cell (\d+)\n", code, flags=re.M)
    if [int(n) for n in pieces[1::2]] != cells:
        return None
    before = pieces[0].strip("\n")  # imports that came before the first mark
    texts = {int(n): text.strip("\n") for n, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    if before and cells:
        texts[cells[0]] = f"{before}\n{texts[cells[0]]}".strip("\n")
    return texts


def _placed(places: list[tuple[int, int]], line: int) -> tuple[int, int]:
    """(cell, line in the cell) of a line of the module."""
    found = (1, line)
    for first, cell in places:
        if line >= first - 1:
            found = (cell, max(1, line - first + 1))
    return found
