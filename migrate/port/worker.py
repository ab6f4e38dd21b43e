"""A worker process: jobs come as lines of JSON, results go as lines of JSON. It ends when whoever started it does."""

import contextlib
import json
import os
import queue
import resource
import sys
import threading
import time


def main() -> None:
    """Works until the jobs end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else may print into the answers
    from migrate.port.work import work

    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    started = False
    while True:
        job = json.loads(jobs.get())
        if os.environ.get("MIGRATE_TEST_DIE") and any(os.environ["MIGRATE_TEST_DIE"] in f[0] for f in job.get("task", job)["files"]):
            os._exit(9)  # for tests: a file that ends its worker
        begun = time.process_time() if started else 0.0
        started = True
        result = work(job)
        result["seconds"] = time.process_time() - begun
        result["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        with contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(result) + "\n")
            answers.flush()


def _listen(jobs: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
