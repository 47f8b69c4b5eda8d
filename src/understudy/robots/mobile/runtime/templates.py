"""Templates of the steady messages of mobile robots: heartbeat, state, telemetry.

The text of such a message is the same every time but for some numbers and words. Robots of the same
build share a template: the plain message, encoded once with a mark in the place of each value and
cut at the marks. So a template has the keys and the order of the plain message. `steady` writes
messages from the pieces.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from numpy.typing import NDArray

from understudy.robots.mobile.runtime.messages import (
    Battery,
    Health,
    Heartbeat,
    LidarReading,
    LocalizationReading,
    MotorState,
    Pose,
    State,
    StateMarker,
    Telemetry,
    Velocity,
    encoded,
)
from understudy.robots.mobile.runtime.reports import LOCALIZATIONS, MODES
from understudy.robots.mobile.runtime.table import HEARTBEAT, STATE, TELEMETRY
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS

CONSTANT, NUMBER, DISTANCE, WORD, OWN, SHARED, MESSAGE_ID, BEAT = range(8)
"""What a piece of a template writes: text of the template; a number; one that may be unlimited
(null); a word by its code; text of the robot; text of this tick; the id of the message; its
heartbeats so far."""
ROBOT_ID, ROBOT_CODE, BOOT_ID = range(3)
"""Texts of a robot."""
STAMP, GIVEN_UP, UPTIME = range(3)
"""Texts of a tick."""
MARK = "\ue000steady piece "
MARKED = re.compile(rf'"{MARK}(\d+)"'.encode())
BOOLEANS = (False, True)
STOPPED = tuple(stop is not None for stop in STOPS)


class Column(NamedTuple):
    """Where the values of a quantity stand among all values: those of robot or motor n begin at
    start + width · n."""

    start: int
    width: int
    of_motors: bool = False

    def view(self, values: NDArray[Any], count: int) -> NDArray[Any]:
        """The values of all robots or motors."""
        found = values[self.start : self.start + self.width * count]
        return found.reshape(count, self.width) if self.width > 1 else found


class Piece(NamedTuple):
    """A piece of a template. CONSTANT: from `a` to `b` of the pool. NUMBER, DISTANCE, WORD: the
    value a + b · robot + c · its first motor; `words`: the first word. OWN, SHARED: text `a`."""

    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    words: int = 0


class Numbers(NamedTuple):
    """Columns of numbers."""

    pose: Column
    speeds: Column
    battery: Column
    nearest: Column
    position: Column
    rolling: Column


class Codes(NamedTuple):
    """Columns of codes of words."""

    status: Column
    stop: Column
    estop: Column
    localization: Column
    near: Column
    lidar_up: Column
    working: Column
    connected: Column
    mode: Column


def number_columns(robots: int, motors: int) -> Numbers:
    widths = (3, robots), (3, robots), (1, robots), (1, robots)
    return Numbers(*_columns(widths, motors, 2))


def code_columns(robots: int, motors: int) -> Codes:
    return Codes(*_columns(((1, robots),) * 7, motors, 2))


def _columns(widths: Sequence[tuple[int, int]], motors: int, of_motors: int) -> list[Column]:
    """Columns of robots, then of motors, one after the other."""
    found, start = [], 0
    for width, count in widths:
        found.append(Column(start, width))
        start += width * count
    return found + [Column(start + motors * n, 1, of_motors=True) for n in range(of_motors)]


# ── templates ───────────────────────────────────────────────────────────────────────────────────


class Marks:
    """Marks in the place of values, and the pieces that they stand for."""

    def __init__(self, words: "Words") -> None:
        self._words = words
        self.pieces: list[Piece] = []

    def mark(self, piece: Piece) -> Any:
        self.pieces.append(piece)
        return f"{MARK}{len(self.pieces) - 1}"

    def number(self, column: Column, place: int = 0, *, kind: int = NUMBER) -> Any:
        """``place``: the column of a robot's values, or the number of its motor."""
        return self.mark(Piece(kind, *_index(column, place)))

    def word(self, column: Column, words: Sequence[Any], place: int = 0) -> Any:
        return self.mark(Piece(WORD, *_index(column, place), self._words.first(words)))


def _index(column: Column, place: int) -> tuple[int, int, int]:
    return column.start + place, 0 if column.of_motors else column.width, int(column.of_motors)


