"""Undo and redo of changes that operators make to objects and parts of the cell."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from understudy.errors import Refused
from understudy.operator.table import command

MOST_UNDONE = 50
"""Changes that can be undone."""


class Edit(NamedTuple):
    """A change that can be taken back; each of the two functions may refuse."""

    what: str
    undo: Callable[[], Refused | None]
    redo: Callable[[], Refused | None]


class Edits:
    """The last changes of objects and parts by operators, of all doors."""

    def __init__(self) -> None:
        self._done: list[Edit] = []
        self._undone: list[Edit] = []

    def add(self, edit: Edit) -> None:
        self._done = [*self._done, edit][-MOST_UNDONE:]
        self._undone = []

    def shown(self) -> dict[str, str]:
        """What would be undone and redone; empty if there is nothing."""
        names = (edits[-1].what if edits else "" for edits in (self._done, self._undone))
        return dict(zip(("undo", "redo"), names, strict=True))

    @command()
    def undo_change(self) -> Any:
        """Take back the last change of an object or a part; the last 50 can be."""
        return self._repeat("undo", self._done, self._undone)

    @command()
    def redo_change(self) -> Any:
        """Make the change again that was undone last."""
        return self._repeat("redo", self._undone, self._done)

    def _repeat(self, how: Literal["undo", "redo"], edits: list[Edit], others: list[Edit]) -> Any:
        """Undoes or redoes the last of these edits, which then is the last of the others."""
        if not edits:
            undo, redo = (
                Refused("there is no change to undo"),
                Refused("there is no change to redo"),
            )
            return undo if how == "undo" else redo
        edit = edits.pop()
        if refused := edit.undo() if how == "undo" else edit.redo():
            self._done, self._undone = [], []
            return refused
        others.append(edit)
        return self.shown()
