"""The Ray engine: the same jobs as tasks of a cluster. Tasks of workers that die are done again.

A local cluster is started where none is given.
"""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate.port.convert import joined
from migrate.port.work import Job, given_up, pieces, work

AHEAD = 2  # tasks waiting for each core
RETRIES = 3


class RayMissing(RuntimeError):
    """Ray is not installed, or the cluster can't be reached."""


def _remote(job: Job) -> dict[str, Any]:
    """A job in a worker of the cluster."""
    once = os.environ.get("MIGRATE_TEST_DIE_ONCE")  # for tests: a file whose first try ends the worker
    if once and job["kind"] == "part" and any(f[0].endswith(once.partition("=")[0]) for f in job["task"]["files"]):
        mark = Path(once.partition("=")[2])
        if not mark.exists():
            mark.touch()
            os._exit(9)
    return work(job)


class Ray:
    """Runs jobs on a Ray cluster: the one of RAY_ADDRESS, else a local one. The project must have the same path on all machines."""

    memory = 0

    def __init__(self, jobs: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise RayMissing("--engine ray needs Ray: pip install 'migrate[ray]'") from None
        self.ray = ray
        self.replaced = 0
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(jobs)
        self.cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(_remote)

    def _connect(self, jobs: int | None) -> None:
        import migrate

        package = Path(migrate.__file__).parent
        variables = {"PYTHONHASHSEED": "0", **{k: v for k, v in os.environ.items() if k.startswith("MIGRATE_")}}
        address = os.environ.get("RAY_ADDRESS")
        environment: dict[str, Any] = {"env_vars": variables}
        if address:
            environment["py_modules"] = [str(package)]  # the other machines need not have it
        else:
            variables["PYTHONPATH"] = os.pathsep.join([str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            cores = None if address else jobs
            self.ray.init(
                address=address,
                num_cpus=cores,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                runtime_env=environment,
            )
        except (ConnectionError, RuntimeError, ValueError) as e:
            raise RayMissing(f"the Ray cluster can't be reached: {e}") from None

    def run(self, jobs: list[Job]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields (number of the job, result) as they end; what ends its worker again and again is done in pieces, then given up."""
        todo = deque(enumerate(jobs))
        running: dict[Any, tuple[int, Job]] = {}
        while todo or running:
            while todo and len(running) < AHEAD * self.cores:
                number, job = todo.popleft()
                running[self._task.remote(job)] = number, job
            (ready,), _ = self.ray.wait(list(running), num_returns=1)
            number, job = running.pop(ready)
            try:
                yield number, self.ray.get(ready)
            except self.ray.exceptions.RayError as e:
                self.replaced += 1
                yield number, self._in_pieces(job, str(e).splitlines()[0])

    def _in_pieces(self, job: Job, why: str) -> dict[str, Any]:
        results = []
        for piece in pieces(job):
            try:
                results.append(self.ray.get(self._task.remote(piece)))
            except self.ray.exceptions.RayError as e:
                results.append(given_up(piece, str(e).splitlines()[0]))
        if not results:
            return given_up(job, why)
        return {"scans": {k: v for r in results for k, v in r["scans"].items()}} if job["kind"] != "part" else joined(results)

    def close(self) -> None:
        """Ends the local cluster."""
        if self._ours:
            self.ray.shutdown()
