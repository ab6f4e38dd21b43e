"""Which definitions of the support code the benchmark runs, and why the others need no entry of their own.

    python benchmarks/speed_coverage.py

A definition is covered where an entry uses it, directly or through another. One that only hands its arguments, or its attributes, on
to definitions that are covered (no call of JAX's in it) takes their time. The rest has a reason here.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORT = ROOT / "migrate" / "support"
Name = tuple[str, str]  # ("jax.losses", "mse_loss")
ARRAY_LIBRARIES = frozenset({"jnp", "jax", "lax", "keras", "nnx"})

# Files of which nothing runs inside the program that jit compiles, or nothing has an equivalent to be set beside.
FILES = {
    "flax.building": "runs while a model is built or walked, not under jit",
    "flax.checkpoints": "reads and writes weights",
    "flax.containers": "holds layers",
    "flax.copies": "copies modules",
    "flax.diffusers_model": "the machinery around models: configurations",
    "flax.hooks": "calls what the user registered",
    "flax.lazy": "becomes another layer at the first call",
    "flax.reparametrize": "the computed weight is one expression; the rest builds",
    "flax.state": "holds arrays",
    "flax.transformers_model": "the machinery around models: configurations and outputs",
    "jax.contexts": "does nothing",
    "jax.creation": "makes arrays from Python's values",
    "jax.custom_gradient": "calls what the user wrote",
    "jax.distributions": "formulas as one would write them",
    "jax.distributions_discrete": "formulas as one would write them",
    "jax.distributions_transforms": "formulas as one would write them",
    "jax.dropout": "the draws of the random stream are all of its time",
    "jax.init": "initialisers run once",
    "jax.packed": "lengths are data: runs outside jit",
    "jax.random": "the draws of the random stream are all of its time",
    "jax.settings": "holds values",
    "jax.transformers_config": "configurations",
    "jax.transformers_functions": "formulas as one would write them, and decorators",
    "jax.transformers_losses": "formulas on losses that are covered",
    "jax.transformers_masks": "masks as one would write them",
    "jax.transformers_outputs": "holds outputs and caches",
    "keras.containers": "holds layers",
    "keras.hooks": "calls what the user registered",
    "keras.lazy": "becomes another layer at the first call",
    "keras.module": "the base of modules: runs while a model is built",
    "keras.reparametrize": "the computed weight is one expression; the rest builds",
    "keras.starting": "runs while a model is built",
    "keras.walk": "walks models",
}
REASONS = {
    "one function of JAX's": (
        "flax.activations: ReLU ReLU6 ELU CELU SELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Tanhshrink "
        "Softsign Hardsigmoid Hardswish GLU Softmax Softmin LogSoftmax Softmax2d; "
        "keras.activations: ELU CELU SELU SiLU Mish Sigmoid LogSigmoid Tanh Softsign GLU Softmax Softmin LogSoftmax Softmax2d; "
        "jax.activations: implicit_dim softmax_axis softmax log_softmax; jax.reductions: max_or_maximum min_or_minimum all_true any_true; flax.linear: TiedLinear"
    ),
    "keeps arrays for a function that is covered": (
        "flax.losses: as_buffer NLLLoss CrossEntropyLoss LinearCrossEntropyLoss BCELoss BCEWithLogitsLoss MultiLabelSoftMarginLoss MultiMarginLoss; "
        "flax.embedding: EmbeddingBag; keras.linear: EmbeddingBag"
    ),
    "calls its layers in turn": (
        "flax.transformer: TransformerEncoder Transformer causal_mask zeroes_padding is_relu_or_gelu; keras.attention: TransformerEncoder Transformer zero_padding"
    ),
    "neither framework has one": "flax.losses: AdaptiveLogSoftmaxWithLoss; keras.losses_class: AdaptiveLogSoftmaxWithLoss",
    "draws: the random stream is all of the time": "jax.activations: gumbel_softmax rrelu",
    "shapes only: XLA makes one reshape, slice or broadcast of it": "jax.shapes: chunk expand flatten split squeeze unflatten cartesian_prod sum_to_size diag_embed",
    "the length of the result is data: runs outside jit": "jax.indexing: masked_select; jax.sorting: unique_consecutive",
    "computed once, by NumPy": "jax.indexing: fixed; jax.fourier: bartlett cosine exponential gaussian general_cosine kaiser points",
    "JAX has nothing to set beside it": (
        "jax.special: bessel_far bessel_j bessel_j0 bessel_j1 bessel_y bessel_y0 bessel_y1 by_recurrence chebyshev_polynomial_t "
        "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
        "laguerre_polynomial_l legendre_polynomial_p modified_bessel_k0 modified_bessel_k1 scaled_bessel_k"
    ),
}


def definitions() -> Mapping[Name, ast.AST]:
    """All of the support code's functions and classes."""
    found = {}
    for path in sorted(SUPPORT.glob("*/*.py")):
        module = f"{path.parent.name}.{path.stem}"
        found |= {(module, n.name): n for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return found


def uses(defined: Mapping[Name, ast.AST]) -> Mapping[Name, set[Name]]:
    """What each definition names of the others: those of its module, and those that its module imports."""
    seen: dict[str, dict[str, Name]] = {}
    for module, name in defined:
        seen.setdefault(module, {})[name] = (module, name)
    for module, names in seen.items():
        tree = ast.parse((SUPPORT / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
        for node in (n for n in tree.body if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("migrate.support.")):
            names |= {a.asname or a.name: ((node.module or "").removeprefix("migrate.support."), a.name) for a in node.names}
    return {
        key: {seen[key[0]][n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in seen[key[0]]} & set(defined) - {key} for key, node in defined.items()
    }


def entered(defined: Mapping[Name, ast.AST]) -> Iterator[Name]:
    """What the entries name."""
    for path in (ROOT / "benchmarks").glob("s*_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("migrate.support."):
                modules |= {a.asname or a.name: f"{(node.module or '').removeprefix('migrate.support.')}.{a.name}" for a in node.names}
            elif isinstance(node, ast.Import):
                modules |= {a.asname: a.name.removeprefix("migrate.support.") for a in node.names if a.asname and a.name.startswith("migrate.support.")}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (key := (modules.get(node.value.id, ""), node.attr)) in defined:
                yield key


def hands_on(node: ast.AST) -> bool:
    """Whether a definition has no call of an array library but in the making of a layer."""
    parts = [n for n in node.body if getattr(n, "name", "") != "__init__"] if isinstance(node, ast.ClassDef) else [node]
    return not any(isinstance(n, ast.Name) and n.id in ARRAY_LIBRARIES for part in parts for n in ast.walk(part))


def uncovered() -> dict[Name, str]:
    """The definitions that no entry runs, with the reason, "" where there is none."""
    defined = definitions()
    used = uses(defined)
    covered: set[Name] = set()
    todo = list(entered(defined))
    while todo:
        if (key := todo.pop()) not in covered:
            covered.add(key)
            todo += used[key]
    reasons = {(part.partition(":")[0].strip(), n): why for why, text in REASONS.items() for part in text.split(";") for n in part.partition(":")[2].split()}
    reasons |= {key: FILES[key[0]] for key in defined if key[0] in FILES}
    settled = covered | set(reasons)
    while more := {key for key, node in defined.items() if key not in settled and hands_on(node) and used[key] <= settled}:
        settled |= more
    return {key: reasons.get(key, "") for key in defined if key not in covered and (key in reasons or key not in settled)}


if __name__ == "__main__":
    for (module, name), why in uncovered().items():
        print(f"{module + '.' + name:60}{why or 'NOTHING'}")
