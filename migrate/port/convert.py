"""Converts one part of a project: what a worker does. Tasks and results are JSON, so that they travel between processes and machines."""

from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any

from migrate.diagnostics import Diagnostic
from migrate.infer.facts import Exchange, Facts
from migrate.pipeline import Conversion, deep
from migrate.port import notebooks
from migrate.port.interface import interface, rewrites, uses
from migrate.port.scan import pack_facts, unpack_facts
from migrate.port.store import canonical, digest
from migrate.project import convert_reached
from migrate.settings import table_for
from migrate.source.projects import Reach
from migrate.source.trimming import trim

Task = dict[str, Any]  # project, search, files: [[path, module]], target, support, facts; earlier: the content of an earlier result
Result = dict[str, Any]
Kept = MutableMapping[Path, Conversion]


def convert_part(task: Task, kept: Kept | None = None) -> Result:
    """The result of a part. A bug of ours in one file leaves that file as it was, and the others are converted without it.

    `kept` receives the conversions themselves, with their plans, which a result can't carry.
    """
    try:
        return deep(lambda: _convert(task, kept))
    except (Exception, RecursionError) as e:
        if len(task["files"]) > 1:
            return joined([convert_part({**task, "files": [f], "earlier": None}, kept) for f in task["files"]])
        return failed(task, f"{type(e).__name__}: {e}")


def _convert(task: Task, kept: Kept | None) -> Result:
    project = Path(task["project"])
    books = {project / p: notebooks.read((project / p).read_bytes()) for p, _ in task["files"] if p.endswith(".ipynb")}
    reach = Reach([project / s for s in task["search"]], texts={p: b.source() for p, b in books.items()}, installed=False, hands_on=False)
    starts = [(project / p, m) for p, m in task["files"]]
    for path, name in starts:
        reach.add(path, name)
    content = _content(task, reach)
    read = _read(project, reach, [p for p, _ in starts])
    if task.get("earlier") == content:
        return {"content": content, "read": read, "same": True}
    exchange = Exchange(unpack_facts(task["facts"]), look=interface)
    files, modules = convert_reached(reach, starts, task["target"], table_for(project), task["support"], exchange)
    own = {path for path, _ in starts}
    result: Result = {
        "content": content,
        "read": read,
        "files": {},
        "facts": pack_facts(exchange.found),
        "asked": exchange.asked,
        "seen": {},
        "makes": {},
    }
    for m in modules.values():
        where = _relative(m.path, project)
        result["makes" if m.path in own else "seen"][where] = exchange.looked.get(m.name, {})
    for path, name in starts:
        c = files.get(path)
        if c is None:  # a module of the same name stands before it
            c = Conversion(
                reach.bytes(path).decode("utf-8", "replace"), {}, (Diagnostic(1, 1, "MIG502", f"another file is imported as {name}"),)
            )
        if kept is not None:
            kept[path] = c
        result["files"][_relative(path, project)] = books[path].result(c) if path in books else _file(c)
    return result


def _file(c: Conversion) -> dict[str, Any]:
    used, imported = uses(c)
    return {
        "code": c.code,
        "encoding": c.encoding,
        "names": sorted(c.names),
        "used": sorted(used),
        "imports": list(imported),
        "rewrites": rewrites(c),
        "diagnostics": [[d.line, d.column, d.code, d.message] for d in c.diagnostics],
    }


def _content(task: Task, reach: Reach) -> str:
    """Names all that the result depends on: the text of each definition that is needed, and the options."""
    parts = [canonical([task["target"], task["support"], task["facts"], task["files"], task["tool"]])]
    for name, m in sorted(reach.modules.items()):
        if m.whole or m.kept or m.package or m.needed:
            parts.append(f"{name}\0{trim(m, m.source)[0]}")
    return digest("\0\0".join(parts))


def _read(project: Path, reach: Reach, own: Iterable[Path]) -> dict[str, str]:
    """The files that were looked at, with their content's digest."""
    paths = {m.path for m in reach.modules.values()} | set(reach.unreadable) | set(own)
    return {_relative(p, project): digest(p.read_bytes()) for p in sorted(paths)}


def _relative(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def joined(results: list[Result]) -> Result:
    """One result for files that were converted one by one."""
    first = {"content": "", "read": {}, "files": {}, "seen": {}, "makes": {}}
    every = Facts()
    for r in results:
        for key in ("read", "files", "seen", "makes"):
            first[key] = {**first[key], **r[key]}  # type: ignore[dict-item]
        every |= unpack_facts(r["facts"])
    return {**first, "facts": pack_facts(every), "asked": any(r["asked"] for r in results), "failed": any(r.get("failed") for r in results)}


def failed(task: Task, why: str) -> Result:
    """The result for files that could not be converted at all: they stay as they are."""
    project = Path(task["project"])
    files: dict[str, Any] = {}
    for path, _ in task["files"]:
        d = Diagnostic(1, 1, "MIG901", f"the file was left as it is: {why}")
        files[path] = {
            "code": None,
            "encoding": "utf-8",
            "names": [],
            "used": [],
            "imports": [],
            "rewrites": {},
            "diagnostics": [[d.line, d.column, d.code, d.message]],
        }
    read = {p: digest((project / p).read_bytes()) for p, _ in task["files"]}
    return {
        "content": "",
        "read": read,
        "files": files,
        "facts": pack_facts(Facts()),
        "asked": False,
        "seen": {},
        "makes": {},
        "failed": True,
    }
