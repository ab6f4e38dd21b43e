"""`migrate convert`."""

import io
import json
import os
import tempfile
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import migrate
from migrate.cli import files
from migrate.cli.config import Configured
from migrate.cli.failure import Failure
from migrate.cli.show import diagnostics, echo_diff
from migrate.report import machine, text
from migrate.settings import table_for
from migrate.source.text import SourceError

LARGE = 300_000  # bytes of source


@click.command("convert", cls=Configured, short_help="Convert PyTorch source into Flax or Keras source.")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder (or .py file) to write to.  [default: migrated]")
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where else local imports are found. Repeatable.",
)
@click.option("--diff", "as_diff", is_flag=True, help="Show a unified diff and write nothing.")
@click.option("--check", "then_check", is_flag=True, help="Run both sides and compare. This executes the code.")
@click.option("--model", help='With --check: what to build, e.g. "Net(num_classes=10)".')
@click.option("--input", "inputs", multiple=True, help='With --check: an argument of forward, e.g. "f32[2,3,32,32]". Repeatable.')
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="With --check: write a report, one HTML page.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--jobs", type=click.IntRange(1), help="Processes for a folder.  [default: one for each core, where it is large]")
@click.option("--stdin-filename", default="model.py", show_default=True, help="The name of what is read from `-`.")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True, help="How to report.")
@click.option("-v", "--verbose", is_flag=True, help="Report what went well too.")
def command(
    source: Path,
    output: Path | None,
    target: str,
    roots: tuple[Path, ...],
    as_diff: bool,
    then_check: bool,
    model: str | None,
    inputs: tuple[str, ...],
    html: Path | None,
    force: bool,
    jobs: int | None,
    stdin_filename: str,
    style: str,
    verbose: bool,
) -> int:
    """Converts SOURCE, a file with the local modules it imports, a folder, or `-` for standard input.

    The input is never changed, nothing is imported, and existing output is kept unless --force is given.
    """
    if as_diff and (style != "text" or then_check):
        raise click.UsageError("--diff writes nothing; it goes with neither --check nor --format")
    stdin = str(source) == "-"
    if stdin and then_check:
        raise click.UsageError("--check needs files; convert into a folder first")
    with tempfile.TemporaryDirectory(prefix="migrate-") as folder:
        staged = Path(folder)
        out = output or Path("migrated")
        converted, originals = (
            _from_stdin(staged, stdin_filename, target) if stdin else _from_path(source, staged, out, target, roots, jobs)
        )
        if not source.is_dir():
            _refuse_unreadable(converted)
        if as_diff:
            for path, conversion in converted.items():
                echo_diff(originals[path], conversion.code, path)
            diagnostics(converted, verbose, err=True)
            return _code(converted)
        written = [] if stdin and output is None else _deliver(staged, out, force)
    _tell(converted, written, style, verbose, to_stdout=stdin and output is None)
    code = _code(converted)
    if then_check:
        return max(code, _check(source, out, target, model, inputs, roots, html, quiet=style != "text"))
    return code


def _from_stdin(staged: Path, name: str, target: str) -> tuple[dict[str, Any], dict[str, str]]:
    data = files.read_bytes("-")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        original = data.decode(encoding)
        conversion = migrate.convert_source(original, target=target, filename=name, table=table_for(Path.cwd()))
    except (SyntaxError, UnicodeDecodeError, LookupError) as e:
        raise Failure(f"can't be decoded: {e}", name) from None
    except SourceError as e:
        raise Failure(str(e), name, e.line) from None
    (staged / Path(name).name).write_bytes(conversion.code.encode(encoding))
    for path, content in conversion.support.items():
        (staged / path).write_text(content, encoding="utf-8", newline="")
    return {name: conversion}, {name: original}


def _from_path(
    source: Path, staged: Path, out: Path, target: str, roots: tuple[Path, ...], jobs: int | None
) -> tuple[dict[str, Any], dict[str, str]]:
    if not source.exists():
        raise Failure("no such file or folder", source)
    if source.is_dir() and not any(source.rglob("*.py")):
        raise Failure("no Python file in this folder", source)
    folder = out.parent if out.suffix == ".py" else out
    for name in files.SUPPORT:  # a later run into the same folder writes the union of what is needed
        if (folder / name).is_file() and files.ours(folder / name):
            (staged / name).write_bytes((folder / name).read_bytes())
    try:
        project = migrate.convert_path(source, staged, target=target, roots=list(roots), jobs=jobs or _jobs(source))
    except SourceError as e:
        raise Failure(str(e), getattr(e, "filename", None) or source, e.line) from None
    converted = {files.relative(path): c for path, c in project.files.items()}
    originals = {files.relative(path): _read_text(path) for path in project.files}
    if out.suffix == ".py" and not source.is_dir():
        (staged / source.name).rename(staged / out.name)
    return converted, originals


def _jobs(source: Path) -> int:
    """One process for each core, where what there is to convert is worth their start."""
    size = sum(p.stat().st_size for p in source.rglob("*.py")) if source.is_dir() else 0
    return len(os.sched_getaffinity(0)) if size > LARGE else 1


def _read_text(path: Path) -> str:
    try:
        with tokenize.open(path) as f:
            return f.read()
    except (SyntaxError, UnicodeDecodeError, OSError):
        return ""


def _refuse_unreadable(converted: Mapping[str, Any]) -> None:
    for path, d in text.located(converted):
        if d.code == "MIG501":
            raise Failure(d.message, path, d.line)


def _deliver(staged: Path, out: Path, force: bool) -> list[str]:
    """Moves what was staged to its place; nothing is written where one file may not be."""
    folder = out.parent if out.suffix == ".py" else out
    if folder.exists() and not folder.is_dir():
        raise Failure("is not a folder", folder)
    moves = {p: folder / p.relative_to(staged) for p in sorted(staged.rglob("*")) if p.is_file()}
    files.refuse_existing(moves.values(), force)
    for staged_path, final in moves.items():
        files.write(final, staged_path.read_bytes())
    return [files.relative(p) for p in moves.values()]


def _tell(converted: Mapping[str, Any], written: list[str], style: str, verbose: bool, to_stdout: bool) -> None:
    if style == "json":
        click.echo(json.dumps(machine.as_json(converted, written), indent=2))
    elif style == "sarif":
        click.echo(json.dumps(machine.as_sarif(converted), indent=2))
    else:
        if to_stdout:
            (conversion,) = converted.values()
            click.echo(conversion.code, nl=False)
            if conversion.support:
                click.echo(f"migrate: the code imports {', '.join(conversion.support)}; -o FOLDER writes it", err=True)
        diagnostics(converted, verbose, err=to_stdout)
        if written:
            click.echo("wrote " + ", ".join(written), err=to_stdout)
        click.echo(text.summary(converted), err=to_stdout)


def _code(converted: Mapping[str, Any]) -> int:
    if any(d.code.startswith("MIG9") for _, d in text.located(converted)):
        return 123
    return 1 if text.counts(converted)["error"] else 0


def _check(
    source: Path,
    out: Path,
    target: str,
    model: str | None,
    inputs: tuple[str, ...],
    roots: tuple[Path, ...],
    html: Path | None,
    quiet: bool,
) -> int:
    from migrate.cli.check import run_checks

    if source.is_dir():
        raise click.UsageError("--check needs a file")
    converted = out if out.suffix == ".py" else out / source.name
    return run_checks(source, converted, target=target, model=model, inputs=inputs, roots=roots, html=html, err=quiet)
