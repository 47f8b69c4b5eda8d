"""What is known of a real controller: what it told last, and what it was told itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from understudy.ports import Joints, JointState
from understudy.robots.grblhal.driver.pins import Pins
from understudy.robots.grblhal.driver.words import Info, Report, Setting, numbers, whole
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, seconds

AXES = 6
NOWHERE: Joints = (math.nan,) * AXES
AT_REST: Joints = (0.0,) * AXES
STANDING = ("Idle", "Alarm", "Check", "Sleep")
"""States in which a line is answered at once, and every `$` line is taken."""
BY_ITSELF = ("Run", "Jog", "Home")
MOST_SETTINGS = 4096
RX_BYTES, BLOCKS = 1024, 100
FASTEST, ACCELERATION = 110, 120

Tip = Callable[[Joints], Pose]


@dataclass
class Machine:
    """What `$I` and `$$` tell: how much fits, what there is, what the axes can do."""

    blocks: int = BLOCKS
    rx_bytes: int = RX_BYTES
    options: str = ""
    settings: dict[int, float] = field(default_factory=dict)

    def hear(self, word: Info | Setting) -> None:
        if isinstance(word, Setting):
            value = numbers(word.text)
            if value is not None and len(self.settings) < MOST_SETTINGS:
                self.settings[word.number] = value[0]
        elif word.name == "OPT":
            sizes = numbers(",".join(word.text.split(",")[1:])) or ()
            self.blocks = int(sizes[0]) if sizes and sizes[0] >= 1 else BLOCKS
            self.rx_bytes = int(sizes[1]) if len(sizes) > 1 and sizes[1] >= 128 else RX_BYTES
        elif word.name == "NEWOPT":
            self.options = word.text

    def fastest(self, axis: int) -> float:
        """rad/s; as fast as it likes if nobody knows."""
        return (self.settings.get(FASTEST + axis, 0.0) / MINUTE or math.inf) * DEG

    def acceleration(self, axis: int) -> float:
        """rad/s²."""
        return (self.settings.get(ACCELERATION + axis, 0.0) or math.inf) * DEG


class Picture:
    """The controller as its reports describe it."""

    def __init__(self, pins: Pins, tip: Tip | None = None) -> None:
        self.pins = pins
        self._tip = tip
        self.machine = Machine()
        self.distance = 0.0
        self.homed = False
        self.forget()

    def forget(self) -> None:
        """Nobody has been asked yet."""
        self.state = "Unknown"
        self.substate = 0
        self.told_at: int | None = None
        self.position: Joints = NOWHERE
        self.velocity: Joints = AT_REST
        self.free_blocks: int | None = None
        self._most_free = 0
        self.line = 0
        self.overrides: tuple[int, ...] = ()
        self.stops_optionally: bool | None = None
        self._shift: Joints | None = None

    def note(self, word: Info | Setting) -> None:
        """Part of an answer to `$I` or `$$`."""
        if isinstance(word, Info) and word.name == "AUX IO":
            self.pins.counts = tuple(int(count) for count in numbers(word.text) or ())
        else:
            self.machine.hear(word)

    # ── reports ──

    def hear(self, report: Report, now: int) -> None:
        fields = report.fields
        self.state, self.substate = report.state, report.substate
        self.stops_optionally = "T" not in fields.get("Pn", "")
        self.line = whole(fields.get("Ln", "0")) or 0
        shift = numbers(fields.get("WCO", ""))
        self._shift = shift if shift and len(shift) == AXES else self._shift
        if free := numbers(fields.get("Bf", "")):
            self.free_blocks = int(free[0])
            if report.state in STANDING:
                self._most_free = max(self._most_free, self.free_blocks)
        if homed := numbers(fields.get("H", "")):
            self.homed = homed[0] == 1
        if overrides := numbers(fields.get("Ov", "")):
            self.overrides = tuple(int(percent) for percent in overrides)
        if result := numbers(fields.get("In", "")):
            self.pins.note_input(result[0])
        self._place(self._machine_position(fields), numbers(fields.get("FS", "")), now)

    def _machine_position(self, fields: dict[str, str]) -> Joints | None:
        """Axis units; None if the report does not say."""
        place, shift = numbers(fields.get("MPos", "")), AT_REST
        if place is None:
            place, shift = numbers(fields.get("WPos", "")), self._shift or NOWHERE
        if place is None or len(place) != AXES:
            return None
        return tuple(value + more for value, more in zip(place, shift, strict=True))

    def _place(self, degrees: Joints | None, pace: Joints | None, now: int) -> None:
        before, at, self.told_at = self.position, self.told_at, now
        if degrees is None:
            return
        self.position = tuple(value * DEG for value in degrees)
        way = [b - a for a, b in zip(before, self.position, strict=True)]
        length = math.hypot(*way)
        if not self.moves or not length > 0.0 or at is None or at >= now:
            self.velocity = AT_REST if not self.moves else self.velocity
        else:
            speed = pace[0] / MINUTE * DEG if pace else length / seconds(now - at)
            self.velocity = tuple(part / length * speed for part in way)
        if self._tip is not None and length > 0.0:
            self.distance += math.dist(self._tip(before)[:3], self._tip(self.position)[:3])

    @property
    def known(self) -> bool:
        return not math.isnan(self.position[0])

    @property
    def moves(self) -> bool:
        """The axes are under way."""
        return self.state in BY_ITSELF or (self.state in ("Hold", "Door") and self.substate > 0)

    @property
    def waits_for_operator(self) -> bool:
        return self.state in ("Hold", "Door", "Tool", "Sleep", "Alarm") and not self.moves

    @property
    def drained(self) -> bool:
        """It stands, and its planner is empty."""
        free = self.free_blocks
        return self.state in STANDING and (free is None or free >= self._most_free)

    @property
    def used_blocks(self) -> int:
        free = self.machine.blocks if self.free_blocks is None else self.free_blocks
        return max(0, self.machine.blocks - free)

    def stand_still(self) -> None:
        """The drives have dropped, whatever the next report says."""
        self.velocity = AT_REST

    def joints(self) -> JointState:
        return JointState(self.position, self.velocity, AT_REST, AT_REST)

    def tip(self) -> Pose:
        if self._tip is None or not self.known:
            return Pose(*NOWHERE)
        return self._tip(self.position)
