"""A run over a project: look, divide, convert until the parts agree.

What an earlier run finished is used again where nothing that it read has changed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from migrate.port.discover import NOTEBOOK, PYTHON, Choice, Entry, discover
from migrate.port.exchange import Exchanged
from migrate.port.layout import Layout, layout, supports
from migrate.port.parts import Part, divide
from migrate.port.scan import Scan, pack, pack_facts, unpack
from migrate.port.store import Store, canonical, digest, tool_version
from migrate.port.work import Job

ROUNDS = 4  # of conversion until the parts agree; two are the rule
Progress = Callable[[str, int, int], None]  # what is done, lines done, lines in all


class Engine(Protocol):
    """Does jobs, somewhere."""

    memory: int
    replaced: int

    def run(self, jobs: list[Job]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number of the job, its result), in any order."""

    def close(self) -> None:
        """Ends what it started."""


@dataclass(frozen=True)
class Options:
    """What a run is asked for."""

    target: str = "flax"
    choice: Choice = field(default_factory=Choice)


@dataclass
class Plan:
    """What a run found before it converts."""

    project: Path
    entries: list[Entry]
    layout: Layout
    scans: dict[str, Scan]
    supports: dict[str, tuple[str, str]]
    parts: list[Part]
    options: Options
    results: dict[str, str] = field(default_factory=dict)  # part -> name of what is kept of it
    reused: int = 0
    tool: str = ""

    def identity(self, part: Part) -> str:
        """Names a part: its files and the options, not their content."""
        name, _ = self.support(part)
        return digest(canonical([self.options.target, self.tool, part.root, part.files, name]))

    def support(self, part: Part) -> tuple[str, str]:
        """The support module of a part: its name, its file."""
        return self.supports[part.root]


def look(project: Path, options: Options, engine: Engine, store: Store | None, out: Path | None, progress: Progress) -> Plan:
    """Finds what there is to do."""
    entries = discover(project, options.choice, out)
    every = [e.path for e in entries if e.path.endswith(".py")]
    found = layout(every)
    looked = scans(project, found, every, engine, store, progress)
    chosen = [e.path for e in entries if e.role == PYTHON and not looked[e.path].error]
    chosen += [e.path for e in entries if e.role == PYTHON and looked[e.path].error]
    parts = divide(found, looked, chosen)
    places = supports(found, looked)
    for e in entries:
        if e.role == NOTEBOOK:
            root = e.path.rpartition("/")[0]
            parts.append(Part(root, (e.path,), max(1, e.size // 60)))
            places.setdefault(root, _notebook_support(found, places, root))
    return Plan(project, entries, found, looked, places, parts, options, tool=tool_version(project))


def _notebook_support(found: Layout, places: Mapping[str, tuple[str, str]], root: str) -> tuple[str, str]:
    """A folder of notebooks without modules uses the support module of the project's only root, else one of its own."""
    homes = set(places.values())
    if len(homes) == 1:
        return next(iter(homes))
    return "torch_support", f"{root}/torch_support.py" if root else "torch_support.py"


def scans(project: Path, found: Layout, paths: list[str], engine: Engine, store: Store | None, progress: Progress) -> dict[str, Scan]:
    """The quick look at each file; from an earlier run where nothing has changed."""
    found_of: dict[str, Scan] = {}
    tool = tool_version(project)
    kept = (store.load("scans", "all") or {}) if store else {}
    names = {p: digest((project / p).read_bytes()) + found.modules[p] + tool for p in paths}
    for p in paths:
        if p in kept and kept[p][0] == names[p]:
            found_of[p] = unpack(kept[p][1])
    todo = [p for p in paths if p not in found_of]
    jobs: list[Job] = [
        {"kind": "scan", "project": str(project), "files": [[p, found.modules[p]] for p in todo[i : i + 20]]}
        for i in range(0, len(todo), 20)
    ]
    for done, (_, result) in enumerate(engine.run(jobs), 1):
        found_of.update({p: unpack(s) for p, s in result["scans"].items()})
        progress("looking", min(done * 20, len(todo)), len(todo))
    if store and jobs:
        store.keep("scans", "all", {p: [names[p], pack(found_of[p])] for p in paths})
    return found_of


def convert(plan: Plan, engine: Engine, store: Store, progress: Progress) -> None:
    """Converts the parts, again where one found something that another has to know, until they agree."""
    inventory = digest(canonical(sorted(plan.scans)))
    digests: dict[str, str] = {}
    current = {p for p in plan.parts if _current(plan, p, store, inventory, digests)}
    exchanged = Exchanged(plan)
    for part in plan.parts:
        if part in current:
            exchanged.learn(part, store.load("parts", plan.identity(part)) or {})
    for number in range(ROUNDS):
        todo = [p for p in plan.parts if p not in current or not exchanged.holds(p, store.load("parts", plan.identity(p)))]
        plan.reused = plan.reused if number else len(plan.parts) - len(todo)
        if not todo:
            break
        _round(plan, todo, engine, store, exchanged, inventory, progress)
        current = set(plan.parts)
    if not plan.options.choice.only:
        store.forget_others("parts", {plan.identity(p) for p in plan.parts})


def _current(plan: Plan, part: Part, store: Store, inventory: str, digests: dict[str, str]) -> bool:
    """Whether an earlier result is of the files as they are now."""
    kept = store.load("parts", plan.identity(part))
    return (
        kept is not None and kept["inventory"] == inventory and not kept.get("failed") and _unchanged(plan.project, kept["read"], digests)
    )


def _round(plan: Plan, parts: list[Part], engine: Engine, store: Store, exchanged: Exchanged, inventory: str, progress: Progress) -> None:
    total = sum(p.lines for p in plan.parts)
    done = total - sum(p.lines for p in parts)
    jobs: list[Job] = []
    for part in parts:
        jobs.append(
            {"kind": "part", "task": _task(plan, part, pack_facts(exchanged.given(part)), store.load("parts", plan.identity(part)))}
        )
    progress("converting", done, total)
    for number, result in engine.run(jobs):
        part, name = parts[number], plan.identity(parts[number])
        if result.get("same") and (earlier := store.load("parts", name)):
            result = {**earlier, "read": result["read"]}
        kept = {**result, "given": jobs[number]["task"]["facts"], "inventory": inventory}
        store.keep("parts", name, kept)
        exchanged.learn(part, kept)
        done += part.lines
        progress("converting", done, total)


def _task(plan: Plan, part: Part, facts: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    modules = plan.layout.modules
    return {
        "project": str(plan.project),
        "search": plan.layout.search(part.root),
        "files": [[p, modules.get(p, f"notebook:{p}")] for p in part.files],
        "target": plan.options.target,
        "support": plan.support(part)[0],
        "facts": facts,
        "tool": plan.tool,
        "earlier": earlier["content"] if earlier and not earlier.get("failed") else None,
    }


def _unchanged(project: Path, read: Mapping[str, str], digests: dict[str, str]) -> bool:
    for path, was in read.items():
        if path not in digests:
            try:
                digests[path] = digest((project / path).read_bytes())
            except OSError:
                digests[path] = ""
        if digests[path] != was:
            return False
    return True


def results(plan: Plan, store: Store) -> Iterator[tuple[Part, dict[str, Any]]]:
    """The results of the parts, one at a time."""
    for part in plan.parts:
        kept = store.load("parts", plan.identity(part))
        if kept is not None:
            yield part, kept
