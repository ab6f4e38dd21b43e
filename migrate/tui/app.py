"""The application: it turns keys into the session's commands."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import click
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType

from migrate.review import words
from migrate.review.filters import choices
from migrate.review.pieces import Piece
from migrate.review.project import Review
from migrate.review.session import Outcome
from migrate.tui.dialogs import Ask, Choose, Help
from migrate.tui.view import ReviewView


class ReviewApp(ReviewView):
    """Returns True where the result is to be written."""

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
