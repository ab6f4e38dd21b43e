"""Checks models of the size of ResNet-50 and GPT-2 small, and prints seconds, processor seconds and peak memory of both processes.

usage: check_size.py [resnet50] [gpt2] [--fast]
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import migrate
from migrate.check import child
from migrate.check.run import FAST, check
from migrate.check.verdict import USUAL

MODELS = Path(__file__).parent / "models"
CASES = {"resnet50": ("ResNet()", "f32[2,3,224,224]"), "gpt2": ("GPT()", "i64[1,128](0,50257)")}


def measure(name, stages):
    """One check; what it took."""
    model, inputs = CASES[name]
    peaks, result = [], child.Child.result

    def watched(self):
        found = result(self)
        peaks.append(f"{self.module.rpartition('.')[2]} {found['peak'] / 2**30:.2f} GiB")
        return found

    with tempfile.TemporaryDirectory() as folder:
        migrate.convert_path(MODELS / f"{name}.py", Path(folder))
        start, before = time.perf_counter(), os.times()
        child.Child.result = watched
        verdict = check(MODELS / f"{name}.py", Path(folder) / f"{name}.py", model=model, inputs=[inputs], stages=stages)
        child.Child.result = result
        seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    said = "equal" if verdict.ok else verdict.message
    print(f"{name}: {said}, {verdict.compared} tensors; {seconds:.0f} s, {used:.0f} s of processor; {', '.join(peaks)}")
    print("  " + ", ".join(f"{s.name} {s.seconds:.1f}" for s in verdict.stages if s.seconds > 0.5), flush=True)


if __name__ == "__main__":
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")] or list(CASES)
    for case in chosen:
        measure(case, FAST if "--fast" in sys.argv else USUAL)
