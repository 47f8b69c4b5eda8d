"""The law of a motion: which piece of the path, how far along it, at what time."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from understudy.motion.path import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Segments one after the other, each on one piece: s(τ) = s + v·τ + a·τ²/2 + j·τ³/6."""

    begins: Floats
    """(segments + 1): when each segment begins, and when the last one ends."""
    piece: Ints
    s: Floats
    v: Floats
    a: Floats
    j: Floats

    def __len__(self) -> int:
        return len(self.piece)

    def segment(self, t: float) -> int:
        """The segment that runs at t; before the first one begins the first, after all the last."""
        k = int(self.begins.searchsorted(t, side="right")) - 1
        return min(max(k, 0), len(self) - 1)

    def until(self, t: float) -> "Law":
        """The same law, over at t."""
        count = max(int(np.searchsorted(self.begins[:-1], t, side="left")), min(len(self), 1))
        begins = self.begins[: count + 1].copy()
        begins[-1] = min(max(t, begins[0]), begins[-1])
        return Law(begins, self.piece[:count], *(c[:count] for c in self.columns()))

    def since(self, t: float) -> "Law":
        """Without the segments that are over before t."""
        first = min(max(int(np.searchsorted(self.begins, t, side="right")) - 1, 0), len(self))
        return Law(self.begins[first:], self.piece[first:], *(c[first:] for c in self.columns()))

    def then(self, other: "Law") -> "Law":
        """The other law after this one; the other begins where this one ends."""
        columns = (
            np.concatenate(pair) for pair in zip(self.columns(), other.columns(), strict=True)
        )
        return Law(
            np.concatenate([self.begins[:-1], other.begins]),
            np.concatenate([self.piece, other.piece]),
            *columns,
        )

    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.s, self.v, self.a, self.j

    def numbered(self, shift: int) -> "Law":
        """The same law, its pieces numbered ``shift`` higher."""
        return Law(self.begins, self.piece + shift, *self.columns())

    def to_state(self) -> dict[str, Any]:
        return {column.name: getattr(self, column.name).tolist() for column in fields(self)}

    @staticmethod
    def from_state(state: dict[str, Any]) -> "Law":
        kinds: dict[str, Any] = {"piece": np.int64}
        return Law(
            **{c.name: np.array(state[c.name], dtype=kinds.get(c.name, float)) for c in fields(Law)}
        )


def empty(at: float) -> Law:
    none = np.zeros(0)
    return Law(np.array([at]), np.zeros(0, dtype=np.int64), none, none, none, none)
