"""Reads the text of a compiled TPU program: what each instruction costs, where in Python it comes from, how its result lies in memory."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BITS = {"pred": 8, "s4": 4, "u4": 4, "bf16": 16, "f16": 16}
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\(")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)(?::([^{}]*))?\})?")
_TILE = re.compile(r"^T((?:\([\d,]+\))+)")
MOVES = ("copy", "copy-start", "copy-done", "transpose", "reshape", "bitcast-convert")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


@dataclass(frozen=True)
class Array:
    """A value in memory; `tile` is () where the layout has none."""

    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...] = ()  # minor to major
    tile: tuple[int, ...] = ()

    @property
    def item(self) -> float:
        """Bytes of one element."""
        digits = re.sub(r"\D", "", self.dtype.partition("e")[0])
        return BITS.get(self.dtype, int(digits) if digits else 32) / 8

    @property
    def size(self) -> float:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.item

    @property
    def padded(self) -> float:
        """Bytes that it takes in memory: the minor dimensions are rounded up to whole tiles."""
        order = self.order or tuple(reversed(range(len(self.shape))))
        sizes = [self.shape[d] for d in order] + [1] * (len(self.tile) - len(self.shape))  # minor first
        for i, t in enumerate(reversed(self.tile)):
            sizes[i] = -(-sizes[i] // t) * t
        return math.prod(sizes) * self.item


@dataclass(frozen=True)
class Instruction:
    """One instruction: `cycles` is the compiler's estimate (0 where it gives none), `place` the innermost line of the user's."""

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    cycles: int
    operator: str
    place: tuple[str, int]
    calls: tuple[str, ...] = ()  # computations that it runs as such, not fused
    trips: int = 1


@dataclass
class Program:
    """The instructions of each computation; `entry` is the name of the first."""

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""

    def executed(self, name: str = "", times: int = 1) -> Iterator[tuple[Instruction, int]]:
        """Each instruction that runs on its own, and how often; a loop whose length is not known counts once."""
        for i in self.computations.get(name or self.entry, ()):
            yield i, times
            for inner in i.calls:
                yield from self.executed(inner, times * i.trips)


def parse(text: str, folders: tuple[str, ...]) -> Program:
    """Reads a module's text. Places are those within `folders`."""
    places = _places(text, folders)
    program = Program()
    current: list[Instruction] = []
    for line in text.splitlines():
        if m := _HEAD.match(line):
            current = program.computations.setdefault(m[2], [])
            program.entry = m[2] if m[1] else program.entry
        elif m := _LINE.match(line):
            current.append(_instruction(m[1], m[2], m[3], line, places))
    return program


def _instruction(name: str, kind: str, opcode: str, line: str, places: dict[int, tuple[str, int]]) -> Instruction:
    def number(pattern: str, default: int) -> int:
        found = re.search(pattern, line)
        return int(found[1]) if found else default

    operator = re.search(r'op_name="([^"]*)"', line)
    calls: tuple[str, ...] = ()
    if opcode in ("while", "conditional", "call"):
        calls = tuple(re.findall(r"(?:body|to_apply|true_computation|false_computation)=%?([\w.\-]+)", line))
        if branches := re.search(r"branch_computations=\{([^}]*)\}", line):
            calls = tuple(b.strip().lstrip("%") for b in branches[1].split(","))
    return Instruction(
        name,
        opcode,
        tuple(arrays(kind)),
        max(0, number(r'"estimated_cycles":"(-?\d+)"', 0)),
        operator[1] if operator else "",
        places.get(number(r"stack_frame_id=(\d+)", 0), ("", 0)),
        calls,
        number(r'known_trip_count":\{"n":"(\d+)"', 1) if opcode == "while" else 1,
    )


def arrays(text: str) -> Iterator[Array]:
    """The arrays of a type, such as `(f32[2,3]{1,0:T(8,128)}, u32[])`."""
    for dtype, shape, order, layout in _ARRAY.findall(text):
        tile = _TILE.match(layout or "")
        first = tile[1].partition(")")[0].lstrip("(") if tile else ""
        yield Array(dtype, _numbers(shape), _numbers(order), _numbers(first))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def _places(text: str, folders: tuple[str, ...]) -> dict[int, tuple[str, int]]:
    """For each stack frame the innermost line of a file within `folders`; one of the support module only where there is no other."""
    files = {int(n): name for n, name in re.findall(r'^(\d+) "(.*)"$', _table(text, "FileNames"), re.M)}
    pattern = r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)"
    lines = {int(n): (files.get(int(f), ""), int(at)) for n, f, at in re.findall(pattern, _table(text, "FileLocations"), re.M)}
    pattern = r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?\}"
    frames = {int(n): (int(at), int(parent or 0)) for n, at, parent in re.findall(pattern, _table(text, "StackFrames"), re.M)}
    shift = 1 if frames.get(1, (0, 0))[1] == 1 else 0  # a frame's parent is written as its number plus one
    found = {}
    for frame in frames:
        stack = [lines.get(at, ("", 0)) for at in _stack(frames, frame, shift)]
        inside = [place for place in stack if place[0].startswith(folders) and "site-packages" not in place[0]]
        own = [place for place in inside if not place[0].rpartition("/")[2].startswith("torch_support")]
        if inside:
            found[frame] = (own or inside)[0]
    return found


def _stack(frames: dict[int, tuple[int, int]], frame: int, shift: int) -> Iterator[int]:
    """The locations of a frame and those that called it, innermost first."""
    seen: set[int] = set()
    while frame in frames and frame not in seen:
        seen.add(frame)
        yield frames[frame][0]
        frame = frames[frame][1] - shift


def _table(text: str, name: str) -> str:
    return text.partition(f"\n{name}\n")[2].partition("\n\n")[0]
