"""`migrate review`."""

import sys
from pathlib import Path

import click

from migrate.cli import files
from migrate.cli.console import console
from migrate.cli.failure import Failure
from migrate.review import words
from migrate.review.compose import Unparsable
from migrate.review.decisions import Decisions
from migrate.review.project import Review, open_review
from migrate.review.store import Store, check_path, load_check
from migrate.source.text import SourceError


@click.command("review", short_help="Walk through a conversion piece by piece and decide.")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("migrated"), show_default=True, help="Folder to write to.")
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where else local imports are found. Repeatable.",
)
@click.option("--tui/--no-tui", default=None, help="Full screen, or prompts on standard input.  [default: full screen in a terminal]")
@click.option("--fresh", is_flag=True, help="Forget the progress of an earlier review.")
@click.option("--force", is_flag=True, help="Replace existing files that were changed since.")
@click.option(
    "--verdict",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What `migrate check --json` printed: its errors are shown.",
)
@click.option("--check", "then_check", is_flag=True, help="Run both sides and compare, once written. This executes the code.")
@click.option("--model", help='With --check: what to build, e.g. "Net(num_classes=10)".')
@click.option("--input", "inputs", multiple=True, help='With --check: an argument of forward, e.g. "f32[2,3,32,32]". Repeatable.')
def command(
    source: Path,
    output: Path,
    target: str,
    roots: tuple[Path, ...],
    tui: bool | None,
    fresh: bool,
    force: bool,
    verdict: Path | None,
    then_check: bool,
    model: str | None,
    inputs: tuple[str, ...],
) -> int:
    """Shows what a conversion of SOURCE (a file or a folder) changes, piece by piece, and writes what you accept.

    Every decision is saved at once; quit whenever you like and run the same command to go on. SOURCE is never changed. Exit code 0 where
    all is accepted and nothing is left, 1 where something stays PyTorch or is not decided yet.
    """
    if then_check and source.is_dir():
        raise click.UsageError("--check needs a file")
    review, store = _opened(source, output, target, roots, fresh, force)
    known = load_check(verdict or check_path(output / source.name))
    screen = sys.stdin.isatty() and sys.stdout.isatty() if tui is None else tui
    wants = _full_screen(review, target, known) if screen else _prompts(review, target, known)
    if not wants:
        click.echo(f"{words.counted(review.session.progress())}. Nothing written; the same command goes on from here.")
        return 1
    _write(review, store, output)
    code = _code(review)
    if then_check:
        from migrate.cli.check import run_check

        return max(code, run_check(source, output / source.name, target=target, model=model, inputs=inputs, roots=roots))
    return code


def _opened(source: Path, out: Path, target: str, roots: tuple[Path, ...], fresh: bool, force: bool) -> tuple[Review, Store]:
    if not source.exists():
        raise Failure("no such file or folder", source)
    if out.suffix == ".py" or (out.exists() and not out.is_dir()):
        raise Failure("is not a folder; a review writes to one", out)
    try:
        with console(stderr=True).status("converting"):
            review = open_review(source, target, roots)
    except SourceError as e:
        raise Failure(str(e), getattr(e, "filename", None) or source, e.line) from None
    unreadable = [d for d in review.loose if d.code == "MIG501"]
    if unreadable and not source.is_dir():
        raise Failure(unreadable[0].message, source, unreadable[0].line)
    store = Store(out, source.stem if source.is_file() else source.resolve().name, target)
    keys = [p.key for p in review.session.pieces]
    decisions, changed = store.load(keys, review.fingerprint)
    if fresh:
        decisions, changed = Decisions(), False
    files.refuse_existing(_others(review, store, out), force)
    review.session.decisions = decisions
    review.session.save = lambda: store.save(decisions)
    if decisions.made:
        note = "; the source has changed since, and its new pieces are open" if changed else ""
        click.echo(f"resumed: {words.counted(review.session.progress())}{note}", err=True)
    return review, store


def _others(review: Review, store: Store, out: Path) -> list[Path]:
    """The files in the way that neither a conversion, nor a review, nor a plain copy of the source wrote."""
    sources = {p.resolve(): p.read_bytes() for p in review.planned.files}
    copies = set(sources.values())
    found = []
    for path, data in review.converted(out).items():
        if path.resolve() in sources:
            raise Failure("is the source itself; -o names another folder", path)
        if path.exists() and not (files.ours(path) or store.may_replace(path, data) or path.read_bytes() in copies):
            found.append(path)
    return found


def _full_screen(review: Review, target: str, verdict: dict[str, object]) -> bool:
    from migrate.tui.app import run

    return run(review, target, verdict)


def _prompts(review: Review, target: str, verdict: dict[str, object]) -> bool:
    from migrate.cli.prompts import Prompts

    return Prompts(review, target, verdict).run()


def _write(review: Review, store: Store, out: Path) -> None:
    try:
        made = review.outputs(out)
    except Unparsable as e:
        raise Failure(f"a bug in migrate: the result would not be valid Python: {e}", exit_code=123) from None
    for path, data in made.items():
        files.write(path, data)
    review.planned.copied(out)
    store.note_written(made)
    store.save(review.session.decisions)
    click.echo(words.counted(review.session.progress()))
    click.echo("wrote " + (", ".join(files.relative(p) for p in made) if len(made) < 6 else f"{len(made)} files to {files.relative(out)}"))


def _code(review: Review) -> int:
    session = review.session
    left = any(d.severity == "error" for f in session.files for d in f.conversion.diagnostics)
    progress = session.progress()
    return 1 if left or progress.rejected or progress.open else 0
