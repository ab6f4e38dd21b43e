"""Libraries whose bases are replaced, not converted: where their own code ends, and what its names mean.

`mappings/libraries/*.toml` says for a library which modules are converted like local ones (`converted`); all else of it is outside the
boundary. A name outside is known by the library and its last part, however it was imported: `transformers.utils.generic.can_return_tuple` is
`transformers.can_return_tuple`.
"""
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from migrate.tables import FOLDER, TableError


@dataclass(frozen=True)
class Library:
    """A library: the modules that are converted (with all below them), and those names and modules among them that are not."""

    name: str
    converted: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # definitions that are converted out of modules that else are not
    skipped: tuple[str, ...] = ()  # how the names of files start that nothing imports
    auto: Mapping[str, str] = field(default_factory=dict)  # what makes the model of any configuration, with the end of the model's name

    def converts(self, dotted: str) -> bool:
        """Whether a module, or a name in one, is converted along."""
        if dotted in self.names or any(n.rpartition(".")[0] == dotted for n in self.names):
            return True
        return _within(dotted, self.converted) and not _within(dotted, self.without)


@dataclass(frozen=True)
class Boundary:
    """All libraries. `aliases`: names that are PyTorch's own under another name; `noise`: what changes no value."""

    libraries: Mapping[str, Library] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    noise: frozenset[str] = frozenset()
    answers: Mapping[str, bool] = field(default_factory=dict)  # of questions such as whether a kernel or a compiler is there

    def of(self, dotted: str) -> Library | None:
        """The library that a dotted name belongs to."""
        return self.libraries.get(dotted.partition(".")[0])

    def outside(self, dotted: str) -> bool:
        """Whether a module or name belongs to a library and is not converted."""
        library = self.of(dotted)
        return library is not None and not library.converts(dotted)

    def converted(self, dotted: str) -> bool:
        """Whether a module belongs to a library and is converted."""
        library = self.of(dotted)
        return library is not None and library.converts(dotted)

    def short(self, dotted: str) -> str:
        """What a name is called in the tables."""
        if self.of(dotted) is None or not self.outside(dotted) or dotted.count(".") == 0:
            return dotted
        short = f"{dotted.partition('.')[0]}.{dotted.rpartition('.')[2]}"
        return self.aliases.get(short, short)

    def place(self, module: str, target: str) -> str:
        """The name of a converted module in the output: the library's own name stays free for the library."""
        if not self.converted(module):
            return module
        top, dot, rest = module.partition(".")
        return f"{top}_{target}{dot}{rest}"


def _within(dotted: str, prefixes: tuple[str, ...]) -> bool:
    return any(dotted == p or dotted.startswith(p + ".") for p in prefixes)


@cache
def standard() -> Boundary:
    """The libraries that the project knows."""
    libraries: dict[str, Library] = {}
    aliases: dict[str, str] = {}
    noise: set[str] = set()
    answers: dict[str, bool] = {}
    for path in sorted((FOLDER / "libraries").glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for raw in data.get("library", ()):
            library = _library(raw, path.name)
            libraries[library.name] = library
        aliases |= data.get("alias", {})
        noise |= set(data.get("noise", {}).get("names", ()))
        answers |= {name: key == "true" for key in ("true", "false") for name in data.get("noise", {}).get(key, ())}
    return Boundary(libraries, aliases, frozenset(noise), answers)


def _library(raw: Mapping[str, Any], file: str) -> Library:
    if unknown := set(raw) - {"name", "converted", "without", "names", "skipped", "auto"}:
        raise TableError(f"{file}: unknown keys of a library: {', '.join(sorted(unknown))}")
    name = raw["name"]
    converted, without, names = (tuple(f"{name}.{m}" for m in raw.get(key, ())) for key in ("converted", "without", "names"))
    return Library(name, converted, without, names, tuple(raw.get("skipped", ())), raw.get("auto", {}))
