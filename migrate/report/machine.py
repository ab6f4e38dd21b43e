"""A conversion for other programs: JSON of our own, and SARIF 2.1.0 for code review tools."""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import quote

from migrate.diagnostics import CODES, Diagnostic
from migrate.report.text import located

LEVELS = {"info": "note", "warning": "warning", "error": "error"}
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Told:
    """The diagnostics of a file, read back from a report."""

    def __init__(self, path: str, told: Sequence[Mapping[str, Any]]) -> None:
        self.diagnostics = [Diagnostic(d["line"], d["column"], d["code"], d["message"], path) for d in told]


def as_json(files: Mapping[str, Any], written: Sequence[str] = ()) -> dict[str, Any]:
    """`{"version": 1, "files": [{"path", "diagnostics"}], "written": [...]}`; the code itself where nothing was written."""
    found = []
    for path, conversion in files.items():
        entry: dict[str, Any] = {"path": path, "diagnostics": [_diagnostic(d) for _, d in located({path: conversion})]}
        if not written:
            entry |= {"code": conversion.code, "support": dict(conversion.support)}
        found.append(entry)
    return {"version": 1, "files": found, "written": list(written)}


def _diagnostic(d: Any) -> dict[str, Any]:
    return {"code": d.code, "severity": d.severity, "line": d.line, "column": d.column, "message": d.message}


def as_sarif(files: Mapping[str, Any]) -> dict[str, Any]:
    """One SARIF run with a result for each diagnostic."""
    results = [_result(path, d) for path, d in located(files)]
    used = sorted({r["ruleId"] for r in results})
    driver = {"name": "migrate", "version": _version(), "rules": [_rule(code) for code in used]}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(path: str, d: Any) -> dict[str, Any]:
    region = {"startLine": max(d.line, 1), "startColumn": max(d.column, 1)}
    where = {"physicalLocation": {"artifactLocation": {"uri": quote(path.replace("\\", "/"))}, "region": region}}
    return {"ruleId": d.code, "level": LEVELS[d.severity], "message": {"text": d.message}, "locations": [where]}


def _rule(code: str) -> dict[str, Any]:
    entry = CODES[code]
    return {
        "id": code,
        "name": entry.title.title().replace(" ", ""),
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": entry.way_out},
        "defaultConfiguration": {"level": LEVELS[entry.severity]},
    }


def _version() -> str:
    try:
        return version("migrate")
    except PackageNotFoundError:
        return "0"
