"""What to check where nobody said: what the project's table says, or what is found by trying in a process of its own."""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from migrate.check.child import DEFAULT, Limits, run
from migrate.check.run import CheckError
from migrate.check.settings import SettingsError, settings_of

PLAN = "migrate.check.torch_plan"


@dataclass(frozen=True)
class Candidate:
    """A model to check: the expression (None: whatever the file offers) and its inputs; or the `reason` why it can't be.

    `part_of` is the class that holds it as a submodule, and with which it is checked."""

    name: str
    model: str | None
    inputs: tuple[str, ...] = ()
    reason: str = ""
    part_of: str = ""
    found: bool = False  # by trial, so that it is worth showing


def plan(original: str | Path, roots: Iterable[str | Path] = (), limits: Limits = DEFAULT) -> list[Candidate]:
    """All that a file has. Raises CheckError where it can't be imported, ChildError where the process dies."""
    path = Path(original)
    if not path.is_file():
        raise CheckError("no such file" if not path.exists() else "is not a file", str(path))
    try:
        settings = settings_of(path)
    except SettingsError as e:
        raise CheckError(str(e)) from None
    if settings:
        return [Candidate(s.key, s.model or (f"{s.key}()" if s.key.isidentifier() else None), s.inputs) for s in settings]
    with tempfile.TemporaryDirectory(prefix="migrate-plan-") as out:
        outcome = run(PLAN, {"original": str(path.resolve()), "roots": [str(r) for r in roots], "out": out}, limits, {})
    if not outcome["ok"]:
        raise CheckError(outcome["message"], outcome["file"], outcome["line"])
    return [
        Candidate(e["name"], e["expression"] or None, tuple(e["inputs"]), e["reason"], e["part_of"], bool(e["inputs"]))
        for e in outcome["entries"]
    ]
