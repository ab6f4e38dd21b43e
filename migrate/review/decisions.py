"""What was decided, how it came about, and how it is taken back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate.review.pieces import Piece

ACCEPTED, REJECTED, EDITED = "accepted", "rejected", "edited"


@dataclass(frozen=True)
class Decision:
    """One piece's: `texts` are the new lines of each hunk where a person wrote them."""

    state: str
    texts: tuple[str, ...] = ()

    @property
    def takes(self) -> bool:
        """Whether new lines take the place of the original's."""
        return self.state != REJECTED


Step = Mapping[str, Decision | None]  # what a command changed, as it was before


@dataclass(eq=False)
class Decisions:
    """Decisions by the pieces' keys, and the steps that led there."""

    made: dict[str, Decision] = field(default_factory=dict)
    history: list[Step] = field(default_factory=list)

    def apply(self, changes: Mapping[str, Decision | None]) -> None:
        """One step: sets (or, with None, takes away) decisions."""
        before = {k: self.made.get(k) for k in changes}
        self._set(changes)
        self.history.append(before)

    def undo(self) -> Step:
        """Takes the last step back; returns what it set, {} where there is none."""
        if not self.history:
            return {}
        step = self.history.pop()
        self._set(step)
        return step

    def _set(self, changes: Mapping[str, Decision | None]) -> None:
        for key, decision in changes.items():
            if decision is None:
                self.made.pop(key, None)
            else:
                self.made[key] = decision

    def to_json(self) -> dict[str, Any]:
        """For the state file."""
        return {
            "decisions": {k: _plain(d) for k, d in self.made.items()},
            "history": [{k: _plain(d) for k, d in s.items()} for s in self.history],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], keys: Iterable[str]) -> "Decisions":
        """Those of the pieces that still exist. Raises ValueError, KeyError or TypeError for what it did not write."""
        known = set(keys)
        made = {k: _read(d) for k, d in data["decisions"].items() if k in known}
        history = [{k: _read(d) for k, d in s.items() if k in known} for s in data["history"]]
        return cls({k: d for k, d in made.items() if d is not None}, [s for s in history if s])


def _plain(d: Decision | None) -> dict[str, Any] | None:
    return None if d is None else {"state": d.state} | ({"texts": list(d.texts)} if d.texts else {})


def _read(d: Mapping[str, Any] | None) -> Decision | None:
    if d is None:
        return None
    if d["state"] not in (ACCEPTED, REJECTED, EDITED):
        raise ValueError(f"unknown state {d['state']!r}")
    return Decision(d["state"], tuple(str(t) for t in d.get("texts", ())))


def closure(start: Iterable[Piece], edges: Mapping[Piece, Iterable[Piece]]) -> list[Piece]:
    """Everything that is reached, the start first."""
    found = dict.fromkeys(start)
    stack = list(found)
    while stack:
        for p in edges.get(stack.pop(), ()):
            if p not in found:
                found[p] = None
                stack.append(p)
    return list(found)
