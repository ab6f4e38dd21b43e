"""The `migrate` command. Commands are imported when they are called, so that `migrate --help` is quick.

Exit codes: 0 everything done (and equal, if asked), 1 something left or different, 2 usage or input, 123 a bug of ours.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from migrate.cli.failure import Failure
from migrate.tables import TableError

# name -> what `migrate --help` says; the module of the same name in this folder has the command
COMMANDS = {
    "convert": "Convert PyTorch source into Flax or Keras source.",
    "review": "Walk through a conversion piece by piece and decide.",
    "port": "Convert a whole project, with a report.",
    "lint": "Say what would be left or differ, and write nothing.",
    "assess": "Say what a migration of a project would take.",
    "check": "Run the original and the converted model side by side.",
    "tpu": "Compile a converted model for TPUs, without one.",
    "weights": "Turn a PyTorch checkpoint into weights of the converted model.",
    "oracle": "Record what the original computes, for a check elsewhere.",
    "ops": "Show what a PyTorch operator or layer becomes.",
    "draft": "Print a row to fill in, for an operator that is missing.",
    "explain": "Explain a diagnostic code.",
}


class Lazy(click.Group):
    """A group whose commands are modules, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"migrate.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"migrate {version('migrate')}")
        ctx.exit()


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit.")
def cli() -> None:
    """Converts PyTorch models into Flax NNX or Keras source, and shows that the numbers agree."""


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command line and exits."""
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. An exception that nobody expected is a bug of ours, told in one line."""
    try:
        result = cli.main(args=None if args is None else list(args), prog_name="migrate", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message())
        return 2
    except Failure as e:
        click.echo(f"migrate: {e}", err=True)
        return e.code
    except TableError as e:
        click.echo(f"migrate: {e}", err=True)
        return 2
    except click.ClickException as e:
        e.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("migrate: stopped", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone; nothing is left to say
        return 0
    except Exception as e:
        if os.environ.get("MIGRATE_TRACEBACK"):
            traceback.print_exc()
        click.echo(f"migrate: a bug in migrate: {type(e).__name__}: {e}\nPlease report it; MIGRATE_TRACEBACK=1 shows where.", err=True)
        return 123
