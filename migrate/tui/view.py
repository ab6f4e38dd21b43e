"""What the screen shows: the list, the piece at hand, the reasons, the progress."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from migrate.review import words
from migrate.review.filters import Filter
from migrate.review.pieces import Piece
from migrate.review.project import Review
from migrate.settings import table_for
from migrate.tui import screen
from migrate.tui.sides import Sides, table


class ReviewView(App[bool]):
    """The parts of the screen, and how they follow the session."""

    CSS_PATH = "review.tcss"
    TITLE = "migrate review"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, review: Review, target: str, verdict: Mapping[str, Any]) -> None:
        super().__init__()
        self.session = review.session
        self.loose = review.loose
        self.target_name = target
        self.verdict = verdict
        self.rows_table = table_for(review.planned.folder)
        self.sides = Sides()
        self.filter = Filter()
        self.shown: list[Piece] = []
        self.at: Piece | None = None
        self.stacked: bool | None = None  # None: by the width
        self.all_rows = False

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield Static(id="top")
        with Horizontal(id="body"):
            yield OptionList(id="list")
            with Vertical(id="right"):
                yield Static(id="title")
                with VerticalScroll(id="code", can_focus=False):
                    yield Static(id="sides")
                with VerticalScroll(id="why", can_focus=False):
                    yield Static(id="about")
        yield Static(id="note")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Starts at the first open piece."""
        self._fill(self.session.following(None))
        if self.loose:
            self.note(
                "\n".join(str(d) for d in self.loose[:1]) + (f" (and {len(self.loose) - 1} more)" if len(self.loose) > 1 else ""), "error"
            )

    def on_resize(self) -> None:
        """The columns follow the width."""
        self._fill(self.at)
        self.call_after_refresh(self._show)

    # what is shown

    def _fill(self, at: Piece | None) -> None:
        """The list, under the filter."""
        options = self.query_one("#list", OptionList)
        options.clear_options()
        self.shown = [p for p in self.session.pieces if self.filter.holds(p, self.session.state(p))]
        many = len(self.session.files) > 1
        file = ""
        for p in self.shown:
            if many and p.file != file:
                options.add_option(Option(Text(p.file, "bold", overflow="ellipsis", no_wrap=True), id=f"file:{p.file}", disabled=True))
                file = p.file
            options.add_option(Option(screen.entry(p, self.session.state(p), self._room()), id=p.key))
        self.go(at if at in self.shown else self.shown[0] if self.shown else None)

    def _room(self) -> int:
        """The width of the list's lines."""
        return max(min(self.size.width * 27 // 100, 38), 22) - 3

    def go(self, p: Piece | None) -> None:
        """Looks at a piece."""
        self.at = p
        options = self.query_one("#list", OptionList)
        if p is not None and p in self.shown:
            options.highlighted = options.get_option_index(p.key)
        self.all_rows = False
        self._show()

    def _show(self) -> None:
        """Everything about the piece at hand."""
        self.query_one("#top", Static).update(screen.top(self.session, self.target_name, self.filter, self.size.width))
        p = self.at
        title, sides, about = self.query_one("#title", Static), self.query_one("#sides", Static), self.query_one("#about", Static)
        if p is None:
            title.update("")
            sides.update(
                "Nothing to show here; f changes the filter."
                if self.session.pieces
                else "Nothing to decide: the conversion changes nothing."
            )
            about.update("")
            return
        title.update(screen.title(p, self.session))
        width = self.query_one("#code").size.width
        stacked = width < 84 if self.stacked is None else self.stacked
        file = self.session.file_of(p)
        decision = self.session.decisions.made.get(p.key)
        texts = decision.texts if decision and decision.texts else tuple(h.new for h in p.hunks)
        sides.update(table(list(self.sides.rows(file, p, texts, self.session.lines_around(file))), stacked, width - 1))
        self.query_one("#code", VerticalScroll).scroll_home(animate=False)
        self.query_one("#why", VerticalScroll).scroll_home(animate=False)
        made = screen.about(words.about(p, self.rows_table, self.target_name, self.verdict, 99 if self.all_rows else 2))
        about.update(made)
        why = self.query_one("#why")
        why.styles.height = 1 + min(screen.height(made, max(why.size.width - 1, 20)), self.size.height * 35 // 100)

    def note(self, text: str, severity: str = "") -> None:
        """One line at the foot."""
        self.query_one("#note", Static).update(Text(text, screen.COLOURS.get(severity, ""), overflow="ellipsis", no_wrap=True))

    def _refresh_entries(self, pieces: Iterable[Piece]) -> None:
        options, shown = self.query_one("#list", OptionList), set(self.shown)
        changed = [p for p in pieces if p in shown]
        if len(changed) > 50:
            self._fill(self.at)
            return
        for p in changed:
            options.replace_option_prompt(p.key, screen.entry(p, self.session.state(p), self._room()))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The list moves, and the rest follows."""
        p = next((p for p in self.shown if p.key == event.option.id), None)
        if p is not None and p is not self.at:
            self.at = p
            self.all_rows = False
            self._show()
