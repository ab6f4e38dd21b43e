"""`[tool.migrate.check]` of a project: what to build and what to run it on, so that nobody has to say it each time.

    [tool.migrate.check.Net]            # a class, or a file: [tool.migrate.check."models/net.py"]
    model = "Net(num_classes=10)"
    input = ["f32[2,3,32,32]"]
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A table that can't be read."""


@dataclass(frozen=True)
class Setting:
    """One entry: the expression that builds the model (None where it does not say), and the inputs."""

    key: str
    model: str | None
    inputs: tuple[str, ...]


def settings_of(path: Path) -> list[Setting]:
    """The entries for a file: those under its path, else those under names of classes that it defines. Raises SettingsError."""
    for folder in path.resolve().parents:
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("migrate", {}).get("check", {})
        except (tomllib.TOMLDecodeError, OSError) as e:
            raise SettingsError(f"{file}: {e}") from None
        entries = {key: _setting(file, key, value) for key, value in table.items()}
        here = str(path.resolve().relative_to(folder))
        if here in entries:
            return [entries[here]]
        text = path.read_text(encoding="utf-8", errors="replace")
        return [entry for key, entry in entries.items() if f"class {key}(" in text]
    return []


def _setting(file: Path, key: str, value: Any) -> Setting:
    inputs = value.get("input", []) if isinstance(value, dict) else None
    inputs = [inputs] if isinstance(inputs, str) else inputs
    if inputs is None or set(value) - {"model", "input"} or not all(isinstance(i, str) for i in inputs):
        raise SettingsError(f"{file}: [tool.migrate.check.{key}] has `model` (a string) and `input` (a list of strings), nothing else")
    return Setting(key, value.get("model"), tuple(inputs))
