"""Runs the checker on mutants of the fixtures, and says which it does not catch.

usage: mutation_run.py [--sample N] [CASE ...]
"""

import argparse
import ast
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from unittest import mock

from mutants import Mutant, executed, left_out, of_rows, of_state, of_text
from update_fixtures import CASES, FIXTURES

import migrate
from migrate.check import jax_side
from migrate.check.run import make_oracle
from migrate.check.tree import Tree
from migrate.check.verdict import USUAL, from_result

SURVIVORS = Path(__file__).with_name("mutation_survivors.toml")


class Bench:
    """One fixture: its oracle, its conversion, and the checker on changed ones; the JAX side runs in this process."""

    def __init__(self, case, folder):
        self.source = (FIXTURES / case / "torch.py").read_text()
        self.folder, self.case, self.count = Path(folder), case, 0
        self.content = make_oracle(FIXTURES / case / "torch.py", self.folder / "oracle")
        made = migrate.convert_source(self.source)
        self.code, self.support = made.code, "".join(made.support.values())

    def judge(self, mutant):
        """The verdict on a mutant."""
        self.count += 1
        place = self.folder / f"m{self.count}"
        place.mkdir()
        path = place / f"{self.case}_{self.count}.py"
        path.write_text(mutant.code)
        (place / "torch_support.py").write_text(mutant.support)
        job = {"converted": str(path), "roots": [], "oracle": str(self.folder / "oracle"), "out": str(place), "target": "flax",
               "stages": list(USUAL)}  # fmt: skip
        sys.modules.pop("torch_support", None)
        keep = list(sys.path), list(sys.argv)
        try:
            native = (lambda: mutant.state) if mutant.state else jax_native()
            with mock.patch("migrate.weights.flax.native", native), mock.patch.object(Tree, "probe", unless_found(Tree.probe)):
                return from_result(jax_side.check(job), self.content, 0.0, "flax", USUAL)
        finally:
            sys.path[:], sys.argv[:] = keep

    def mutants(self, done):
        """All of them; definitions of the support module that another fixture had already are left out."""
        place = self.folder / "m1"
        plain = []
        lines = executed(str(place / "torch_support.py"), lambda: plain.append(self.judge(Mutant("", self.code, self.support))))
        assert plain[0].ok, plain[0].message
        for mutant in (*of_rows(self.source), *of_state(self.source)):
            if mutant.what not in done:  # another fixture has the same row
                done.add(mutant.what)
                yield mutant
        for what, definition, text in of_text(self.support, lines):
            if (key := (what, ast.dump(_definition(self.support, definition)))) not in done:
                done.add(key)
                yield Mutant(what, self.code, text, definition)
        own = set(range(1, self.code.count("\n") + 2))
        for what, definition, text in left_out(self.code, own):
            yield Mutant(what, text, self.support, definition)

    def misplaced(self, mutant, verdict):
        """Where the first difference is at a submodule that does not use what was changed, which; "" where it is right."""
        if verdict.first is None or not mutant.definition:
            return ""
        row = next((r for r in verdict.submodules if r.name == verdict.first.module), None)
        texts = {d.name: ast.unparse(d) for t in (mutant.code, mutant.support) for d in ast.parse(t).body if hasattr(d, "name")}
        reached, waiting = set(), [row.converted if row else ""]
        while waiting:
            name = waiting.pop()
            if name in texts and name not in reached:
                reached.add(name)
                waiting += [n for n in texts if n in texts[name]]
        return "" if mutant.definition in reached or not reached else f"{verdict.first.module} ({row.converted if row else ''})"


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


def known(what):
    """The reason why a mutant can't be caught, "" where none is known."""
    return next((s["reason"] for s in survivors() if s["what"] in what), "")


def run(cases, sample, seed=0, show=print):
    """Counts by outcome; what survived without a reason."""
    import jax

    counts, left, done = Counter(), [], set()
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(case, folder)
            found = list(bench.mutants(done))
            if sample and len(found) > sample:
                found = random.Random(seed).sample(found, sample)
            for i, mutant in enumerate(found):
                if known(mutant.what):
                    counts["known"] += 1
                    continue
                start = time.time()
                verdict = bench.judge(mutant)
                stage = next((s.name for s in verdict.stages if s.status == "failed"), "")
                wrong = bench.misplaced(mutant, verdict)
                outcome = "known" if verdict.ok and mutant.same else "survived" if verdict.ok else "misplaced" if wrong else "caught"
                counts[outcome] += 1
                if outcome in ("survived", "misplaced"):
                    left.append((case, mutant.what, wrong))
                show(f"{case} {i + 1}/{len(found)} {outcome} {stage} {wrong} {time.time() - start:.1f} s: {mutant.what}", flush=True)
                if i % 15 == 14:
                    jax.clear_caches()
    return counts, left


def main():
    """Runs them and prints what is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--sample", type=int, default=0, help="so many of each fixture")
    options = parser.parse_args()
    counts, left = run(options.cases or CASES, options.sample)
    print(dict(counts))
    for entry in left:
        print(*entry)


if __name__ == "__main__":
    main()
