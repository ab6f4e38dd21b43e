"""What a file's `if __name__ == "__main__":` block says of its models: the expression that builds one, its inputs."""

import ast
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from migrate.check.spec import DTYPES, Spec, text

SECONDS = 20  # for the block
SHORT = {v: k for k, v in DTYPES.items()}


class _Found(BaseException):
    """Ends the block once a model was called; no `except Exception` of the user's may catch it."""


def demonstrated(path: Path, names: dict[str, Any], cls: type) -> tuple[str | None, tuple[str, ...]]:
    """The expression and the inputs of the first call of a model of class `cls`; None and () where the block has none."""
    block = _block(path)
    if not block:
        return None, ()
    return _expression(block, names, cls.__name__), _inputs(block, names, cls)


def _block(path: Path) -> list[ast.stmt]:
    tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    for node in tree.body:
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test) and "__main__" in ast.dump(node.test):
            return node.body
    return []


def _expression(block: list[ast.stmt], names: dict[str, Any], cls: str) -> str | None:
    """The call of the class, where it is made of literals and of names that both files have."""
    for node in (n for s in block for n in ast.walk(s)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == cls:
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {cls}
            if all(u in names and not hasattr(names[u], "__path__") and u != "torch" for u in used):
                return ast.unparse(node)
    return None


def _inputs(block: list[ast.stmt], names: dict[str, Any], cls: type) -> tuple[str, ...]:
    """Runs the block, to the first call of a model of the class."""
    original = torch.nn.Module.__call__
    given: list[Any] = []

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, cls):
            given.append((args, kwargs))
            raise _Found
        return original(self, *args, **kwargs)

    def late(_: int, __: FrameType | None) -> None:
        raise _Found

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    torch.nn.Module.__call__ = call
    try:
        exec(compile(ast.Module(block, []), "<__main__ block>", "exec"), dict(names) | {"__name__": "__main__"})
    except (_Found, Exception, SystemExit):
        pass
    finally:
        torch.nn.Module.__call__ = original
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if not given:
        return ()
    args, kwargs = given[0]
    specs = [_spec("", v) for v in args] + [_spec(k, v) for k, v in kwargs.items()]
    return tuple(text(s) for s in specs if s is not None) if all(s is not None for s in specs) else ()


def _spec(keyword: str, value: Any) -> Spec | None:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in SHORT:
            return None
        low, high = (float(value.min()), float(value.max()) + 1) if dtype.startswith("int") and value.numel() else (None, None)
        return Spec(keyword, dtype, tuple(value.shape), low, high)
    return Spec(keyword, value=value) if value is None or isinstance(value, bool | int | float | str) else None
