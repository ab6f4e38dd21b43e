"""A conversion as lines for a terminal."""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def located(files: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each diagnostic with the path of its file, in the order of files and lines."""
    for path, conversion in files.items():
        for d in sorted(conversion.diagnostics, key=lambda d: (d.line, d.column)):
            yield path, d


def line(path: str, diagnostic: Any) -> str:
    """`model.py:14:9: MIG302 message`."""
    return f"{path}:{diagnostic.line}:{diagnostic.column}: {diagnostic.code} {diagnostic.message}"


def counts(files: Mapping[str, Any]) -> Counter[str]:
    """How many diagnostics of each severity."""
    return Counter(d.severity for _, d in located(files))


def summary(files: Mapping[str, Any]) -> str:
    """`1 file converted, 48 rewrites, 1 warning, nothing left undone`."""
    n = counts(files)
    parts = [plural(len(files), "file") + " converted"]
    if n["info"]:
        parts.append(plural(n["info"], "note"))
    if n["warning"]:
        parts.append(plural(n["warning"], "warning"))
    parts.append(
        f"{plural(n['error'], 'construct')} left as it was"
        if n["error"] == 1
        else f"{n['error']} constructs left as they were"
        if n["error"]
        else "nothing left undone"
    )
    return ", ".join(parts)


def plural(n: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def diff(before: str, after: str, name: str, new_name: str) -> list[str]:
    """A unified diff, one string a line, without line ends."""
    a, b = before.splitlines(), after.splitlines()
    return [text.rstrip("\n") for text in difflib.unified_diff(a, b, f"a/{name}", f"b/{new_name}", lineterm="")]


def diff_colour(text: str) -> str | None:
    """The colour of a line of a diff."""
    if text.startswith(("+++", "---")):
        return "white"
    return {"+": "green", "-": "red", "@": "cyan"}.get(text[:1])
