"""A verdict for a terminal: stages, the table of submodules with their errors, the first place that differs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from migrate.check.compare import FACTOR
from migrate.check.verdict import Drift, Place, Submodule, Verdict

MARKS = {"passed": "[green]passed[/]", "failed": "[red]failed[/]", "skipped": "[yellow]skipped[/]"}
LOOKS = {"same": "[green]same[/]", "differs": "[red]differs[/]", "not separate": "[dim]not separate[/]"}


def print_verdict(console: Console, verdict: Verdict, every: bool = False) -> None:
    """Prints all of it. Long models are shortened to what matters, unless `every`."""
    if verdict.submodules:
        console.print(submodule_table(verdict.submodules, every))
        console.print(
            f"[dim]units: PyTorch's own float32 error against float64; up to {FACTOR:g} pass. alone: on inputs times 0.01 and 8.[/]"
        )
    if verdict.drift:
        console.print(drift_table(verdict.drift, every))
        console.print("[dim]TPU drift: bfloat16 operands in products, a TPU's default, against float32; relative to the results' size.[/]")
    console.print(stage_table(verdict))
    for note in verdict.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    if verdict.unseen:
        console.print(f"[yellow]note:[/] no effect on the outputs, so a wrong value would not show: {escape(_some(verdict.unseen))}")
    for line in conclusion(verdict):
        console.print(line)


def submodule_table(rows: tuple[Submodule, ...], every: bool = False) -> Table:
    """One row a submodule, in the order in which they finish."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, justify in (
        ("submodule", "left"),
        ("class", "left"),
        ("calls", "right"),
        ("max error", "right"),
        ("units", "right"),
        ("alone", "right"),
        ("verdict", "left"),
    ):
        table.add_column(name, justify=justify, no_wrap=name != "class")  # type: ignore[arg-type]
    shown = list(rows) if every else list(_shortened(rows))
    for row in shown:
        if row is None:
            table.add_row("[dim]...[/]", "", "", "", "", "", "")
            continue
        compared = row.verdict != "not separate"
        cls = row.cls if row.converted in ("", row.cls) else f"{row.cls} -> {row.converted}"
        table.add_row(
            escape(row.name) or "[italic](the model)[/]",
            escape(cls),
            str(row.calls),
            f"{row.error:.1e}" if compared else "",
            f"{row.units:.2f}" if compared else "",
            "" if row.probe is None else f"{row.probe:.2f}",
            LOOKS[row.verdict],
        )
    return table


def drift_table(rows: tuple[Drift, ...], every: bool = False, most: int = 20) -> Table:
    """The submodules whose results change most, in the order of the model."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("submodule", "TPU drift", "largest"):
        table.add_column(name, justify="left" if name == "submodule" else "right")
    worst = {id(d) for d in sorted(rows, key=lambda d: -d.typical)[: most if not every else len(rows)]}
    for d in rows:
        if id(d) in worst or not d.name:
            table.add_row(escape(d.name) or "[italic](the model)[/]", f"{d.typical:.2%}", f"{d.largest:.2%}")
    return table


def _shortened(rows: tuple[Submodule, ...], most: int = 60) -> Iterator[Submodule | None]:
    """All rows of a small model; of a large one the two ends, what differs, and the largest errors."""
    if len(rows) <= most:
        yield from rows
        return
    worst = {id(r) for r in sorted(rows, key=lambda r: max(r.units, r.probe or 0.0), reverse=True)[: most // 4]}
    gap = False
    for i, row in enumerate(rows):
        if i < most // 4 or i >= len(rows) - most // 4 or row.verdict == "differs" or id(row) in worst:
            gap = False
            yield row
        elif not gap:
            gap = True
            yield None


def stage_table(verdict: Verdict) -> Table:
    """One row a stage."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("stage", "", "seconds", ""):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    for s in verdict.stages:
        table.add_row(s.name, MARKS[s.status], f"{s.seconds:.1f}", escape(s.message))
    return table


def conclusion(verdict: Verdict) -> Iterator[str]:
    """The last lines: what differs first and where, and the verdict."""
    failed = next((s for s in verdict.stages if s.status == "failed"), None)
    if verdict.first is not None:
        yield f"[red]first difference:[/] {escape(verdict.first.message)}"
        for side, place in (("original", verdict.first.original), ("converted", verdict.first.converted)):
            if place.file:
                yield f"  {side}: {_short(place)}"
    if failed is not None and failed.place.file:
        yield f"  at {_short(failed.place)}: {escape(failed.place.source)}"
    word = "[bold green]equal[/]" if verdict.ok else "[bold red]different[/]"
    reached = f"reached: {verdict.reached}" if verdict.reached else "no stage passed"
    yield f"{word}: {escape(verdict.message)}  ({verdict.compared} tensors compared; {reached}; {verdict.seconds:.0f} s)"


def _short(place: Place) -> str:
    path = Path(place.file)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return escape(f"{path}:{place.line}" if place.line else str(path))


def _some(names: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """For `--json`."""
    return verdict.to_json()
