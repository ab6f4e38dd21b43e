"""Which pieces to look at."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from migrate.review.pieces import RANK, Piece


@dataclass(frozen=True)
class Filter:
    """All that is set must hold. `severity`: at least "warning" or "error"; `state`: "open", "accepted", "rejected" or "edited"."""

    severity: str = ""
    rule: str = ""
    file: str = ""
    kind: str = ""
    state: str = ""

    def holds(self, p: Piece, state: str) -> bool:
        """Whether a piece is to be looked at."""
        return (
            RANK[p.severity] >= RANK[self.severity]
            and (not self.rule or self.rule in p.rules)
            and (not self.file or self.file == p.file)
            and (not self.kind or self.kind == p.kind)
            and (not self.state or self.state == (state or "open"))
        )

    def said(self) -> str:
        """For a status line; "" where nothing is set."""
        parts = [f"{self.severity}s" if self.severity == "error" else "warnings and errors" if self.severity else ""]
        parts += [f"rule {self.rule}" if self.rule else "", self.file, self.kind, self.state]
        return ", ".join(p for p in parts if p)


def choices(pieces: Iterable[Piece], state: Callable[[Piece], str]) -> list[tuple[str, Filter, int]]:
    """What one may filter by, with how many pieces each has: (label, filter, count)."""
    pieces = list(pieces)
    found: list[tuple[str, Filter, int]] = [("everything", Filter(), len(pieces))]
    for severity, label in (("warning", "warnings and errors"), ("error", "errors only")):
        found.append((label, Filter(severity=severity), sum(RANK[p.severity] >= RANK[severity] for p in pieces)))
    found.append(("not decided yet", Filter(state="open"), sum(not state(p) for p in pieces)))
    found.append(("rejected", Filter(state="rejected"), sum(state(p) == "rejected" for p in pieces)))
    files = Counter(p.file for p in pieces)
    if len(files) > 1:
        found += [(f"file {name}", Filter(file=name), n) for name, n in files.items()]
    found += [(f"rule {name}", Filter(rule=name), n) for name, n in Counter(r for p in pieces for r in sorted(p.rules)).most_common()]
    found += [(f"kind {name}", Filter(kind=name), n) for name, n in Counter(p.kind for p in pieces).most_common()]
    return found
