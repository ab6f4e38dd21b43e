"""How a stage ends early."""


class StageError(Exception):
    """A stage found a difference."""


class Skipped(Exception):
    """A stage can't be done here; not a failure."""