class Words:
    """Bytes of all templates and words, one after the other."""

    def __init__(self) -> None:
        self.pool = bytearray()
        self.spans: list[tuple[int, int]] = []
        """Of words by their number."""
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, text: bytes) -> tuple[int, int]:
        begin = len(self.pool)
        self.pool += text
        return begin, len(self.pool)

    def first(self, words: Sequence[Any]) -> int:
        """The number of the first of these words, which are encoded as JSON."""
        key = tuple(map(repr, words))
        if key not in self._known:
            self._known[key] = len(self.spans)
            self.spans += [self.add(msgspec.json.encode(word)) for word in words]
        return self._known[key]


class Build(NamedTuple):
    """What the templates of a robot depend on."""

    motors: tuple[str, ...]
    marker: StateMarker
    firmware: str


class Templates:
    """Templates of the steady messages of robots with the same build."""

    def __init__(self, words: Words, numbers: Numbers, codes: Codes) -> None:
        self._words = words
        self._numbers = numbers
        self._codes = codes
        self.pieces: list[Piece] = []
        self.spans: list[list[tuple[int, int]]] = []
        """Template → stream → its pieces."""
        self._known: dict[Build, int] = {}

    def of(self, build: Build) -> int:
        """The number of the template of a build."""
        if build not in self._known:
            self._known[build] = len(self.spans)
            made = {HEARTBEAT: self._heartbeat, STATE: self._state, TELEMETRY: self._telemetry}
            self.spans.append([self._cut(made[n], build) for n in sorted(made)])
        return self._known[build]

    def _cut(self, payload: Callable[[Marks, Build], Struct], build: Build) -> tuple[int, int]:
        marks = Marks(self._words)
        text = encoded(
            marks.mark(Piece(MESSAGE_ID)), marks.mark(Piece(OWN, ROBOT_ID)),
            marks.mark(Piece(OWN, ROBOT_CODE)), marks.mark(Piece(SHARED, STAMP)),
            payload(marks, build),
        )  # fmt: skip
        begin = len(self.pieces)
        for n, part in enumerate(MARKED.split(text)):
            if n % 2:
                self.pieces.append(marks.pieces[int(part)])
            elif part:
                self.pieces.append(Piece(CONSTANT, *self._words.add(part)))
        return begin, len(self.pieces)

    def _heartbeat(self, marks: Marks, build: Build) -> Heartbeat:
        return Heartbeat(
            marks.mark(Piece(OWN, BOOT_ID)), build.firmware,
            marks.word(self._codes.status, STATUSES), build.marker.runtime_mode,
            marks.mark(Piece(SHARED, UPTIME)), marks.mark(Piece(BEAT)),
        )  # fmt: skip

    def _state(self, marks: Marks, build: Build) -> State:
        numbers, codes = self._numbers, self._codes
        return State(
            pose=self._pose(marks),
            velocity=Velocity(marks.number(numbers.speeds, 0), marks.number(numbers.speeds, 2)),
            battery_percent=marks.number(numbers.battery),
            localization_status=marks.word(codes.localization, LOCALIZATIONS),
            fault_level="NONE",
            faults=[],
            status=marks.word(codes.status, STATUSES),
            estop_pressed=marks.word(codes.estop, BOOLEANS),
            safety_stop_active=marks.word(codes.stop, STOPPED),
            safety_stop_reason=marks.word(codes.stop, STOPS),
            motors=self._motors(marks, build),
            runtime_mode=build.marker.runtime_mode,
            simulation_profile_name=build.marker.simulation_profile_name,
        )

    def _telemetry(self, marks: Marks, build: Build) -> Telemetry:
        numbers, codes = self._numbers, self._codes
        return Telemetry(
            battery=Battery(marks.number(numbers.battery)),
            motors=self._motors(marks, build),
            lidar=LidarReading(
                marks.word(codes.near, BOOLEANS), marks.number(numbers.nearest, kind=DISTANCE),
                marks.word(codes.lidar_up, BOOLEANS),
            ),
            localization=LocalizationReading(
                marks.word(codes.localization, LOCALIZATIONS), self._pose(marks)
            ),
            health=Health(
                True, marks.word(codes.working, BOOLEANS), marks.mark(Piece(SHARED, GIVEN_UP))
            ),
            state_json=build.marker,
        )  # fmt: skip

    def _pose(self, marks: Marks) -> Pose:
        return Pose(*(marks.number(self._numbers.pose, place) for place in range(3)))

    def _motors(self, marks: Marks, build: Build) -> dict[str, MotorState]:
        numbers, codes = self._numbers, self._codes
        return {
            motor: MotorState(
                marks.word(codes.connected, BOOLEANS, place), marks.word(codes.mode, MODES, place),
                marks.number(numbers.position, place), marks.number(numbers.rolling, place),
            )
            for place, motor in enumerate(build.motors)
        }  # fmt: skip
