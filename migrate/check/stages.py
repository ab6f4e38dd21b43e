"""How a stage ends early."""


from collections.abc import Sequence
from traceback import FrameSummary


class StageError(Exception):
    """A stage found a difference; `frames` are those of the exception that shows it, where there is one."""

    def __init__(self, message: str, frames: Sequence[FrameSummary] = ()) -> None:
        super().__init__(message)
        self.frames = frames


class Skipped(Exception):
    """A stage can't be done here; not a failure."""
