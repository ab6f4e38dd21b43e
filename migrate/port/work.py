"""The jobs of a run, as every engine does them: plain values in, plain values out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from migrate.assess.survey import survey
from migrate.pipeline import deep
from migrate.port.convert import Kept, convert_part, failed
from migrate.port.scan import Scan, pack, scan
from migrate.settings import table_for
from migrate.tables import Table

Job = dict[str, Any]


def work(job: Job, kept: Kept | None = None) -> dict[str, Any]:
    """Does a job: a quick look at files, or the conversion of a part. `kept` receives the conversions."""
    if job["kind"] == "scan":
        table = table_for(job["project"])
        return {"scans": deep(lambda: {path: pack(_scan(Path(job["project"], path), module, table)) for path, module in job["files"]})}
    if job["kind"] == "survey":
        table = table_for(job["project"])
        return {"scans": {path: survey(Path(job["project"], path), module, table) for path, module in job["files"]}}
    return convert_part(job["task"], kept)


def _scan(path: Path, module: str, table: Table) -> Scan:
    try:
        return scan(path, module, table)
    except (Exception, RecursionError) as e:
        return Scan(0, error=f"{type(e).__name__}: {e}")


def pieces(job: Job) -> list[Job]:
    """A job in pieces of one file each, for one that ended its worker. [] where it has but one."""
    files = job["task"]["files"] if job["kind"] == "part" else job["files"]
    if len(files) < 2:
        return []
    if job["kind"] != "part":
        return [{**job, "files": [f]} for f in files]
    return [{**job, "task": {**job["task"], "files": [f], "earlier": None}} for f in files]


def given_up(job: Job, why: str) -> dict[str, Any]:
    """The result of a job that can't be done."""
    if job["kind"] == "scan":
        return {"scans": {path: pack(Scan(0, error=why)) for path, _ in job["files"]}}
    if job["kind"] == "survey":
        return {"scans": {path: {"modules": 0, "functions": 0, "operators": {}, "hostile": []} for path, _ in job["files"]}}
    return failed(job["task"], why)


class Here:
    """The engine without processes, for small projects and tests."""

    memory = 0
    replaced = 0

    def __init__(self, kept: Kept | None = None) -> None:
        self.kept = kept

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Does the jobs one after the other."""
        for number, job in enumerate(jobs):
            yield number, work(job, self.kept)

    def close(self) -> None:
        """Nothing to end."""
