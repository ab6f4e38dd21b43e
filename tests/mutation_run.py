"""Runs the checker on mutants of the fixtures, and says which it does not catch.

usage: mutation_run.py [--sample N] [--log FILE] [--summary] [CASE ...]

With --log each outcome becomes a line of FILE, and what is there already is not done again; a mutant has another name there as soon as its text
changes. Outcomes: `caught`; `misplaced`, at a submodule that does not use what was changed; `same program`: for the inputs and modes that are compared,
the compiler is given the very same program and the same weights; `known`: it changes nothing for a reason that is written down; `survived`.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from unittest import mock

from mutants import Mutant, executed, left_out, of_rows, of_state, of_text
from mutation_proof import programs
from update_fixtures import CASES, FIXTURES

import migrate
from migrate.check import jax_side
from migrate.check.gradient import Compiled
from migrate.check.jax_run import Runner
from migrate.check.run import NEEDED, make_oracle
from migrate.check.tree import Tree
from migrate.check.verdict import USUAL, from_result

LIMIT = 300  # seconds
MEMORY = 10 << 30  # bytes of address space
STARTED = "started"
SURVIVORS = Path(__file__).with_name("mutation_survivors.toml")


class Bench:
    """One fixture: its oracle, its conversion, and the checker on changed ones; the JAX side runs in this process."""

    def __init__(self, case, folder):
        self.source = (FIXTURES / case / "torch.py").read_text()
        self.folder, self.case, self.count = Path(folder), case, 0
        self.content = make_oracle(FIXTURES / case / "torch.py", self.folder / "oracle")
        made = migrate.convert_source(self.source)
        self.code, self.support = made.code, "".join(made.support.values())
        self._first_inputs_only()
        self.plain = Mutant("", self.code, self.support)
        self.usual = None  # the programs of the plain conversion

    def _first_inputs_only(self):
        """Another oracle beside the whole one."""
        (folder := self.folder / "first").mkdir()
        for file in (self.folder / "oracle").iterdir():
            if file.name != "oracle.json":
                (folder / file.name).symlink_to(file)
        content = json.loads((self.folder / "oracle" / "oracle.json").read_text())
        (folder / "oracle.json").write_text(json.dumps(content | {"runs": content["runs"][:1], "probes": None}))

    def job(self, mutant, oracle="oracle", stages=USUAL):
        """What the checker is told, with the mutant's files in place."""
        self.count += 1
        place = self.folder / f"m{self.count}"
        place.mkdir()
        path = place / f"{self.case}_{self.count}.py"
        path.write_text(mutant.code)
        (place / "torch_support.py").write_text(mutant.support)
        return {"converted": str(path), "roots": [], "oracle": str(self.folder / oracle), "out": str(place), "target": "flax", "stages": list(stages)}

    def within(self, mutant, task):
        """`task()` where the mutant's tables are used, and nothing of other mutants is imported. What does not end fails."""
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(LIMIT)
        sys.modules.pop("torch_support", None)
        keep = list(sys.path), list(sys.argv)
        try:
            native = (lambda: mutant.state) if mutant.state else jax_native()
            with mock.patch("migrate.weights.flax.native", native), mock.patch.object(Tree, "probe", unless_found(Tree.probe)):
                return task()
        finally:
            signal.alarm(0)
            sys.path[:], sys.argv[:] = keep

    def judge(self, mutant):
        """The verdict on a mutant, by all stages."""
        job = self.job(mutant)
        return self.within(mutant, lambda: from_result(jax_side.check(job), self.content, 0.0, "flax", USUAL))

    def quick(self, mutant, last=("forward", "submodules")):
        """The verdict by the first inputs alone and without jit, which takes a tenth of the time and finds most. None where it finds nothing."""
        stages = (*NEEDED, *last)
        job = self.job(mutant, "first", stages)
        with mock.patch.object(Runner, "_traced", lambda self, key, body, values: body(self.model.model, values)), mock.patch.object(Compiled, "run", eager):
            verdict = self.within(mutant, lambda: from_result(jax_side.check(job), self.content, 0.0, "flax", stages))
        return None if verdict.ok else verdict

    def changed(self, mutant):
        """The runs for which the compiler is given another program than for the plain conversion."""
        if self.usual is None:
            self.usual = self.within(self.plain, lambda: programs(self.job(self.plain)))
        now = self.within(mutant, lambda: programs(self.job(mutant)))
        return {k for k in self.usual if now.get(k) != self.usual[k]} if now else set(self.usual)

    def outcome(self, mutant):
        """Outcome, verdict, and the place where it should not have been found: the cheap stages first, then those that can see the change."""
        gradient = mutant.what.endswith("(no gradient)")
        verdict = self.quick(mutant, ("gradients",)) if gradient else self.quick(mutant)
        if verdict is None:
            changed = self.changed(mutant)
            if not changed:
                return "same program", None, ""
            if known(mutant):
                return "known", None, ""
            later = ("train",) if changed == {"train"} else ("submodules", "gradients", "kinks", "train")  # rows say whose the first difference is
            verdict = self.quick(mutant, later)
        verdict = self.judge(mutant) if verdict is None else verdict
        wrong = self.misplaced(mutant, verdict)
        if verdict.ok:
            return "survived", verdict, ""
        return "misplaced" if wrong else "caught", verdict, wrong

    def mutants(self):
        """Keys and mutants; a key tells the same change of a row or a definition that another fixture uses as well."""
        plain = []
        lines = executed(str(self.folder / f"m{self.count + 1}" / "torch_support.py"), lambda: plain.append(self.judge(self.plain)))
        assert plain[0].ok, plain[0].message
        own = set(range(1, self.code.count("\n") + 2))
        found = [(m.what, m) for m in (*of_rows(self.source), *of_state(self.source))]
        for what, definition, text in of_text(self.support, lines):
            found.append((f"{what} {ast.dump(_definition(self.support, definition))}", Mutant(what, self.code, text, definition)))
        found += [(f"{self.case} {what}", Mutant(what, text, self.support, definition)) for what, definition, text in left_out(self.code, own)]
        count = Counter()
        for key, mutant in found:
            count[key] += 1
            key = f"{key} {count[key]}"  # the same words may be said of several places of a line
            yield hashlib.sha256(key.encode()).hexdigest()[:12], mutant

    def misplaced(self, mutant, verdict):
        """The submodule of the first difference where neither it nor a module around it uses what was changed; "" where it is right. What a submodule
        of its own uses does not count as its holder's."""
        if verdict.first is None:
            return ""
        rows = {r.name: r.converted for r in verdict.submodules}
        at = verdict.first.module
        around = [a for a in rows if a == at or not a or at.startswith(f"{a}.")]
        apart = {r.converted for r in verdict.submodules if r.verdict != "not separate"}
        used = set().union(*(self._used(mutant, rows[a], apart) for a in around))
        changed = self._changed(mutant)
        return "" if not changed or changed & used else f"{at} ({rows.get(at, '')}), not {' '.join(sorted(changed))}"

    def _used(self, mutant, name, apart):
        """Names that a definition uses, itself and through others, but not through modules that were compared on their own."""
        texts = {d.name: d for t in (mutant.code, mutant.support) for d in ast.parse(t).body if hasattr(d, "name")}
        reached, waiting = {name}, [name]
        while waiting:
            for node in ast.walk(texts.get(waiting.pop(), ast.Pass())):
                found = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                if found and found not in reached:
                    reached.add(found)
                    waiting += [found] if found not in apart else []
        return reached

    def _changed(self, mutant):
        """Definitions that are not as in the plain conversion."""
        if mutant.state:
            return {mutant.definition}
        before = {d.name: ast.dump(d) for t in (self.code, self.support) for d in ast.parse(t).body if hasattr(d, "name")}
        after = {d.name: ast.dump(d) for t in (mutant.code, mutant.support) for d in ast.parse(t).body if hasattr(d, "name")}
        return {n for n, dump in after.items() if before.get(n) != dump}


