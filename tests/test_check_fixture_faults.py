"""Faults planted by hand in two converted fixtures: each is found at the stage and in the submodule where it is."""

import pytest
from mutants import Mutant
from mutation_run import Bench

STAGES = ("forward", "submodules", "gradients", "train")
NO_TYING = "        self.score = TiedLinear(self.body.words, self.score.bias)  # one matrix, two uses\n"
MASKED = 'jnp.where(self.allowed[:, :, :t, :t] == 0, float("-inf"), score)'
# What is changed into what, the stage that fails, and the submodule where the first difference is ("-": a stage that names none).
FAULTS = {
    "gpt": {
        "a weight of its own": (NO_TYING, "", "gradients", "-"),
        "buffer left out": (MASKED, "score", "forward", "body.stack.0.attention"),
        "mask one row further": ("allowed[:, :, :t, :t]", "allowed[:, :, 1 : t + 1, :t]", "forward", "body.stack.0.attention"),
        "mask turned": ("[:, :, :t, :t] == 0", "[:, :, :t, :t] != 0", "forward", "body.stack.0.attention"),
        "epsilon": ("eps=1e-5", "eps=1e-6", "forward", "body.stack.0.norm_a"),
        "gradient stopped": ("x + self.feed(self.norm_b(x))", "x + jax.lax.stop_gradient(self.feed(self.norm_b(x)))", "gradients", "-"),
        "no dropout": ("self.drop_weights(jax.nn.softmax(score, axis=-1))", "jax.nn.softmax(score, axis=-1)", "train", "-"),
    },
    "mobilenet": {
        "padding SAME": ("size, step, (size - 1) // 2, groups", 'size, step, "SAME", groups', "forward", "blocks.0.0"),
        "epsilon": ("eps=0.001", "eps=1e-5", "forward", "blocks.0.1"),
        "gradient stopped": ("x + self.steps(x)", "x + jax.lax.stop_gradient(self.steps(x))", "gradients", "-"),
        "no dropout": ("Dropout2d(dropout", "Dropout2d(0.0", "train", "-"),
        "a row too few": ("self.classify(x)", "self.classify(x)[:, 1:]", "shapes", "-"),
    },
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_found_where_they_are(case, tmp_path):
    bench = Bench(case, tmp_path)
    assert bench.quick(bench.plain, STAGES) is None, "no false alarm"
    wrong = {}
    for name, (old, new, stage, module) in FAULTS[case].items():
        assert bench.code.count(old) == 1, old
        verdict = bench.quick(Mutant(name, bench.code.replace(old, new), bench.support), STAGES)
        failed = "" if verdict is None else next(s.name for s in verdict.stages if s.status == "failed")
        at = "-" if verdict is None or verdict.first is None else verdict.first.module
        if (failed, at) != (stage, module):
            wrong[name] = failed, at
    assert not wrong, wrong
