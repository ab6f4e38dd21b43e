"""The local engine: processes that are replaced when they die, take too long or have grown large."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from migrate.port.convert import joined
from migrate.port.work import Job, given_up, pieces

LARGE = 700 * 1024 * 1024  # a worker that has grown beyond this is replaced
SECONDS = 600.0  # a job that takes longer is ended


@dataclass(eq=False)
class _Worker:
    process: "subprocess.Popen[bytes]"
    number: int = -1
    job: Job = field(default_factory=dict)
    until: float = 0.0
    buffer: bytearray = field(default_factory=bytearray)

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


class Processes:
    """Runs jobs in processes of this machine."""

    def __init__(self, jobs: int, seconds: float = SECONDS) -> None:
        self.count, self.seconds = max(1, jobs), seconds
        self.memory = 0  # the largest of any worker
        self.replaced = 0
        self.spent: list[tuple[int, float]] = []  # (number, processor time) of each job as it ended; of its worker's start too where it was the first
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields (number of the job, result) as they end. A job that ends its worker is done again in pieces; then it is given up."""
        todo = deque(enumerate(jobs))
        parts: dict[int, list[dict[str, Any]]] = {}
        missing: dict[int, int] = {}
        while todo or any(w.number >= 0 for w in self._workers):
            self._assign(todo)
            for worker in self._wait():
                number, job = worker.number, worker.job
                result = self._take(worker)
                if result is None:
                    continue
                if "died" in result:
                    if smaller := pieces(job):
                        missing[number] = len(smaller)
                        todo.extendleft((number, {**p, "piece": True}) for p in smaller)
                        continue
                    result = given_up(job, result["died"])
                if not job.get("piece"):
                    yield number, result
                    continue
                parts.setdefault(number, []).append(result)
                if len(parts[number]) == missing[number]:
                    yield number, _together(job, parts.pop(number))

    def close(self) -> None:
        """Ends the workers."""
        for w in self._workers:
            self._end(w)
        self._workers = []
        self._selector.close()

    def _assign(self, todo: "deque[tuple[int, Job]]") -> None:
        idle = [w for w in self._workers if w.number < 0]
        while todo and (idle or len(self._workers) < self.count):
            worker = idle.pop() if idle else self._start()
            worker.number, worker.job = todo.popleft()
            worker.until = time.monotonic() + self.seconds
            assert worker.process.stdin is not None
            try:
                worker.process.stdin.write(json.dumps(worker.job).encode() + b"\n")
                worker.process.stdin.flush()
            except BrokenPipeError:
                pass  # its end is seen when it is read

    def _wait(self) -> list[_Worker]:
        ready = {key.data for key, _ in self._selector.select(timeout=1.0)}
        late = [w for w in self._workers if w.number >= 0 and time.monotonic() > w.until]
        for w in late:
            w.process.kill()
        return [w for w in self._workers if w in ready or w in late]

    def _take(self, w: _Worker) -> dict[str, Any] | None:
        """The result that a worker has; None where it is not all there yet."""
        data = b"" if time.monotonic() > w.until else os.read(w.output.fileno(), 1 << 20)
        w.buffer += data
        if not data:
            late = time.monotonic() > w.until
            self._end(w)
            self._workers.remove(w)
            self.replaced += 1
            if w.number < 0:
                return None
            return {
                "died": f"it takes longer than {self.seconds:.0f} seconds"
                if late
                else f"the process that converted it ended ({w.process.returncode})"
            }
        if not w.buffer.endswith(b"\n"):
            return None
        result: dict[str, Any] = json.loads(w.buffer)
        w.buffer.clear()
        self.spent.append((w.number, result.pop("seconds", 0.0)))
        w.number = -1
        size = result.pop("memory", 0)
        self.memory = max(self.memory, size)
        if size > LARGE:
            self._end(w)
            self._workers.remove(w)
        return result

    def _start(self) -> _Worker:
        import migrate

        place = str(Path(migrate.__file__).parent.parent)
        path = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        worker = _Worker(
            subprocess.Popen([sys.executable, "-m", "migrate.port.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        )
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        self._workers.append(worker)
        return worker

    def _end(self, w: _Worker) -> None:
        self._selector.unregister(w.output)
        w.process.kill()
        w.process.wait()
        for stream in (w.process.stdin, w.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _together(job: Job, results: list[dict[str, Any]]) -> dict[str, Any]:
    if job["kind"] != "part":
        return {"scans": {k: v for r in results for k, v in r["scans"].items()}}
    return joined(results)
