"""Converts every Python file of the standard library and of the folders given, one by one in one process, and Python that hypothesmith
makes up: none may stop it, what comes out must parse, and where anything came of it a second conversion must give the same (objects lie
elsewhere in memory, so that no order of a set may show).

Files that mention PyTorch come first.

usage: survive.py [FOLDER ...] [--target flax] [--seconds 60] [--log FILE] [--generated 1000]

With --log the result of each file is kept as it comes, and the next run goes on from there: also after a file that took longer than the
seconds (of processor time, for both conversions), or ended the process, which counts as an error. --generated needs hypothesmith. Exit
status 1 where a file met an error of ours, or took longer than the seconds.
"""

import argparse
import ast
import json
import os
import random
import signal
import sys
import sysconfig
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import migrate
from migrate.pipeline import deep

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
NAMES = ["x", "x", "self", "torch", "nn", "F", "torch.Tensor", "F.relu", "nn.Linear(3, 3)", "nn.Module", "x.shape", "super().__init__()", "torch.no_grad()"]


def fault(text: bytes | str, name: str, target: str) -> tuple[str, str]:
    """(what became of a text, what went wrong with it); "" for the second where nothing did."""
    try:
        found = migrate.convert_source(text, target=target, filename=name)
        same = found.code.encode() == (text if isinstance(text, bytes) else text.encode()) and not found.diagnostics
        again = found if same else migrate.convert_source(text, target=target, filename=name)
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return "error", "".join(traceback.format_exception(e)[-4:])
    codes = {d.code for d in found.diagnostics}
    became = "refused" if codes & {"MIG501", "MIG503"} else "same" if same else "changed"
    if (again.code, again.diagnostics, again.names) != (found.code, found.diagnostics, found.names):
        return became, "a second conversion gives another result"
    if told := [str(d) for d in found.diagnostics if d.code.startswith("MIG9")]:
        return became, "; ".join(told)
    if astray := [str(d) for d in found.diagnostics if d.line < 1]:
        return became, f"without a position: {astray[0]}"
    if became == "refused":
        return became, ""
    try:
        deep(lambda: ast.parse(found.code))
    except (SyntaxError, ValueError, RecursionError) as e:
        return became, f"the output does not parse: {e}"
    return became, ""


class Log:
    """Results by file, kept as they come."""

    def __init__(self, path: Path | None) -> None:
        self.found: dict[str, dict[str, object]] = {}
        if path and path.exists():
            for line in path.read_text().splitlines():
                self.found.update({json.loads(line)["file"]: json.loads(line)})
        self.file = path.open("a") if path else None

    def keep(self, **entry: object) -> None:
        """Writes a result at once."""
        self.found[str(entry["file"])] = entry
        if self.file:
            print(json.dumps(entry), file=self.file, flush=True)


def convert(name: str, text: bytes | str, target: str, log: Log, most: float) -> None:
    """Converts one text, noted before and after: what ends the process shows. What takes longer than the seconds ends it, and the rest goes on in another."""
    log.keep(file=name, became="begun", why="it ended the process", seconds=0)
    start = time.process_time()

    def late(*_: object) -> None:
        log.keep(file=name, became="slow", why=f"takes longer than {most:.0f} s", seconds=most)
        print(f"{name}: takes longer than {most:.0f} s", flush=True)
        os.execv(sys.executable, [sys.executable, *sys.argv]) if log.file else os._exit(1)

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, most)
    became, why = fault(text, name, target)
    signal.setitimer(signal.ITIMER_PROF, 0)
    log.keep(file=name, became=became, why=why, seconds=round(time.process_time() - start, 2), **({"text": text} if why and isinstance(text, str) else {}))
    if why:
        print(f"{name}: {why}", flush=True)


class _Known(ast.NodeTransformer):
    """Puts names that conversion looks at in place of some that were made up."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that is read becomes another expression, half of the time."""
        if isinstance(node.ctx, ast.Load) and self.draw.random() < 0.5:
            return ast.parse(self.draw.choice(NAMES), mode="eval").body
        return node


def in_module(text: str) -> str:
    """The statements as the body of a module's forward, with names of PyTorch among them; "" where that is no Python."""
    try:
        tree = _Known(random.Random(text)).visit(ast.parse(text))
        body = "\n".join("        " + line for line in ast.unparse(ast.fix_missing_locations(tree)).splitlines())
        made = f"{HEAD}class Net(nn.Module):\n    def forward(self, x):\n{body}\n        return x\n"
        compile(made, "made up", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return ""
    return made


def generate(count: int, target: str, log: Log, most: float) -> None:
    """Converts Python that hypothesmith makes up: as it is below PyTorch's imports, and inside a module."""
    import hypothesmith
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(hypothesmith.from_node(), hypothesmith.from_grammar()))
    def one(text: str) -> None:
        for number, made in enumerate((HEAD + text, in_module(text))):
            name = f"generated:{'within' if number else 'below'}:{random.Random(made).getrandbits(64):x}"
            if made and name not in log.found:
                convert(name, made, target, log, most)

    one()


def main() -> int:
    """0 where no file met an error of ours."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--target", default="flax")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--generated", type=int, default=0)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    log = Log(a.log)
    files = [p for f in [Path(sysconfig.get_paths()["stdlib"]), *a.folders] for p in sorted(f.rglob("*.py")) if p.is_file() and "site-packages" not in p.parts]
    files.sort(key=lambda p: b"torch" not in p.read_bytes())
    shown = time.monotonic()
    for number, p in enumerate(files, 1):
        if str(p) not in log.found:
            convert(str(p), p.read_bytes(), a.target, log, a.seconds)
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{number} of {len(files)} files", file=sys.stderr, flush=True)
    if a.generated:
        generate(a.generated, a.target, log, a.seconds)
    results = list(log.found.values())
    bad, slow = sum(bool(r["why"]) for r in results if r["became"] != "slow"), sum(r["became"] == "slow" for r in results)
    told = ", ".join(f"{n} {k}" for k, n in sorted(Counter(str(r["became"]) for r in results).items()))
    seconds = sum(float(str(r["seconds"])) for r in results)
    print(f"{len(files)} files, {len(results) - len(files)} made up: {told}; {bad} with an error of ours, {slow} slow; {seconds:.0f} s")
    return 1 if bad or slow else 0


if __name__ == "__main__":
    sys.exit(main())
