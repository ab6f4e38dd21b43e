"""Printing of diagnostics and diffs."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from migrate.report import text


def coloured(err: bool = False) -> bool:
    """Whether the stream is a terminal that wants colours."""
    return (sys.stderr if err else sys.stdout).isatty() and not os.environ.get("NO_COLOR")


def echo(line: str, colour: str | None = None, err: bool = False) -> None:
    """Prints a line, in a colour where a person looks."""
    click.echo(click.style(line, fg=colour) if colour and coloured(err) else line, err=err)


def diagnostics(converted: Mapping[str, Any], verbose: bool, err: bool = False) -> None:
    """Prints warnings and errors; all of them when `verbose`."""
    for path, d in text.located(converted):
        if verbose or d.severity != "info":
            echo(text.line(path, d), text.COLOURS[d.severity], err)


def echo_diff(before: str, after: str, name: str) -> None:
    """Prints a unified diff."""
    for line in text.diff(before, after, name, name):
        echo(line, text.diff_colour(line))
