"""Kills `migrate port` again and again, and compares what the last run leaves with the output of a run that nobody disturbed.

usage: kill_port.py PROJECT [--kills 10] [--seed 0] [--jobs 2]

Half of the runs are killed by SIGKILL after a seeded time; the others kill themselves at a seeded rename, among them those of the report and of the
support module. Workers die with their parent.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The command line with an os.replace that ends the process before, or right after, the chosen rename.
RUN = """
import os, signal, sys
import migrate.port.deliver, migrate.port.store
wanted, left, after = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "after"
real = os.replace
def replace(a, b):
    global left
    if wanted and wanted in str(b):
        left -= 1
        if left == 0:
            if after:
                real(a, b)
            os.kill(os.getpid(), signal.SIGKILL)
    real(a, b)
os.replace = replace
from migrate.cli.main import run
sys.exit(run(sys.argv[4:]))
"""
PLACES = ("torch_support", "migration-report.html", "migration-report.json", ".migrate/parts", ".py", "written.jsonl", "needs", "scans")


def state(out: Path) -> dict[str, str]:
    """Digests of all output files."""
    return {
        str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(out.rglob("*"))
        if p.is_file() and ".migrate" not in p.parts
    }


def start(project: Path, out: Path, jobs: int, place: str = "", number: int = 0, after: bool = False) -> subprocess.Popen[bytes]:
    """A run, which ends itself at a rename where `place` is given."""
    words = [
        sys.executable,
        "-c",
        RUN,
        place,
        str(number),
        "after" if after else "before",
        "port",
        str(project),
        "-o",
        str(out),
        "--jobs",
        str(jobs),
    ]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def main() -> int:
    """0 where both outputs are the same."""
    parser = argparse.ArgumentParser()
    parser.add_argument("project", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    a = parser.parse_args()
    draw = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        begun = time.monotonic()
        start(a.project, whole, a.jobs).wait()
        seconds = time.monotonic() - begun
        print(f"undisturbed: {seconds:.1f} s, {len(state(whole))} files", flush=True)
        deaths = 0
        for n in range(a.kills * 3):
            if deaths == a.kills:
                break
            place = PLACES[n // 2 % len(PLACES)] if n % 2 else ""
            process = start(
                a.project, killed, a.jobs, place, draw.randrange(1, 4) if place in (".py", ".migrate/parts") else 1, draw.random() < 0.5
            )
            try:
                process.wait(None if place else draw.uniform(0.02, 0.9) * seconds)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            if process.returncode == -signal.SIGKILL:
                deaths += 1
                print(
                    f"killed {deaths}: {f'at a rename to *{place}*' if place else 'by the clock'}; {len(state(killed))} files there",
                    flush=True,
                )
        start(a.project, killed, a.jobs).wait()
        same = state(whole) == state(killed)
        for path in sorted({p for p, _ in set(state(whole).items()) ^ set(state(killed).items())}):
            print("differs:", path)
        print(f"killed {deaths} times; the outputs are {'the same' if same else 'different'}")
        return 0 if same and deaths == a.kills else 1


if __name__ == "__main__":
    sys.exit(main())
