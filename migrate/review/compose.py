"""The text of a file under a set of decisions."""

import ast
from collections.abc import Mapping, Sequence

from migrate.review.decisions import Decision
from migrate.review.fragments import fragment, parses
from migrate.review.hunks import Hunk
from migrate.review.imports import chosen_names, place_for_imports
from migrate.review.marks import marked
from migrate.review.pieces import FileReview


class Unparsable(ValueError):
    """Lines that would not make a valid file; `line` is the first bad one of what was tried."""

    def __init__(self, message: str, line: int, text: str) -> None:
        super().__init__(message)
        self.line = line
        self.text = text


def compose(review: FileReview, made: Mapping[str, Decision], mark: bool = True) -> str:
    """The file's text: new lines where accepted or edited, else the original's, marked where rejected. Raises Unparsable.

    Imports follow what is used. With everything accepted this is the conversion itself, with nothing accepted the original.
    """
    taken = [p for p in review.pieces if (d := made.get(p.key)) is not None and d.takes]
    edited = any(made[p.key].texts for p in taken)
    if len(taken) == len(review.pieces) and not edited:
        return review.converted
    texts = _texts(review, made, mark)
    if not any(h.changes or made[p.key].texts for p in taken for h in p.hunks):
        return _checked(_joined(review, texts))
    fresh = {h: texts[h] for p in taken for h in p.hunks}
    tree = ast.parse(_checked(_joined(review, texts)))
    names = chosen_names(fresh, {h: _statements(h, text) for h, text in fresh.items()})
    texts.update(review.imports.texts(tree, names))
    return _with_missing(review, _checked(_joined(review, texts)))


def check(review: FileReview, made: Mapping[str, Decision]) -> None:
    """Raises Unparsable where the file would not be valid Python; imports, which follow, can't change that."""
    _checked(_joined(review, _texts(review, made, True)))


def _texts(review: FileReview, made: Mapping[str, Decision], mark: bool) -> dict[Hunk, str]:
    """The text of each hunk; imports as they were."""
    texts = {h: h.old for h in review.hunks}
    for p in review.pieces:
        d = made.get(p.key)
        for i, h in enumerate(p.hunks):
            if d is not None and d.takes:
                texts[h] = ended(d.texts[i], h) if d.texts else h.new
            elif d is not None and mark and not p.unchanged:
                texts[h] = marked(h)
    return texts


def ended(text: str, h: Hunk) -> str:
    """Lines that a person wrote, ending as the hunk's do."""
    if text and not text.endswith("\n") and (h.old.endswith("\n") or h.new.endswith("\n")):
        return text + "\n"
    return text


def _joined(review: FileReview, texts: Mapping[Hunk, str]) -> str:
    at, out = 0, []
    for h in review.hunks:
        out += [review.source.text[at : h.start], texts[h]]
        at = h.end
    return "".join([*out, review.source.text[at:]])


def _checked(text: str) -> str:
    wrong = parses(text)
    if wrong is not None:
        raise Unparsable(f"line {wrong.lineno or 0}: {wrong.msg}", wrong.lineno or 0, text)
    return text


def _statements(h: Hunk, text: str) -> Sequence[ast.stmt]:
    if text == h.new:
        return h.after.statements
    made = fragment(text, h.is_open)
    return made.statements if made is not None else ()


def _with_missing(review: FileReview, text: str) -> str:
    """With imports for names that nothing binds any more."""
    tree = ast.parse(text)
    lines, _ = review.imports.missing(tree)
    if not lines:
        return text
    at = place_for_imports(text, tree)
    return _checked(text[:at] + lines + text[at:])


def unbound(review: FileReview, text: str) -> list[str]:
    """Names that a text looks up and nothing binds, nor did in the original."""
    return review.imports.missing(ast.parse(text))[1]
