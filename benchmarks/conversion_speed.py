"""How fast conversion is beside what any rewriter on a concrete syntax tree must do: parse, one pass that changes nothing, generate.

usage: conversion_speed.py FOLDER            converts every Python file of the folder, in memory; needs libcst
       conversion_speed.py FOLDER --port     besides, the whole folder by `migrate port` with one process and with two, on an idle machine

Seconds are those of one core (processor time); those of `--port` are what passes on the clock.
"""
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import libcst

import migrate


class _Pass(libcst.CSTTransformer):
    """Visits every node, changes none."""


def concrete(texts: list[str]) -> float:
    """Seconds for libcst's parse, an empty pass and the generation of the code."""
    start = time.process_time()
    for text in texts:
        libcst.parse_module(text).visit(_Pass()).code
    return time.process_time() - start


def converted(texts: list[str], target: str) -> float:
    """Seconds for the whole conversion, diagnostics with their positions included."""
    start = time.process_time()
    for text in texts:
        migrate.convert_source(text, target=target)
    return time.process_time() - start


def ported(folder: str, jobs: int) -> float:
    """Seconds that pass while the folder is ported with some processes."""
    with tempfile.TemporaryDirectory() as out:
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "migrate.cli", "port", folder, "-o", out, "--jobs", str(jobs)], stdout=subprocess.DEVNULL)
        return time.monotonic() - start


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
    print(f"conversion          {own:7.1f} s  {lines / own:9.0f} lines/s and core  peak memory {peak:.0f} MB")
    print(f"parse + pass + code {base:7.1f} s  {lines / base:9.0f} lines/s and core")
    print(f"ratio               {own / base:7.2f}")
    if "--port" in sys.argv:
        one, two = ported(sys.argv[1], 1), ported(sys.argv[1], 2)
        print(f"port, 1 process     {one:7.1f} s")
        print(f"port, 2 processes   {two:7.1f} s  {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
