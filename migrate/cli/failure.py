"""What stops a command: one message, no traceback."""

from pathlib import Path

import click


class Failure(click.ClickException):
    """A command can't go on: input or usage. The message starts with the file and line where there is one."""

    def __init__(self, message: str, path: Path | str | None = None, line: int = 0, exit_code: int = 2) -> None:
        where = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(where + message)
        self.code = exit_code
