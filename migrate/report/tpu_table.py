"""What the TPU compiler said, for a terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from migrate.tpu.run import TpuReport

GIB = 1 << 30
LOOKS = {"compiles": "[green]compiles[/]"}


def print_report(console: Console, report: TpuReport) -> None:
    """All of it: the generations, the lines that cost most, advice."""
    console.print(table(report))
    if any(row["status"] == "compiles" for row in report.rows):
        console.print(
            "[dim]for each device. time: the compiler's estimate; least: what the operations or the bytes take at the chip's peak, "
            "whichever is more.[/]"
        )
    for row in report.rows:
        if row["message"]:
            where = f" ({_short(row['file'], row['line'])})" if row.get("file") else ""
            console.print(f"[red]{row['topology']}:[/] {escape(row['message'])}{where}")
    first = report.rows[0]
    if first.get("operations"):
        console.print(f"most expensive on {first['topology']}, by the compiler's estimate of cycles:")
        for line in expensive(first):
            console.print(f"  {escape(line)}")
    for text in report.advice:
        console.print(f"[yellow]advice:[/] {escape(text)}")


def table(report: TpuReport) -> Table:
    """One row a topology."""
    found = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("topology", "devices", "", "GFLOP", "GB moved", "time", "least", "memory", "of GiB", "padding", "collectives"):
        found.add_column(name, justify="left" if name in ("topology", "", "collectives") else "right", no_wrap=True)
    for row in report.rows:
        found.add_row(*(cells(row)))
    return found


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one row."""
    status = LOOKS.get(row["status"], f"[red]{row['status']}[/]")
    needed = f"{row['needed'] / GIB:.2f}" if row.get("needed") else ""
    head = (row["topology"], str(row["devices"]), status)
    if row["status"] != "compiles":
        return (*head, "", "", "", "", needed, f"{row['available'] / GIB:.2f}", "", "")
    padding = f"{1 - row['real'] / row['padded']:.0%}" if row["padded"] else ""
    collectives = ", ".join(f"{n} {name}" for name, n in sorted(row["collectives"].items()))
    return (
        *head,
        f"{row['flops'] / 1e9:.2f}",
        f"{row['bytes'] / 1e9:.3f}",
        duration(row["seconds"]) if row["seconds"] else "unknown",
        duration(row["least"]),
        needed,
        f"{row['available'] / GIB:.2f}",
        padding,
        collectives,
    )


def expensive(row: dict[str, Any]) -> Iterator[str]:
    """The lines that cost most."""
    import linecache

    for o in row["operations"]:
        where = _short(o["file"], o["line"]) if o["file"] else "(not in your files)"
        source = linecache.getline(o["file"], o["line"]).strip() if o["file"] else ""
        yield f"{o['share']:5.1%}  {where}  {o['operator']}  {source}".rstrip()


def duration(seconds: float) -> str:
    """A time that a person can read."""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _short(file: str, line: int) -> str:
    path = Path(file)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{line}"
