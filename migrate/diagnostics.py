"""The table of diagnostics: each code, what it means and the way out. Codes are never used again for something else.

1xx rewritten (info), 2xx converted but may differ (warning), 3xx left as it was (error), 4xx numbers disagree, 5xx input or project, 9xx a bug of ours.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One kind of diagnostic."""

    code: str
    severity: str  # "info", "warning", "error"
    title: str
    why: str
    way_out: str


@dataclass(frozen=True, order=True)
class Diagnostic:
    """A diagnostic at a place: 1-based line and column of the user's file."""

    line: int
    column: int
    code: str
    message: str
    filename: str = ""

    @property
    def severity(self) -> str:
        """ "info", "warning" or "error"."""
        return CODES[self.code].severity

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}: {self.code} {self.message}"


def _codes(*codes: Code) -> dict[str, Code]:
    return {c.code: c for c in codes}


CODES = _codes(
    Code("MIG101", "info", "Rewritten", "An operator, layer or construct of PyTorch was replaced by its equivalent.", "Nothing to do."),
    Code("MIG102", "info", "Default initialisation", "Layers start from the target's own initial values; trained weights replace them.",
         "Load your weights, or initialise explicitly where training from scratch must follow PyTorch's distribution."),
    Code("MIG103", "info", "Removed", "The statement has no counterpart and no effect on values: devices, seeds that are numbers of the code, compilation hints.",
    "Nothing to do. The numbers that are drawn are not PyTorch's, with any seed: `nnx.Rngs(0)` is where they start."),
    Code("MIG104", "info", "Definition left out", "The module is reached only through imports and nothing needed uses this definition.",
         "Convert the file itself to keep all of it."),
    Code("MIG105", "info", "Shape depends on data", "The result's shape depends on values. It is right when run eagerly; `jax.jit` needs a fixed shape.",
         "Under jit use the `size=` argument of the jax.numpy function, or `jnp.where`."),
    Code("MIG106", "info", "An argument is no longer written to", "PyTorch changes the caller's tensor in place; here only the local name gets the new value.",
         "Return the value, if a caller outside this code relied on it."),
    Code("MIG107", "info", "Precision", "64-bit types are 32-bit in JAX by default.", "Set jax_enable_x64 if the values need it."),
    Code("MIG109", "info", "Branch depends on data",
    "Python needs the value of an array, to decide or as a number. That is right when run eagerly; `jax.jit` can't trace it.",
         "Under jit use `jnp.where` or `jax.lax.cond`; a size that comes from values must be given as a number, such as the padded length."),
    Code("MIG110", "info", "Kept", "A comment `# migrate: keep` says that this stays as it is.", "Remove the comment to have it converted."),
    Code("MIG201", "warning", "May differ", "The target's operator is not quite PyTorch's; the message says how.", "Compare with `migrate check`."),
    Code("MIG202", "warning", "Kind assumed", "What the expression is could not be told from the code, and the rewrite depends on it.",
         "Add an annotation, then convert again."),
    Code("MIG203", "warning", "Random numbers", "The target draws other numbers from the same seed; only the distribution is kept.", "Compare statistics, not values."),
    Code("MIG204", "warning", "Callee unknown", "Whether this call needs the random stream could not be told.", "Check the call."),
    Code("MIG205", "warning", "Class attribute renamed", "The target reserves the name.", "Use the new name in code outside this file."),
    Code("MIG206", "warning", "Converted apart",
    "A large project is converted in parts. This file uses a definition of another part, which that part converted with other knowledge of it.",
         "Compare the call with the definition."),
    Code("MIG207", "warning", "Digits cancel",
    "E[xy] - E[x] E[y] is a difference of two nearly equal values. The last digits of a constant, which XLA rounds otherwise than PyTorch, "
         "and the bfloat16 products of a TPU are enlarged in it.",
         "Compute the mean of (x - mean) (y - mean), or compare with `migrate check` and run it at `precision=\"highest\"`."),
    Code("MIG301", "error", "Not supported", "No row or rule covers this.", "Write this part by hand, or add a row (docs/adding-an-operator.md)."),
    Code("MIG302", "error", "Argument not supported", "The operator is known, but not with this argument.", "Write this part by hand."),
    Code("MIG303", "error", "In-place write through a view", "PyTorch would change another tensor as well; JAX arrays are immutable.",
         "Assign the changed value to the tensor that should have it."),
    Code("MIG304", "error", "Kind unknown", "What the expression is could not be told from the code, and guessing could be wrong in silence.",
         "Add an annotation (`x: Tensor`), then convert again."),
    Code("MIG305", "error", "Arguments unknown", "The call passes `*args` or `**kwargs` to an operator whose arguments must be known.", "Spell the arguments out."),
    Code("MIG306", "error", "Part of PyTorch's machinery", "Hooks, autograd internals, distributed and device code have no counterpart that a rewrite could make.",
         "Use the target's own mechanism."),
    Code("MIG307", "error", "Training code", "Optimisers, data loaders and training loops are not converted yet.", "Write the loop with optax or keras.fit."),
    Code("MIG308", "error", "Result depends on state", "The forward pass changes attributes in a way that tracing would not see.", "Make it a Variable, or return it."),
    Code("MIG401", "error", "Numbers disagree", "On the same inputs and weights the converted model gives something else, from this place on.",
         "Look at the first submodule that differs in the table of `migrate check`."),
    Code("MIG501", "error", "Not readable", "The file can't be read as Python.", "Mend the file."),
    Code("MIG502", "error", "Module not found", "An import that looks local was not found under the given roots.", "Give its folder with --root."),
    Code("MIG503", "error", "Too deep", "The code is nested too deeply.", "Split the expression."),
    Code("MIG901", "error", "A bug in migrate", "Two rewrites claim the same place, or the result would not be valid Python.", "Please report it with the input."),
)
