"""How fast conversion is beside what any rewriter on a concrete syntax tree must do: parse, one pass that changes nothing, generate.

usage: conversion_speed.py FOLDER     converts every Python file of the folder, in memory; needs libcst
"""
import resource
import sys
import time
from pathlib import Path

import libcst

import migrate


class _Pass(libcst.CSTTransformer):
    """Visits every node, changes none."""


def concrete(texts: list[str]) -> float:
    """Seconds for libcst's parse, an empty pass and the generation of the code."""
    start = time.perf_counter()
    for text in texts:
        libcst.parse_module(text).visit(_Pass()).code  # noqa: B018 - the property does the work
    return time.perf_counter() - start


def converted(texts: list[str], target: str) -> float:
    """Seconds for the whole conversion, diagnostics with their positions included."""
    start = time.perf_counter()
    for text in texts:
        migrate.convert_source(text, target=target)
    return time.perf_counter() - start


def main() -> None:
    """Prints lines a second and the ratio."""
    files = sorted(Path(sys.argv[1]).rglob("*.py"))
    texts = [f.read_text() for f in files]
    lines = sum(t.count("\n") for t in texts)
    migrate.convert_source("import torch\n")  # the tables are read once
    own = converted(texts, "flax")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    base = concrete(texts)
    print(f"{len(files)} files, {lines} lines")
    print(f"conversion          {own:7.1f} s  {lines / own:9.0f} lines/s  peak memory {peak:.0f} MB")
    print(f"parse + pass + code {base:7.1f} s  {lines / base:9.0f} lines/s")
    print(f"ratio               {own / base:7.2f}")


if __name__ == "__main__":
    main()
