"""Submodule by submodule: what the converted model's modules were given and gave, against the original's."""

from collections.abc import Iterator
from typing import Any

from migrate.check import leaves
from migrate.check.jax_record import Seen
from migrate.check.lazy import Lazy
from migrate.check.load import class_place

Key = tuple[str, str, int]
PART = 64 << 20  # bytes of inputs that submodules are run on alone at a time


class Tree:
    """The submodules of one run. `tasks` compares single values."""

    def __init__(self, tasks: Any, events: list[dict[str, Any]]) -> None:
        self.tasks = tasks
        self.modules: dict[str, Any] = tasks.model.modules(tasks.model.model)
        self.events = events
        self.wanted = {(e["at"], e["module"], e["call"]): e for e in events}
        self.found: dict[Key, tuple[float, float, str]] = {}  # units, error, reason

    def _worst(self, got: list[tuple[str, Any]], wanted: list[dict[str, Any]], given: bool = False) -> tuple[float, float, str]:
        units, error, reason = 0.0, 0.0, ""
        for (_, value), leaf in zip(got, wanted, strict=True):
            shape = list(getattr(value, "shape", ()))
            if shape != leaf["shape"]:
                return 0.0, 0.0, f"shape {tuple(shape)} instead of {tuple(leaf['shape'])}"
            d = self.tasks.compare(value, leaf, given)
            units, error, reason = max(units, d.units), max(error, d.error), reason or d.reason
        return units, error, reason

    def _compare(self, at: str, name: str, call: int, got: list[tuple[str, Any]]) -> None:
        want = self.wanted.get((at, name, call))
        if want is None:
            return
        if len(got) == len(want["leaves"]):
            self.found[at, name, call] = self._worst(got, want["leaves"], given=at == "enter")
        elif at == "exit":
            self.found[at, name, call] = (0.0, 0.0, f"{len(got)} results instead of {len(want['leaves'])}")

    def judge(self, seen: list[Seen], result: dict[str, Any]) -> str:
        """Fills the rows; returns what to say of the first place that differs, "" where none does."""
        seen.reverse()
        while seen:  # what was compared is not kept
            self._compare(*seen.pop())
        rows: dict[str, dict[str, Any]] = {}
        for e in self.events:
            if e["at"] == "exit":
                self._row(rows, e["module"], e["call"])
        result["rows"] = list(rows.values())
        stack: list[str] = []
        between: list[str] = []  # submodules since the last that was compared, which the converted model does not have as such
        for e in self.events:
            key = (e["at"], e["module"], e["call"])
            reason = self.found.get(key, (0, 0, ""))[2]
            if e["at"] == "enter":
                if reason and stack:
                    after = f", after {' and '.join(between)}," if between else ""
                    message = f"what `{stack[-1] or 'the model'}` passes to `{e['module']}`{after} differs: {reason}"
                    return self._first(result, stack[-1], message)
                stack.append(e["module"])
            else:
                stack.pop()
                if reason:
                    return self._first(result, e["module"], f"`{e['module'] or 'the model itself'}` differs: {reason}")
                if key in self.found:
                    between = []
                else:
                    between.append(f"`{e['module']}` ({self.tasks.content['modules'].get(e['module'], {}).get('class', '')})")
        return ""

    def _row(self, rows: dict[str, dict[str, Any]], name: str, call: int) -> None:
        about = self.tasks.content["modules"].get(name, {})
        module = self.modules.get(name)
        row = rows.setdefault(
            name,
            {
                "module": name,
                "class": about.get("class", ""),
                "converted": type(module).__name__ if module is not None else "",
                "calls": 0,
                "units": 0.0,
                "error": 0.0,
                "probe": None,
                "verdict": "not separate",
                "reason": "",
            },
        )
        row["calls"] += 1
        found = self.found.get(("exit", name, call))
        if found:
            row["units"], row["error"] = max(row["units"], found[0]), max(row["error"], found[1])
            row["reason"] = row["reason"] or found[2]
            row["verdict"] = "differs" if row["reason"] else "same"

    def probe(self, probes: dict[str, Any], result: dict[str, Any]) -> str:
        """Runs submodules alone on the scaled inputs; returns what to say of the first that differs where nothing did before."""
        rows = {r["module"]: r for r in result["rows"]}
        message = ""
        for scale, group in _by_scale(probes["runs"]).items():
            self.tasks.reload()
            override = probes["override"].get(str(scale), {})
            if override:
                self.tasks.model.load(Lazy(override, self.tasks.array))
            group = [p for p in group if p["module"] in rows and rows[p["module"]]["verdict"] == "same"]
            group.sort(key=lambda p: -p["module"].count("."))  # the inner ones first: a module may write to the parameters of those in it
            for p, got in zip(group, self._alone(group, scale), strict=True):
                row = rows[p["module"]]
                units, error, reason = self._judged(got, p["outputs"])
                row["probe"] = max(row["probe"] or 0.0, units)
                if reason:
                    what = f"alone, on inputs times {scale:g}: {reason}"
                    row |= {"verdict": "differs", "reason": what, "error": max(row["error"], error)}
        self.tasks.reload()
        if not result["first"]:
            for row in result["rows"]:  # children end before their parents
                if row["verdict"] == "differs":
                    message = self._first(result, row["module"], f"`{row['module'] or 'the model itself'}` differs: {row['reason']}")
                    break
        return message

    def _alone(self, group: list[dict[str, Any]], scale: float) -> Iterator[Any]:
        """What each submodule gives, a part of them at a time where their inputs are large."""
        given: list[tuple[str, Any]] = []
        size = 0
        for i, p in enumerate(group):
            given.append((p["module"], self.tasks.decode(p["arguments"], scale)))
            size += sum(getattr(v, "nbytes", 0) for _, v in leaves.walk(given[-1][1]))
            if size > PART or i == len(group) - 1:
                yield from self.tasks.runner.alone(given)
                given, size = [], 0

    def _judged(self, got: list[tuple[str, Any]] | str, wanted: list[dict[str, Any]]) -> tuple[float, float, str]:
        if isinstance(got, str):
            return 0.0, 0.0, got
        if len(got) != len(wanted):
            return 0.0, 0.0, f"{len(got)} results instead of {len(wanted)}"
        return self._worst(got, wanted)

    def _first(self, result: dict[str, Any], name: str, message: str) -> str:
        classes = self.tasks.content["modules"]
        place = name
        while place and not classes.get(place, {}).get("file"):  # a class of PyTorch's: what holds it is the user's
            place = place.rpartition(".")[0]
        about = classes.get(place, {})
        module = self.modules.get(place)
        file, line = class_place(type(module)) if module is not None else ("", 0)
        result["first"] = {
            "module": name,
            "class": classes.get(name, {}).get("class", ""),
            "message": message,
            "original": [about.get("file", ""), about.get("line", 0)],
            "converted": [file, line],
        }
        return message


def _by_scale(runs: list[dict[str, Any]]) -> dict[float, list[dict[str, Any]]]:
    groups: dict[float, list[dict[str, Any]]] = {}
    for r in runs:
        groups.setdefault(r["scale"], []).append(r)
    return groups
