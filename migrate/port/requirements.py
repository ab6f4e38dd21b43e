"""Dependencies of a project: PyTorch's packages are replaced by those that the converted code imports."""

import re
import tomllib
from collections.abc import Collection

# the name on PyPI -> the module, where it was PyTorch's
TORCH = {"torch": "torch", "pytorch": "torch", "torchvision": "torchvision", "torchaudio": "torchaudio"}
NEW = {"jax": "jax>=0.7", "flax": "flax>=0.12", "keras": "keras>=3.12", "optax": "optax>=0.2.5", "einops": "einops>=0.8", "numpy": "numpy"}
NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*(.*)$")


def rewrite(path: str, text: str, imported: Collection[str], target: str) -> tuple[str, list[str]]:
    """(the new text of a file of dependencies, what was done). `imported`: the top-level modules that the output imports."""
    name = path.rpartition("/")[2]
    if name == "pyproject.toml":
        return _pyproject(text, imported, target)
    if name in ("environment.yml", "environment.yaml"):
        return _lines(text, imported, target, "- ")
    if name == "setup.cfg":
        return _lines(text, imported, target, "", within="install_requires")
    return _lines(text, imported, target, "")


def wanted(imported: Collection[str], target: str) -> list[str]:
    """The requirements of the output that PyTorch's make room for."""
    needed = {"jax", target} | (set(imported) & {"optax", "numpy"} if "optax" in imported else set())
    return [NEW[n] for n in ("jax", "flax", "keras", "optax") if n in needed]


def _goes(requirement: str, imported: Collection[str]) -> str | None:
    """The package of PyTorch that a requirement names; None for another."""
    m = NAME.match(requirement)
    package = re.sub(r"[-_.]+", "-", m[1]).lower() if m else ""
    return package if package in TORCH else None


def _stays(package: str, imported: Collection[str]) -> bool:
    return TORCH[package] in imported or (package in ("torch", "pytorch") and bool({"torchvision", "torchaudio"} & set(imported)))


def _lines(text: str, imported: Collection[str], target: str, bullet: str, within: str = "") -> tuple[str, list[str]]:
    out: list[str] = []
    done: list[str] = []
    have = {m[1].lower() for line in text.splitlines() if (m := NAME.match(line.strip().removeprefix(bullet)))}
    inside = not within
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if within:
            inside = stripped.startswith(within) or (inside and (line[:1].isspace() or not stripped))
        item = stripped.removeprefix(bullet) if stripped.startswith(bullet) else ""
        package = _goes(item, imported) if inside and item and not item.startswith(("#", "-")) else None
        if package is None:
            out.append(line)
            continue
        indent, end = line[: len(line) - len(line.lstrip())], line[len(line.rstrip("\r\n")) :] or "\n"
        new = [r for r in wanted(imported, target) if _name(r) not in have] if package in ("torch", "pytorch") else []
        have |= {_name(r) for r in new}
        out += [f"{indent}{bullet}{r}{end}" for r in new]
        if _stays(package, imported):
            out.append(line)
        done.append(_said(package, new, _stays(package, imported)))
    return "".join(out), done


def _pyproject(text: str, imported: Collection[str], target: str) -> tuple[str, list[str]]:
    """Quoted requirements of arrays, and keys of a table of dependencies; the rest stays to the byte."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        return text, [f"left as it is: {e}"]
    have = {m[1].lower() for m in re.finditer(r"""["']([A-Za-z0-9._-]+)[^"'\n]*["']""", text)}
    done: list[str] = []

    def replaced(m: re.Match[str]) -> str:
        package = _goes(m[3], imported)
        if package is None:
            return m[0]
        new = [r for r in wanted(imported, target) if _name(r) not in have] if package == "torch" else []
        have.update(map(_name, new))
        kept = _stays(package, imported)
        done.append(_said(package, new, kept))
        items = [f"{m[2]}{r}{m[2]}" for r in new] + ([f"{m[2]}{m[3]}{m[2]}"] if kept else [])
        if not items:
            return "" if m[4] else m[1].rstrip(" ")
        separator = f",{m[1]}" if "\n" in m[1] else ", "
        return m[1] + separator.join(items) + m[4]

    result = []
    for table in re.split(r"(?m)^(?=\[)", text):
        if re.match(r"\[(project(\.optional-dependencies)?|dependency-groups|build-system|tool\.(hatch|uv|pdm)[^\]]*)\]", table):
            table = re.sub(r"""(?<=[\[,\n])(\s*)(["'])((?:py)?torch(?:vision|audio)?\b[^"'\n]*)\2(,?)""", replaced, table)
        elif re.match(r"\[tool\.poetry(\.group\.[^\]]*)?\.dependencies\]", table):
            table = _poetry(table, imported, target, done)
        result.append(table)
    return "".join(result), done


def _poetry(table: str, imported: Collection[str], target: str, done: list[str]) -> str:
    out = []
    for line in table.splitlines(keepends=True):
        package = _goes(line.partition("=")[0].strip(" \"'"), imported)
        if package is None:
            out.append(line)
            continue
        new = wanted(imported, target) if package == "torch" else []
        out += [f'{_name(r)} = "{r[len(_name(r)) :] or "*"}"\n' for r in new]
        if _stays(package, imported):
            out.append(line)
        done.append(_said(package, new, _stays(package, imported)))
    return "".join(out)


def _name(requirement: str) -> str:
    m = NAME.match(requirement)
    return m[1].lower() if m else requirement


def _said(package: str, new: list[str], kept: bool) -> str:
    parts = [f"{package} -> {', '.join(new)}" if new else f"{package} is no longer needed"] if not kept or new else []
    return "; ".join(parts + ([f"{package} is still imported"] if kept else []))
