"""Loads a user's file inside a child process, builds what an expression says, and tells where user code failed."""

import ast
import importlib.util
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


class UserError(Exception):
    """User code or a user's expression failed; `file` and `line` say where, when they are known."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


def load(path: Path, roots: Sequence[Path] = ()) -> ModuleType:
    """Imports a file; frameworks must have been imported before, since the file's folder comes first on the path (a `torch.py`
    lies there, perhaps).

    A file inside a package is imported under its dotted name.
    """
    path = path.resolve()
    top, name = path.parent, path.stem
    while (top / "__init__.py").exists():
        name = f"{top.name}.{name}"
        top = top.parent
    sys.path[:0] = [str(p) for p in (top, *(Path(r).resolve() for r in roots)) if str(p) not in sys.path]
    sys.argv = [str(path)]
    if "." in name:
        return importlib.import_module(name)
    if name in sys.modules or name in sys.stdlib_module_names:
        name = f"_checked_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def locate(error: BaseException, folders: Sequence[Path]) -> tuple[str, int]:
    """The innermost place in user code that an exception passed through."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    return innermost(traceback.extract_tb(error.__traceback__), folders)


def innermost(frames: Sequence[traceback.FrameSummary], folders: Sequence[Path]) -> tuple[str, int]:
    """The last of these places that is user code."""
    tops = [str(f.resolve()) for f in folders]
    for frame in reversed(frames):
        if any(frame.filename.startswith(t) for t in tops) and "site-packages" not in frame.filename:
            return frame.filename, frame.lineno or 0
    return "", 0


def describe(error: BaseException) -> str:
    """One line for an exception; long ones keep their beginning."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def source_line(file: str, line: int) -> str:
    """The text of a line."""
    return linecache.getline(file, line).strip()


def class_place(cls: type) -> tuple[str, int]:
    """Where a user's class is defined; ("", 0) for one of an installed library."""
    try:
        file, line = inspect.getsourcefile(cls) or "", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return "", 0
    return ("", 0) if "site-packages" in file else (file, line)


class _Builds(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        return ast.Call(ast.Name("__build__", ast.Load()), [node.func, *node.args], node.keywords)


def evaluate(expression: str, namespace: dict[str, Any], rngs: Callable[[], Any] | None = None) -> Any:
    """The value of an expression. With `rngs`, each callee that takes `rngs` and was not given any gets a fresh one."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as e:
        raise UserError(f"`{expression}` is no Python expression: {e.msg}") from None
    scope = dict(namespace)
    if rngs is not None:
        tree = ast.fix_missing_locations(_Builds().visit(tree))

        def build(function: Any, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs, rngs=rngs()) if "rngs" not in kwargs and takes_rngs(function) else function(*args, **kwargs)

        scope["__build__"] = build
    return eval(compile(tree, "<model>", "eval"), scope)


def _signed(function: Any) -> Any:
    """What has the signature: the metaclass of nnx hides that of a class."""
    either: Any = function
    return either.__init__ if isinstance(function, type) else function


def takes_rngs(function: Any) -> bool:
    """Whether a class or function has a parameter `rngs`."""
    try:
        return "rngs" in inspect.signature(_signed(function)).parameters
    except (TypeError, ValueError):
        return False
