"""Whole projects: found, converted in parallel processes, written so that a run that was killed can go on, and reported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from migrate.port.merge import Outcome, merge
from migrate.port.report import HTML, JSON, html, report
from migrate.port.run import Engine, Options, Plan, Progress, convert, look
from migrate.port.store import Busy, Store, place

__all__ = ["Busy", "Engine", "Options", "Outcome", "Plan", "Ported", "port"]
Check = Callable[[Plan, Outcome, Path], list[dict[str, Any]]]


class Ported:
    """What a run made: the plan, the outcome and the report."""

    def __init__(self, plan: Plan, outcome: Outcome, data: dict[str, Any]) -> None:
        self.plan, self.outcome, self.report = plan, outcome, data


def port(
    project: Path, out: Path, options: Options, engine: Engine, progress: Progress, *, force: bool = False, check: Check | None = None
) -> Ported:
    """Converts a project into an output folder. Raises Busy where another run is at work there.

    Killed at any moment, the next run goes on, and the output is the same as that of a run that was not disturbed.
    """
    project = project.resolve()
    with Store(out).opened() as store:
        plan = look(project, options, engine, store, out, progress)
        convert(plan, engine, store, progress)
        progress("writing", 0, 0)
        outcome = merge(plan, store, force)
        checks = check(plan, outcome, out) if check is not None else []
        data = report(outcome.files, project.name, options.target, outcome.supports, checks)
        place(out / JSON, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode(), store.temporary)
        place(out / HTML, html(data).encode(), store.temporary)
        store.close_journal()
    return Ported(plan, outcome, data)
