"""A path that grows at its end without being copied: as a stream takes block after block."""

from collections.abc import Sequence

import numpy as np

from understudy.motion.path import COLUMNS, Path, joined, nothing

SPARE = 256
"""Pieces for which there is room beyond what is there twice over."""


class Roll:
    """Joins paths as `joined` does, but writes the new pieces behind the known ones if these are
    its own. What it has given out stays as it is: only room that nobody has seen is written on.
    """

    def __init__(self) -> None:
        self._known = nothing(0)
        self._room = self._known

    def joined(self, known: Path, more: Sequence[Path]) -> Path:
        """The paths one after the other, blocks numbered on."""
        for path in more:
            known = self._with(known, path)
        return known

    def _with(self, known: Path, path: Path) -> Path:
        if not len(known) or not self._fits(known, path):
            known = joined([known, path])
            self._begin(known)
            return known
        first, last = len(known), len(known) + len(path)
        for name in COLUMNS:
            getattr(self._room, name)[first:last] = getattr(path, name)
        self._room.block[first:last] += known.block[-1] + 1 - path.block[0]
        self._known = self._room.rows(0, last)
        return self._known

    def _fits(self, known: Path, path: Path) -> bool:
        return (
            known is self._known
            and len(known) + len(path) <= len(self._room)
            and path.shape.shape[1] == self._room.shape.shape[1]
        )

    def _begin(self, known: Path) -> None:
        """Room for as much again; the path itself is not copied until it grows."""
        room = 2 * len(known) + SPARE
        columns = []
        for name in COLUMNS:
            column = getattr(known, name)
            columns.append(np.empty((room, *column.shape[1:]), column.dtype))
            columns[-1][: len(known)] = column
        self._known, self._room = known, Path(*columns)
