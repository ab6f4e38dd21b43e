"""Guesses what a class is built with, where nobody said: from defaults, annotations and names of parameters. Only what runs is used."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

# Patterns of parameter names, and what is tried for them, the likeliest first.
NAMES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    (r"(n_?um_?|n_)?(class(es)?|labels|outputs?|targets)(_dim|_size|_features)?$|^(out|output)(_dim|_features|_size)$", (10, 16)),
    (r"(vocab|num_embeddings|n_?tokens?|num_tokens|words)", (60,)),
    (r"^(in|input|n|num|img|image)_?(ch|chans?|channels)$|^(channels|chans|in_c|c_in|inp|inplanes|in_planes)$", (3, 16, 32)),
    (r"(heads|n_?head|groups)$", (4, 2, 1)),
    (r"(layers|depth|blocks|n_?layer|stages|repeats)$", (2, (2, 2, 2, 2))),
    (r"(kernel|ksize|kernel_size|patch|window)", (3, 4, 7)),
    (r"^(stride|dilation|scale|factor|expansion|ratio|reduction)", (1, 2, 4)),
    (r"(bias|^use_|^is_|^with_|^has_)", (True,)),
    (r"(drop|rate|prob|^p$|eps|alpha|momentum|temperature)", (0.1,)),
    (r"(img|image|input)_?(size|res|resolution)|^size$|resolution", (32, 64, 224)),
    (r"(max|seq|block|context|sequence|max_seq)_?(len|length|size|seq_len|positions)?$", (32, 64)),
    (r"(dim|width|hidden|embed|features|size|units|planes|d_model|d_ff|latent|inner|channels|chans|filters|ch|nf)", (32, 16, 64)),
)
BY_TYPE: dict[Any, tuple[Any, ...]] = {int: (16, 32, 2), float: (0.1, 1.0), bool: (False, True), str: ("relu", "same")}
MOST = 24  # combinations tried


class Code:
    """An argument that is an expression."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def constructions(cls: type, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Keyword arguments to try for a class: none first, where none is needed. Nothing where a parameter can't be guessed.

    `names` are those of its module: a class of settings that needs no arguments is one that can be passed."""
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        return
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    choices = {p.name: _settings(p, names) or guesses(p) for p in needed}
    if any(not c for c in choices.values()) or any(p.kind is p.POSITIONAL_ONLY for p in needed):
        return
    yield {n: c[0] for n, c in choices.items()}
    count = 1
    for name, options in choices.items():  # one at a time, then all of them alike
        for option in options[1:]:
            if count < MOST:
                count += 1
                yield {n: c[0] for n, c in choices.items()} | {name: option}
    for value in (16, 32, 8, 4, 1):
        if count < MOST and all(isinstance(c[0], int) for c in choices.values()) and choices:
            count += 1
            yield dict.fromkeys(choices, value)


def guesses(p: inspect.Parameter) -> tuple[Any, ...]:
    """Values for one parameter; () where there is no idea."""
    wanted = p.annotation
    if isinstance(wanted, str):
        wanted = {"int": int, "float": float, "bool": bool, "str": str}.get(wanted, p.empty)
    for pattern, values in NAMES:
        if re.search(pattern, p.name.lower()):
            if wanted in BY_TYPE and not isinstance(values[0], wanted):
                break
            return values
    if wanted in BY_TYPE:
        return BY_TYPE[wanted]
    return (16, 32, 3) if wanted is p.empty and not _callable(p.name) else ()


def _settings(p: inspect.Parameter, names: dict[str, Any]) -> tuple[Any, ...]:
    """A settings object for a parameter that is annotated as one, or called like one."""
    named = p.annotation.rpartition(".")[2] if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "")
    wanted = re.fullmatch(r"(config|cfg|conf|settings|args|options|hparams|params)", p.name.lower())
    for name, value in names.items():
        if isinstance(value, type) and (name == named or (wanted and re.search(r"(Config|Settings|Args|Options|Params)$", name))):
            try:
                value()
            except Exception:
                continue
            if not hasattr(value, "forward"):
                return (Code(f"{name}()"),)
    return ()


def _callable(name: str) -> bool:
    """Whether a parameter of this name holds a function, a layer or a settings object, which can't be guessed."""
    words = r"(fn|func|act|activation|norm|layer|block|module|model|net|encoder|decoder|config|cfg|args|opt|backbone)"
    return bool(re.search(words, name.lower()))


def expression(cls: str, arguments: dict[str, Any]) -> str:
    """What builds it, as text."""
    return f"{cls}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
