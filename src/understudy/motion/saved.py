"""Paths, time laws and plans in snapshots, read strictly.

Compiled code samples a plan without looking at bounds, so a plan from a snapshot is checked as a
whole before it is used: columns of one length, piece numbers within the path, times in order.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.motion.plan import Plan, TimeLaw

Index = Annotated[int, Meta(ge=0, lt=1 << 31)]
Count = Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)]
LONGEST = 1e18
"""Seconds: no plan of a cell lasts longer, however far and slow its moves are."""
SLACK = 1e-6
"""Rounding of distances and speeds."""
LARGEST = 1e15
Figure = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
"""A coordinate, speed, acceleration or jerk."""
Coefficient = Annotated[float, Meta(ge=-1e100, le=1e100)]
"""Of a power of the distance: the shorter a piece, the larger; see `SavedPath.check`."""
Share = Annotated[float, Meta(ge=0, le=100)]
"""An override."""


class SavedLaw(Struct, forbid_unknown_fields=True):
    """`TimeLaw` in a snapshot."""

    begins: list[Figure]
    piece: list[Index]
    s: list[Figure]
    v: list[Figure]
    a: list[Figure]
    j: list[Figure]

    def check(self, pieces: int) -> None:
        """Checks against the number of pieces of the path."""
        columns = {"s": self.s, "v": self.v, "a": self.a, "j": self.j}
        same_length("law", len(self.piece), columns)
        if len(self.begins) != len(self.piece) + 1:
            raise msgspec.ValidationError("law.begins: one time more than segments is needed")
        if self.piece and max(self.piece) >= pieces:
            raise msgspec.ValidationError(f"law.piece: a piece beyond the {pieces} of the path")
        if self.begins != sorted(self.begins):
            raise msgspec.ValidationError("law.begins: the times are not in order")
        if max(map(abs, self.begins)) > LONGEST:
            raise msgspec.ValidationError(f"law.begins: a time beyond {LONGEST:g} s")


class SavedPath(Struct, forbid_unknown_fields=True):
    """`Path` in a snapshot; null: no limit."""

    shape: list[list[list[Coefficient]]]
    end: list[list[Figure]]
    length: list[Annotated[float, Meta(ge=0)]]
    acceleration: list[Annotated[float, Meta(gt=0)]]
    jerk: list[Annotated[float, Meta(gt=0)] | None]
    fastest: list[Annotated[float, Meta(ge=0)]]
    feed: list[Annotated[float, Meta(ge=0)] | None]
    rapid: list[bool]
    fixed: list[bool]
    junction: list[Annotated[float, Meta(ge=0)] | None]
    dwell: list[Annotated[float, Meta(ge=0, le=LONGEST)]]
    measure: list[Annotated[int, Meta(ge=-128, le=127)]]
    block: list[Count]
    line: list[Count]
    shape_of_shape: tuple[Index, Index, Index]

    def check(self, axes: int | None) -> None:
        pieces, rows, columns = self.shape_of_shape
        if axes is not None and columns != axes:
            raise msgspec.ValidationError(f"path.shape: {columns} axes instead of {axes}")
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        del values["shape_of_shape"]
        same_length("path", pieces, values)
        if any(len(piece) != rows or not rows for piece in self.shape):
            raise msgspec.ValidationError(f"path.shape: {rows} rows are needed in each piece")
        each = [row for piece in self.shape for row in piece] + self.end
        if any(len(row) != columns for row in each):
            raise msgspec.ValidationError(f"path.shape: {columns} axes are needed in each row")
        self._check_terms(rows)
        if self.block != sorted(self.block):
            raise msgspec.ValidationError("path.block: the blocks are not in order")

    def _check_terms(self, rows: int) -> None:
        """Each power of the distance adds a coordinate of a possible size, up to the end."""
        for number, (piece, length) in enumerate(zip(self.shape, self.length, strict=True)):
            reach = min(length, LARGEST)
            for power in range(rows):
                if max(map(abs, piece[power]), default=0.0) * reach**power > LARGEST:
                    raise msgspec.ValidationError(
                        f"path.shape[{number}][{power}]: a place beyond {LARGEST:g}"
                    )


class SavedPlan(Struct, forbid_unknown_fields=True):
    """`Plan` in a snapshot."""

    path: SavedPath
    law: SavedLaw
    target: list[Figure]


class SavedStream(Struct, forbid_unknown_fields=True):
    """A `Stream` in a snapshot: what is planned, and where planning goes on."""

    plan: dict[str, Any]
    next: tuple[Index, Figure, Figure, Figure]
    end: list[Figure]
    final: Annotated[float, Meta(ge=-LONGEST, le=LONGEST)]
    since: Annotated[float, Meta(ge=-LONGEST, le=LONGEST)]
    first: Annotated[int, Meta(ge=0, lt=1 << 62)]
    held: bool
    overrides: tuple[Share, Share]

    def check(self, plan: Plan) -> None:
        """Checks the place where planning goes on against the path."""
        piece, s, v, _ = self.next
        pieces = len(plan.path)
        if piece > pieces:
            raise msgspec.ValidationError(f"next: piece {piece} of a path of {pieces}")
        length = 0.0
        if piece < pieces:  # in a dwell `s` counts seconds
            length = float(plan.path.dwell[piece]) or float(plan.path.length[piece])
        if not (-SLACK <= s <= length + SLACK * max(1.0, length)) or v < -SLACK:
            raise msgspec.ValidationError("next: a place that is not on its piece")


def plan_from(state: Any, axes: int | None = None) -> Plan:
    """The plan of a snapshot; `ValidationError` if it cannot be one of a robot with these axes."""
    saved = msgspec.convert(state, SavedPlan)
    saved.path.check(axes)
    saved.law.check(len(saved.path.length))
    if len(saved.target) != saved.path.shape_of_shape[2]:
        raise msgspec.ValidationError("target: another number of axes than in the path")
    return Plan.from_state(state)


def law_from(state: Any, pieces: int) -> TimeLaw:
    """The time law of a snapshot, for a path with this many pieces."""
    msgspec.convert(state, SavedLaw).check(pieces)
    return TimeLaw.from_state(state)


def position_from(values: Sequence[float], axes: int, name: str) -> Any:
    """A position of a snapshot: one number for each axis."""
    if len(values) != axes:
        raise msgspec.ValidationError(f"{name}: {len(values)} axes instead of {axes}")
    return np.array(values, dtype=np.float64)


def same_length(name: str, length: int, columns: Mapping[str, Sequence[Any]]) -> None:
    for column, values in columns.items():
        if len(values) != length:
            raise msgspec.ValidationError(
                f"{name}.{column}: {len(values)} values instead of {length}"
            )
