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
    out = Path(job["out"])
    result = out / "result.json"
    result.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="migrate-") as folder:
        job_file, log = Path(folder, "job.json"), Path(folder, "log")
        job_file.write_text(json.dumps(job))
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(job_file)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": "1", "MIGRATE_MEMORY": str(int(limits.memory_gib * GIB))},
            )
            try:
                code = process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                raise ChildError(f"ran longer than {limits.seconds:g} s") from None
            finally:
                _end(process)
        if not result.exists():
            raise ChildError(_death(code, log.read_text(errors="replace")))
    content = json.loads(result.read_text())
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
