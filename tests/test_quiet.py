"""Functions that surely write to nothing are not walked: whatever may write must not count as one."""

import ast

import pytest

import migrate
from migrate.infer.engine import Inference
from migrate.infer.quiet import Quiet
from migrate.infer.writes import Walker, Writes
from migrate.source.modules import Unit
from migrate.source.text import read
from migrate.tables import standard

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.init import zeros_ as clear

def fill(x: torch.Tensor):
    x[0] = 1
    return x

def through(x: torch.Tensor):
    return fill(x)

def plain(x: torch.Tensor):
    return torch.relu(x) + 1

def around(x: torch.Tensor, n: int):
    return around(plain(x), n - 1) if n else x

class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.calm = nn.ReLU()

    def forward(self, x: torch.Tensor):
        return self.act(x)

    def other(self, x: torch.Tensor):
        return self.calm(x)

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Writer()

"""
WRITES = (
    "x.add_(1)", "x += 1", "x[0] = 1", "x[..., 0] *= 2", "x.data = y", "F.relu(x, True)", "F.relu(x, inplace=True)", "F.relu_(x)", "clear(x)", "fill(x)",
    "through(x)", "Writer()(x)", "y = [fill(v) for v in x]", "for x[0] in y: pass", "nn.ReLU(inplace=True)(x)", "x.T.zero_()",
)
QUIET = ("y = plain(x)", "y = F.relu(x)", "n = 1\n    n += 2", "held = {}\n    held['a'] = x", "y = nn.ReLU()(x)", "super().__init__()", "z = x.view(-1)[0]")


def made(body: str) -> tuple[Quiet, Unit]:
    """What tells of the functions of a file."""
    unit = Unit(standard())
    unit.add(read(f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    {body}\n", "a.py"), "")
    unit.link()
    inf = Inference(unit)
    inf.run()
    return Quiet(Writes(unit, inf)), unit


def asked(quiet: Quiet, unit: Unit, name: str) -> bool:
    """Whether a function writes to nothing."""
    f = next(f for f in unit.files[""].functions if f.name == name)
    return quiet.holds(f.file, f.node)


def walked(body: str) -> tuple[bool, bool]:
    """Whether `f` is taken for quiet, and whether a walk finds that it writes."""
    quiet, unit = made(body)
    f = next(f for f in unit.files[""].functions if f.name == "f")
    walker = Walker(quiet.writes, f.file, f.node)
    walker.run()
    return asked(quiet, unit, "f"), bool(walker.events)


@pytest.mark.parametrize("body", WRITES)
def test_what_writes_is_not_quiet(body: str) -> None:
    """Each of these is noted by a walk, and may not be skipped."""
    quiet, writes = walked(body)
    assert writes and not quiet


@pytest.mark.parametrize("body", QUIET)
def test_what_writes_nothing_is_quiet(body: str) -> None:
    """Each of these is skipped, and a walk finds nothing."""
    quiet, writes = walked(body)
    assert quiet and not writes


def test_methods_and_recursion() -> None:
    """A module that works in place is told from one that does not; a function that calls itself is walked."""
    quiet, unit = made("pass")
    names = ("plain", "fill", "through", "around", "forward", "other")
    assert [asked(quiet, unit, n) for n in names] == [True, False, False, False, False, True]


def test_no_walk_is_missed() -> None:
    """Every function of a file with writes: where a walk notes one, it is not skipped."""
    quiet, unit = made("return Outer()(fill(x)) + through(y)")
    for f in unit.files[""].functions:
        walker = Walker(Writes(unit, quiet.writes.inf), f.file, f.node)
        walker.run()
        assert not walker.events or not quiet.holds(f.file, f.node), f.name
    assert "fill" in migrate.convert_source(ast.unparse(unit.files[""].source.tree)).code
