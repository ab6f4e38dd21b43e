"""How fast conversion is beside what any rewriter on a concrete syntax tree must do: parse, one pass that changes nothing, generate.

usage: conversion_speed.py FOLDER            converts the folder as `migrate convert --jobs 1` and `--jobs 2` do, and each of its files alone; needs libcst
       conversion_speed.py FOLDER --port     instead, the folder by `migrate port` with one process and with two

Seconds are those of one core (processor time). Those of `--port` and of two processes are what passes on the clock, which means something on an idle machine
only; beside them stands what they would be by the processor time of the parts and of what is done between them.
"""

import heapq
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libcst

import migrate
from migrate.port import Options, port
from migrate.port.pool import Processes


class _Pass(libcst.CSTTransformer):
    """Visits every node, changes none."""


def texts(folder: Path) -> list[str]:
    """The files."""
    return [f.read_text() for f in sorted(folder.rglob("*.py"))]


def concrete(folder: Path) -> None:
    """libcst's parse, an empty pass and the generation of the code."""
    for text in texts(folder):
        libcst.parse_module(text).visit(_Pass()).code  # noqa: B018


def alone(folder: Path) -> None:
    """Each file by itself, diagnostics with their positions included."""
    for text in texts(folder):
        migrate.convert_source(text)


def whole(folder: Path) -> None:
    """The folder as one project, written."""
    with tempfile.TemporaryDirectory() as out:
        migrate.convert_path(folder, out)


def both(folder: Path) -> float:
    """The seconds that pass while the folder is converted as one project in two processes."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        migrate.convert_path(folder, out, jobs=2)
    return time.monotonic() - start


def _timed(work: Callable[[Path], None], folder: Path, answer: Any) -> None:
    migrate.convert_source("import torch\n")  # the tables are read once
    start = time.process_time()
    work(folder)
    answer.put((time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def measured(work: Callable[[Path], None], folder: Path) -> tuple[float, float]:
    """(processor seconds, peak memory in MB) of a process that does nothing else."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_timed, args=(work, folder, answer))
    process.start()
    found: tuple[float, float] = answer.get()
    process.join()
    return found


class Counted:
    """The local engine; notes the processor time of the jobs, and of what this process does between them."""

    replaced = 0

    def __init__(self, jobs: int) -> None:
        self.engine, self.rounds = Processes(jobs), [[0.0]]
        self.between = -time.process_time()

    @property
    def memory(self) -> int:
        """The largest process."""
        return self.engine.memory

    def run(self, jobs: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Does the jobs."""
        before = len(self.engine.spent)
        yield from self.engine.run(jobs)
        self.rounds.append([seconds for _, seconds in sorted(self.engine.spent[before:])])

    def close(self) -> None:
        """Ends the processes."""
        self.between += time.process_time()
        self.engine.close()

    def with_processes(self, count: int) -> float:
        """Seconds with some processes, each on a core of its own."""
        total = self.between
        for jobs in self.rounds:
            busy = [0.0] * count
            for seconds in jobs:
                heapq.heapreplace(busy, busy[0] + seconds)
            total += max(busy)
        return total


def ported(folder: Path, jobs: int) -> tuple[float, Counted]:
    """Seconds that pass while the folder is ported with some processes."""
    engine = Counted(jobs)
    with tempfile.TemporaryDirectory() as out:
        start = time.monotonic()
        port(folder, Path(out), Options(), engine, lambda what, done, total: None)
        engine.close()
        return time.monotonic() - start, engine


def main() -> None:
    """Prints lines a second and the ratio, or the seconds of ports."""
    folder = Path(sys.argv[1])
    files = texts(folder)
    lines = sum(t.count("\n") for t in files)
    print(f"{len(files)} files, {lines} lines")
    if "--port" in sys.argv:
        (one, _), (two, engine) = ported(folder, 1), ported(folder, 2)
        print(f"port, 1 process     {one:7.1f} s")
        print(f"port, 2 processes   {two:7.1f} s  {one / two:.2f} times as fast; at most {engine.memory / 2**20:.0f} MB a process")
        one, two = engine.with_processes(1), engine.with_processes(2)
        print(f"by processor time   {one:7.1f} s and {two:.1f} s: {one / two:.2f} times as fast; {engine.between:.1f} s are done in no part")
        return
    base, _ = measured(concrete, folder)
    print(f"parse + pass + code {base:7.1f} s  {lines / base:9.0f} lines/s and core", flush=True)
    for name, work in (("the folder", whole), ("each file alone", alone)):
        own, memory = measured(work, folder)
        print(f"{name:20}{own:7.1f} s  {lines / own:9.0f} lines/s and core  {own / base:5.2f} times that  peak memory {memory:.0f} MB", flush=True)
    print(f"two processes       {(passed := both(folder)):7.1f} s on the clock, {passed / base:5.2f} times the first")


if __name__ == "__main__":
    main()
