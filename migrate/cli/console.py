"""The terminal: one console for output, colours only where a person looks (NO_COLOR and a pipe switch them off, FORCE_COLOR on)."""

import sys

from rich.console import Console


def console(stderr: bool = False) -> Console:
    """A console. In a pipe lines are not cut at 80 columns."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty(), width=None if stream.isatty() else 160)
