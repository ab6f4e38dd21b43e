"""Runs a converted text."""

import sys
import types

import migrate


def run(text, target):
    """The namespace of a converted text, which must convert without a warning."""
    made = migrate.convert_source(text, target=target)
    assert not [d for d in made.diagnostics if d.severity != "info"], made.diagnostics
    support = types.ModuleType("torch_support")
    exec(compile("".join(made.support.values()), "torch_support.py", "exec"), vars(support))
    before = sys.modules.get("torch_support")
    sys.modules["torch_support"] = support
    try:
        module = types.ModuleType("converted_text")
        exec(compile(made.code, "converted_text.py", "exec"), vars(module))
    finally:
        if before is None:
            del sys.modules["torch_support"]
        else:
            sys.modules["torch_support"] = before
    return vars(module)


def load(text, target, name, original):
    """The converted class `name`, with the weights of the PyTorch module."""
    from flax import nnx

    made = run(text, target)[name]
    model = made(rngs=nnx.Rngs(0)) if target == "flax" else made()
    migrate.load_state_dict(model, original.state_dict())
    return model
