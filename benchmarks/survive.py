"""Converts every Python file of the standard library and of the folders given, one by one in one process: none may stop it, what
comes out must parse, and a second conversion must give the same (objects lie elsewhere in memory, so that no order of a set may show).

usage: survive.py [FOLDER ...] [--target flax] [--seconds 60]      exit status 1 where a file met an error of ours, or took longer than the seconds
"""

import argparse
import ast
import sys
import sysconfig
import time
import traceback
import warnings
from pathlib import Path

import migrate
from migrate.pipeline import deep


def fault(path: Path, target: str) -> str:
    """What went wrong with a file; "" where nothing did."""
    try:
        found = migrate.convert_source(path.read_bytes(), target=target, filename=str(path))
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(e)[-4:])
    again = migrate.convert_source(path.read_bytes(), target=target, filename=str(path))
    if (again.code, again.diagnostics, again.names) != (found.code, found.diagnostics, found.names):
        return "a second conversion gives another result"
    if told := [str(d) for d in found.diagnostics if d.code.startswith("MIG9")]:
        return "; ".join(told)
    if any(d.code in ("MIG501", "MIG503") for d in found.diagnostics):
        return ""
    try:
        deep(lambda: ast.parse(found.code))
    except (SyntaxError, ValueError, RecursionError) as e:
        return f"the output does not parse: {e}"
    return ""


def main() -> int:
    """0 where no file met an error of ours."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--target", default="flax")
    parser.add_argument("--seconds", type=float, default=60.0)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    files = [p for f in [Path(sysconfig.get_paths()["stdlib"]), *a.folders] for p in sorted(f.rglob("*.py")) if p.is_file() and "site-packages" not in p.parts]
    bad = slow = 0
    for p in files:
        start = time.process_time()
        why = fault(p, a.target)
        seconds = time.process_time() - start
        if why:
            bad += 1
            print(f"{p}: {why}", flush=True)
        if seconds > a.seconds:
            slow += 1
            print(f"{p}: {seconds:.0f} s", flush=True)
    print(f"{len(files)} files, {bad} with an error of ours, {slow} slow; {time.process_time():.0f} s")
    return 1 if bad or slow else 0


if __name__ == "__main__":
    sys.exit(main())
