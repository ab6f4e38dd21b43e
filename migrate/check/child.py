"""Runs a Python module in a child process: no standard input, a time limit, a memory limit, its output kept for the error message only."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """For each of the two processes."""

    seconds: float = 600.0
    memory_gib: float = 32.0  # of address space, which is several times what is really used


DEFAULT = Limits()


class ChildError(Exception):
    """The process died or ran out of time; the message says how."""


def run(module: str, job: dict[str, Any], limits: Limits, environment: dict[str, str]) -> dict[str, Any]:
    """Runs `python -m module JOB.json` and returns the `result.json` that it leaves in the job's `out` folder. Raises ChildError."""
    with Child(module, job, limits, environment) as child:
        return child.result()


class Child:
    """A module that runs in a process of its own from here on; it ends with the block."""

    def __init__(self, module: str, job: dict[str, Any], limits: Limits, environment: dict[str, str]) -> None:
        self.module = module
        self.limits = limits
        self._result = Path(job["out"]) / "result.json"
        self._result.unlink(missing_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="migrate-")
        job_file, self._log = Path(self._folder.name, "job.json"), Path(self._folder.name, "log")
        job_file.write_text(json.dumps(job))
        with self._log.open("wb") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(job_file)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": "1", "MIGRATE_MEMORY": str(int(limits.memory_gib * GIB))},
            )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._process)
        self._folder.cleanup()

    def result(self) -> dict[str, Any]:
        """What it leaves, within the time limit from now on. Raises ChildError."""
        try:
            code = self._process.wait(self.limits.seconds)
        except subprocess.TimeoutExpired:
            raise ChildError(f"ran longer than {self.limits.seconds:g} s") from None
        finally:
            _end(self._process)
        if not self._result.exists():
            raise ChildError(_death(code, self._log.read_text(errors="replace")))
        content = json.loads(self._result.read_text())
        assert isinstance(content, dict)
        return content


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def _death(code: int, log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    last = f": {lines[-1][:300]}" if lines else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was killed by {name}{last}"
    return f"ended with code {code}{last}"


def _end_with_parent() -> None:
    """Where the command is killed, what it started is not left running."""
    import ctypes

    if os.environ.get("MIGRATE_MEMORY"):  # not where a test calls it in its own process
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def limit_memory() -> None:
    """Called in the child once the frameworks are imported: what user code may use."""
    if sys.platform != "linux":
        return
    _end_with_parent()
    wanted = int(os.environ.get("MIGRATE_MEMORY", "0"))
    if not wanted:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def peak_memory() -> int:
    """Bytes that this process had in memory at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
