"""Records of the KUKA's G-code server, and its readings."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from understudy.ports import Joints
from understudy.space.pose import Pose

LINEAR, HOMES, TOOLS, BASES = 0, (28, 30), range(1, 10), range(54, 60)
"""Kinds of records (cmd_type): a line, home, select a tool, select a base (54 is base 1)."""
POSITION = ("X", "Y", "Z", "C", "B", "A")
"""The words of a position, in the order of a `Pose`."""

WireInt = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
"""An integer of a frame."""


def base_number(kind: int) -> int:
    """The number of the base that a record of this kind selects."""
    return kind - BASES.start + 1


class Record(Struct, frozen=True):
    """A command: its kind, and the words given (X Y Z m, A B C rad, F m/s, E without a unit).

    `flaw`: the reason why the record describes no motion, if there is one. `line`: its line in the
    program that an operator runs; -1 before the first line; 0 for a record of a client.
    """

    seq: WireInt
    kind: int
    words: dict[str, float] = {}
    flaw: str = ""
    line: int = 0


class Progress(NamedTuple):
    """Sequence numbers of the last completed record and of the one in flight; ``waiting``:
    records that waited when the one in flight was taken, itself included."""

    completed: int
    in_flight: int
    waiting: int
    under_way: bool


@dataclass(frozen=True, slots=True)
class KukaReading:
    """Pose of the tool in the active base, axes (rad), speed of the tool (m/s).

    Bit n of `flags`: channel n is connected.
    """

    pose: Pose
    axes: Joints
    speed: float
    tool: int
    base: int
    flags: int
    progress: Progress