def too_long(*_):
    """A loop may have no end any more."""
    raise TimeoutError(f"still runs after {LIMIT} s")


def eager(self, key, function, restart, *args):
    """Gradients without a compilation of the whole."""
    restart()
    return function(*args)


def unless_found(probe):
    """Submodules run alone only where the run itself showed no difference: that is most of the time of a mutant."""
    return lambda self, probes, result: "" if result["first"] else probe(self, probes, result)


def jax_native():
    """The loader's own table."""
    from migrate.weights import flax

    return flax.native


def _definition(text, name):
    return next(d for d in ast.parse(text).body if getattr(d, "name", "") == name)


def survivors():
    """Changes that are known to change nothing, each with the reason."""
    return tomllib.loads(SURVIVORS.read_text())["survivor"] if SURVIVORS.exists() else []


def known(mutant):
    """The reason why a mutant can't be caught, "" where none is known."""
    return mutant.same or next((s["reason"] for s in survivors() if s["what"] == mutant.what), "")


def identity(case, mutant):
    """Names a mutant of a fixture in a log."""
    text = f"{mutant.what}\n{mutant.code}\n{mutant.support}\n{sorted((str(k), str(v)) for k, v in mutant.state.items())}"
    return f"{case} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def logged(log):
    """What a log holds, by the names of the mutants."""
    return {r["id"]: r for r in map(json.loads, log.read_text().splitlines())} if log and log.exists() else {}


