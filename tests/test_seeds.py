"""A program's own seed decides what is drawn."""

import numpy as np
from converted import run
from flax import nnx

import migrate

HEAD = "import torch\nfrom torch import nn\n\n\n"


def test_the_seed_of_a_function_decides():
    text = f"{HEAD}def make(seed):\n    if seed is not None:\n        torch.manual_seed(seed)\n    return nn.Linear(3, 3)\n"
    make = run(text, "flax")["make"]
    one, same, other = (np.asarray(make(s, rngs=nnx.Rngs(7)).kernel[...]) for s in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_seed_without_a_stream_is_said():
    found = migrate.convert_source(f"{HEAD}def start(seed):\n    torch.manual_seed(seed)\n    torch.cuda.manual_seed_all(seed)\n")
    assert [(d.code, d.line) for d in found.diagnostics if d.severity != "info"] == [("MIG201", 6)]
    assert not [d for d in migrate.convert_source(f"{HEAD}def start():\n    torch.manual_seed(0)\n").diagnostics if d.severity != "info"]
