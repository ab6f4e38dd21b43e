"""Examples of the rules: each rule file ends with some. The tests convert them all, the docs print them."""
from dataclasses import dataclass

HEADER = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom functools import partial\nfrom typing import Optional\n\n\n"


@dataclass(frozen=True)
class Example:
    """A module body of PyTorch code; HEADER goes before it.

    `flax`, `keras`, or `jax` for both: text that must stand in the converted code. Where none is given and nothing is refused, the source itself must.
    `refused`: the code of the diagnostic that must be reported at the source; `reported`: one that is no refusal. `why` says what the example shows.
    """

    source: str
    flax: str = ""
    keras: str = ""
    refused: str = ""
    why: str = ""
    jax: str = ""
    reported: str = ""

    @property
    def text(self) -> str:
        """The whole file."""
        return HEADER + self.source

    @property
    def unchanged(self) -> bool:
        """Whether the source must come out as it is."""
        return not (self.flax or self.keras or self.jax or self.refused)

    def expected(self, target: str) -> str:
        """The text that must stand in the code for a target, "" where nothing is said of it."""
        return self.source if self.unchanged else {"flax": self.flax, "keras": self.keras}[target] or self.jax