def write(log, row):
    """Adds to a log, if there is one."""
    if log:
        with log.open("a") as f:
            f.write(json.dumps(row) + "\n")


def settled(rows, case):
    """Keys of changes that other fixtures have as well, and that were caught there, or gave the same programs in two of them."""
    others = [r for n, r in rows.items() if n.split()[0] != case]
    same = Counter(r["key"] for r in others if r["outcome"] == "same program")
    return {r["key"] for r in others if r["outcome"] == "caught"} | {k for k, n in same.items() if n > 1}


def run(cases, sample, seed=0, show=print, log=None):
    """The rows of all mutants: what became of each."""
    import jax

    rows = {}
    chosen = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(case, folder)
            rows |= logged(log)
            for row in [r for n, r in rows.items() if n.split()[0] == case and r["outcome"] == STARTED]:
                row |= {"outcome": "caught", "message": "the process died"}  # which the checker reports as it is
                write(log, row)
            found = list(bench.mutants())
            if sample and len(found) > sample:
                found = random.Random(seed).sample(found, sample)
            for i, (key, mutant) in enumerate(found):
                rows |= logged(log)  # another process may write there as well
                name = identity(case, mutant)
                if name not in rows and key in settled(rows, case):
                    continue
                chosen.append(name)
                if name in rows:
                    continue
                start = time.time()
                rows[name] = {"id": name, "key": key, "outcome": STARTED, "stage": "", "wrong": "", "what": mutant.what, "message": ""}
                write(log, rows[name])
                outcome, verdict, wrong = bench.outcome(mutant)
                stage = next((s.name for s in verdict.stages if s.status == "failed"), "") if verdict is not None else ""
                seconds = round(time.time() - start, 1)
                message = verdict.message if verdict is not None else ""
                rows[name] |= {"outcome": outcome, "stage": stage, "wrong": wrong, "message": message, "seconds": seconds}
                write(log, rows[name])
                show(f"{case} {i + 1}/{len(found)} {outcome} {stage} {wrong} {seconds} s: {mutant.what}", flush=True)
                if i % 100 == 99:
                    jax.clear_caches()
    return [rows[name] for name in chosen]


def summary(rows):
    """One row for each change: the best of what became of it in the fixtures that use it."""
    order = ("caught", "misplaced", "survived", "known", "same program")
    best = {}
    for r in rows:
        best.setdefault(r["key"], r)
        best[r["key"]] = min(best[r["key"]], r, key=lambda r: order.index(r["outcome"]))
    return list(best.values())


def main():
    """Runs them and prints what is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--sample", type=int, default=0, help="so many of each fixture")
    parser.add_argument("--log", type=Path, help="a file of outcomes, to which is added")
    parser.add_argument("--summary", action="store_true", help="only what the log says")
    options = parser.parse_args()
    if options.summary:
        rows = summary(r for r in logged(options.log).values() if r["outcome"] != STARTED)
    elif options.log and len(options.cases) != 1:
        for case in options.cases:  # a process each; where a mutant ends it, another goes on
            while subprocess.run([sys.executable, *sys.argv[:1], "--log", options.log, "--sample", str(options.sample), case]).returncode < 0:
                pass
        return
    else:
        os.environ["MIGRATE_MEMORY"] = str(MEMORY)
        rows = summary(run(options.cases, options.sample, log=options.log))
    print(len(rows), "changes")
    for name, key in (("outcomes", "outcome"), ("stages", "stage")):
        print(f"{name}:", ", ".join(f"{k or 'none'} {n}" for k, n in Counter(r[key] for r in rows).most_common()))
    for r in rows:
        if r["outcome"] in ("survived", "misplaced"):
            print(r["outcome"], r["id"], r["what"], r["wrong"])


if __name__ == "__main__":
    main()
