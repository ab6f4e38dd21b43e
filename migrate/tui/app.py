"""The application: it shows what the session holds, and turns keys into the session's commands."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import click
from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from migrate.review import words
from migrate.review.filters import Filter, choices
from migrate.review.pieces import Piece
from migrate.review.project import Review
from migrate.review.session import Outcome
from migrate.settings import table_for
from migrate.tui import screen
from migrate.tui.dialogs import Ask, Choose, Help
from migrate.tui.sides import Sides, table


class ReviewApp(App[bool]):
    """Returns True where the result is to be written."""

    CSS_PATH = "review.tcss"
    TITLE = "migrate review"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "accept", "accept"),
        Binding("n", "reject", "reject"),
        Binding("e", "edit", "edit"),
        Binding("u", "undo", "undo"),
        Binding("question_mark", "help", "help"),
        Binding("w", "write", "write"),
        Binding("q", "leave", "quit"),
        Binding("x", "attention", "next warning"),
        Binding("f", "filter", "filter"),
        Binding("t", "kind(True)", "all of this kind"),
        Binding("g", "harmless", "all harmless"),
        Binding("T", "kind(False)", show=False),
        Binding("F", "everything(True)", show=False),
        Binding("A", "everything(False)", show=False),
        Binding("s", "next", show=False),
        Binding("j,down", "move(1)", show=False, priority=False),
        Binding("k,up", "move(-1)", show=False, priority=False),
        Binding("v", "view", show=False),
        Binding("l", "list", show=False),
        Binding("r", "rows", show=False),
    ]

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

    # commands

    def _done(self, outcome: Outcome, following: bool = True) -> None:
        """After a command: what came along, the next open piece, and the question at the end."""
        self.note(words.came_along(outcome), "error" if outcome.error else "")
        self._refresh_entries(outcome.changed)
        if outcome.error:
            return
        after = self.session.following(self.at, self.shown) if following else self.at
        self.go(after or self.at)
        if following and not self.session.progress().open:
            self._finish()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The list moves, and the rest follows."""
        p = next((p for p in self.shown if p.key == event.option.id), None)
        if p is not None and p is not self.at:
            self.at = p
            self.all_rows = False
            self._show()

    def action_accept(self) -> None:
        """y"""
        if self.at:
            self._done(self.session.accept([self.at]))

    def action_reject(self) -> None:
        """n"""
        if self.at:
            self._done(self.session.reject([self.at]))

    def action_undo(self) -> None:
        """u"""
        outcome = self.session.undo()
        self._done(outcome, following=False)
        if outcome.changed:
            self._fill(outcome.changed[0])
            self.note(f"taken back: {len(outcome.changed)} piece{'s' if len(outcome.changed) > 1 else ''}")

    def action_kind(self, accept: bool) -> None:
        """t, T"""
        if self.at:
            pieces = self.session.of_kind(self.at)
            self._done(self.session.accept(pieces) if accept else self.session.reject(pieces))

    def action_harmless(self) -> None:
        """g"""
        self._done(self.session.accept(self.session.harmless(self.shown)))

    def action_everything(self, in_file: bool) -> None:
        """F, A"""
        at = self.at
        pieces = [p for p in self.session.pieces if not self.session.state(p) and (not in_file or (at is not None and p.file == at.file))]
        attention = sum(p.needs_attention for p in pieces)
        if not pieces:
            self.note("nothing is open")
            return
        told = f" {attention} of them with a warning or an error." if attention else ""
        self._ask(f"Accept {len(pieces)} open pieces?{told}", lambda: self._done(self.session.accept(pieces)))

    def _ask(self, question: str, then: Callable[[], None], key: str = "y", yes: str = "yes", no: str = "back") -> None:
        self.push_screen(Ask(question, key, yes, no), lambda answer: then() if answer else None)

    def action_next(self) -> None:
        """s"""
        self._to(self.session.following(self.at, self.shown), "nothing is open here")

    def action_attention(self) -> None:
        """x"""
        self._to(self.session.following(self.at, self.shown, attention=True), "nothing open needs attention")

    def _to(self, p: Piece | None, otherwise: str) -> None:
        if p is None:
            self.note(otherwise)
        else:
            self.go(p)

    def action_move(self, step: int) -> None:
        """j, k"""
        if self.at in self.shown:
            self.go(self.shown[max(0, min(len(self.shown) - 1, self.shown.index(self.at) + step))])

    def action_filter(self) -> None:
        """f"""
        options = choices(self.session.pieces, self.session.state)

        def chosen(answer: str | None) -> None:
            if answer:
                self.filter = options[int(answer)][1]
                self._fill(self.at)

        self.push_screen(Choose(options), chosen)

    def action_view(self) -> None:
        """v"""
        self.stacked = not (self.query_one("#code").size.width < 84 if self.stacked is None else self.stacked)
        self._show()

    def action_list(self) -> None:
        """l"""
        self.query_one("#list").toggle_class("hidden")
        self.call_after_refresh(self._show)

    def action_rows(self) -> None:
        """r"""
        self.all_rows = not self.all_rows
        self._show()

    def action_help(self) -> None:
        """?"""
        self.push_screen(Help())

    def action_edit(self) -> None:
        """e: the editor takes the terminal."""
        p = self.at
        if p is None:
            return
        decision = self.session.decisions.made.get(p.key)
        texts = list(decision.texts) if decision and decision.texts else [h.new for h in p.hunks]
        try:
            with self.suspend():
                given = click.edit(words.to_edit(p, texts), extension=".py", require_save=False)
        except (SuspendNotSupported, click.ClickException) as e:
            self.note(f"no editor: {getattr(e, 'message', e)}", "error")
            return
        made = None if given is None else words.from_edit(p, given)
        if made is None or made == texts:
            self.note("not changed" if given is None or made == texts else "the lines that part the places are gone; nothing was changed")
            return
        self._done(self.session.edit(p, made))

    def _finish(self) -> None:
        said = words.counted(self.session.progress())
        self._ask(f"{said}. Write the result?", lambda: self.exit(True), "w", "write and leave", "look again")

    def action_write(self) -> None:
        """w"""
        progress = self.session.progress()
        if progress.open:
            self._ask(f"{progress.open} pieces are open; their lines stay PyTorch. Write the rest?", lambda: self.exit(True))
        else:
            self._finish()

    def action_leave(self) -> None:
        """q"""
        self.exit(False)


def run(review: Review, target: str, verdict: Mapping[str, Any]) -> bool:
    """Runs the screen; whether to write."""
    return bool(ReviewApp(review, target, verdict).run())
