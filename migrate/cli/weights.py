"""`migrate weights`."""

import os
import tempfile
from pathlib import Path

import click

from migrate.check.child import ChildError, Limits, run
from migrate.cli import files
from migrate.cli.failure import Failure


@click.command("weights", short_help="Turn a PyTorch checkpoint into weights of the converted model.")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option(
    "--model",
    required=True,
    metavar="FILE:EXPRESSION",
    help='The converted file and what to build, e.g. out/model.py:"Net(num_classes=10)".',
)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write: .safetensors, or .weights.h5 for Keras."
)
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option("--key", default="", help="Which entry of the checkpoint holds the state dict, e.g. ema.model.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where else imports are found. Repeatable.",
)
@click.option("--partial", is_flag=True, help="Write even where tensors are missing or left over.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--timeout", type=float, default=Limits.seconds, show_default=True, help="Seconds.")
def command(
    checkpoint: Path,
    model: str,
    output: Path,
    target: str,
    key: str,
    roots: tuple[Path, ...],
    partial: bool,
    force: bool,
    timeout: float,
) -> int:
    """Loads CHECKPOINT (.pt, .pth, .bin, .safetensors or an index of shards) into the converted model and saves what the model then holds.

    Every tensor is accounted for: what is missing or left over is listed, and then nothing is written without --partial.
    """
    file, _, expression = model.partition(":")
    if not expression:
        raise click.UsageError('--model is FILE:EXPRESSION, e.g. out/model.py:"Net()"')
    for path in (checkpoint, Path(file)):
        if not path.is_file():
            raise Failure("no such file", path)
    if output.name.endswith(".weights.h5") and target != "keras":
        raise click.UsageError(".weights.h5 is a format of Keras; give --target keras, or write .safetensors")
    files.refuse_existing([output], force)
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="migrate-") as out,
        tempfile.TemporaryDirectory(prefix=".migrate-", dir=output.parent) as beside,
    ):
        staged = Path(beside, output.name)
        job = {
            "checkpoint": str(checkpoint.resolve()),
            "converted": str(Path(file).resolve()),
            "model": expression,
            "target": target,
            "key": key,
            "file": str(staged.resolve()),
            "roots": [str(r) for r in roots],
            "partial": partial,
            "out": out,
        }
        try:
            outcome = run(
                "migrate.check.weights_side",
                job,
                Limits(timeout),
                {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"), "KERAS_BACKEND": "jax"},
            )
        except ChildError as e:
            raise Failure(f"building the model {e}", exit_code=1) from None
        if not outcome["ok"]:
            raise Failure(outcome["message"], outcome["file"] or None, outcome["line"])
        written = staged.exists()
        if written:
            os.replace(staged, output)
    for word in ("missing", "unexpected"):
        for name in outcome[word]:
            click.echo(f"{word}: {name}", err=True)
    inside = f" (in `{outcome['place']}`)" if outcome["place"] else ""
    total = f"{len(outcome['loaded'])} tensors loaded{inside}, {len(outcome['missing'])} missing, {len(outcome['unexpected'])} unexpected"
    click.echo(f"wrote {output}: {total}" if written else f"{total}; nothing written (--partial writes all the same)", err=not written)
    return 0 if written and not outcome["missing"] and not outcome["unexpected"] else 1
