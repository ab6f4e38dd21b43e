"""Questions and help over the review."""

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from migrate.review.filters import Filter

KEYS = (
    ("y", "accept"),
    ("n", "reject: the original lines stay, marked `# migrate: keep`"),
    ("e", "edit the new lines in $EDITOR"),
    ("u", "undo the last command, as often as you like"),
    ("t  T", "accept (reject) all open pieces of this kind"),
    ("g", "accept every open piece that needs no attention"),
    ("F  A", "accept all that is open in this file (everywhere)"),
    ("", ""),
    ("↑ ↓  k j", "move; a click works too"),
    ("s", "next open piece"),
    ("x", "next one that needs attention: a warning or an error"),
    ("f", "filter: warnings, errors, a rule, a file, a kind"),
    ("", ""),
    ("v", "side by side, or one below the other"),
    ("l", "show or hide the list"),
    ("r", "all rows of the tables behind the piece"),
    ("w", "write what is accepted, and leave; what is open stays as it was"),
    ("q", "leave; your progress is saved, the same command goes on from here"),
)
ABOUT = (
    "Pieces that belong together move together: a parameter and the calls that pass it, a variable and the lines that read it, "
    "the frame of a class. Imports follow by themselves. The result always parses. Every decision is saved at once."
)


class Dialog(ModalScreen[str]):
    """Closed by Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "close")]


class Help(Dialog):
    """All keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,q,enter", "dismiss('')", "close")]

    def compose(self) -> ComposeResult:
        """The table of keys."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold cyan", justify="right", no_wrap=True)
        grid.add_column()
        for key, what in KEYS:
            grid.add_row(key, what)
        with Vertical(), VerticalScroll():
            yield Static(Text("Keys\n", "bold"))
            yield Static(grid)
            yield Static(Text("\n" + ABOUT, "dim"))

    def on_mount(self) -> None:
        """The text is as high as it needs."""
        self.query_one(VerticalScroll).styles.height = "auto"


class Ask(Dialog):
    """A question that `y` (or another key) affirms."""

    def __init__(self, question: str, key: str = "y", yes: str = "yes", no: str = "back") -> None:
        super().__init__()
        self.question, self.key, self.yes, self.no = question, key, yes, no

    def compose(self) -> ComposeResult:
        """The question and the answers."""
        with Vertical():
            yield Static(self.question)
            yield Static(Text.assemble("\n", (self.key, "bold cyan"), f" {self.yes}    ", ("esc", "bold cyan"), f" {self.no}"))

    def on_key(self, event: object) -> None:
        """Affirmed by its key."""
        if getattr(event, "character", None) == self.key or (self.key == "y" and getattr(event, "key", "") == "enter"):
            self.dismiss("yes")


class Choose(Dialog):
    """A list of filters."""

    def __init__(self, options: Sequence[tuple[str, Filter, int]]) -> None:
        super().__init__()
        self.options = options

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical():
            yield Static(Text("Show only\n", "bold"))
            yield OptionList(
                *(Option(Text.assemble(f"{label}  ", (str(n), "dim")), id=str(i)) for i, (label, _, n) in enumerate(self.options))
            )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """The index of the choice."""
        self.dismiss(event.option.id or "")
