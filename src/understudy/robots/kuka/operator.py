"""Operator actions and programs on a KUKA: records that have the number of the last completed one.

The records of a program are sent a few ahead, so that lines pass into each other.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode.blocks import Problem, number_text
from understudy.ports.operation import (
    AxisReading,
    Condition,
    Frame,
    Jog,
    ModelTool,
    RobotModel,
    Target,
)
from understudy.ports.program import LanguageWord, Switched
from understudy.robots.kuka.assembly import foot_of
from understudy.robots.kuka.frames import UNIT_OF
from understudy.robots.kuka.program import ReadLine, Step, list_words, read_line, read_lines
from understudy.robots.kuka.records import BASES, HOMES, LINEAR, POSITION, TOOLS, Record
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.program.run import LineFeed, ProgramRun
from understudy.space.kinematics.teach import moved_frame
from understudy.space.pose import Pose, pose_mm_deg
from understudy.space.transform import matrix, pose

if TYPE_CHECKING:
    from understudy.offline.walk import Event
    from understudy.robots.kuka import Config

LINES_ONLY = Refused("the G-code server moves the tool along lines only: give pose_mm_deg")
STEPS_ONLY = Refused("this robot jogs in steps only: give step")
NO_AXIS = Refused("this robot homes as a whole: give no axis")
FULL = Refused("the buffer of records is full")


class KukaActions:
    """`OperatorActions`. Speeds are in m/s; poses are of the active tool in the active base."""

    frames: tuple[Frame, ...] = ("base", "tool")

    def __init__(self, server: KukaGcodeServer) -> None:
        self._server = server

    def condition(self, now: int) -> Condition:
        under_way, fault = self._server.progress().under_way, self._server.fault(now)
        state = "EmergencyStopped" if fault else "Run" if under_way else "Idle"
        error = fault.reason if fault else ""
        return Condition(state, under_way, enabled=fault is None, error=error)

    def axis_reading(self, now: int) -> AxisReading:
        reading = self._server.reading(now)
        return AxisReading(reading.axes, (), (), reading.pose)

    def home(self, axis: int, now: int) -> Refused | None:
        return NO_AXIS if axis != -1 else self._submit(HOMES[0], {}, now)

    def stop(self, now: int) -> None:
        """Stops at once and drops all waiting records."""
        self._server.stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._server.inject("emergency_stop", {}, now)

    def reset(self, now: int) -> None:
        self._server.reset(now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.pose is None:
            return LINES_ONLY
        return self._line(target.pose, target.speed, now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        if jog.step is None:
            return STEPS_ONLY
        here = matrix(self._server.reading(now).pose)
        amount = math.copysign(jog.step, jog.speed)
        there = moved_frame(here, jog.axis, amount, in_tool=jog.frame == "tool")
        return self._line(pose(there), abs(jog.speed) if jog.axis < 3 else None, now)

    def _line(self, there: Pose, speed: float | None, now: int) -> Refused | None:
        words = dict(zip(POSITION, there, strict=True))
        return self._submit(LINEAR, words if speed is None else {**words, "F": speed}, now)

    def _submit(self, kind: int, words: dict[str, float], now: int) -> Refused | None:
        if refused := self._server.motion_refusal():
            return refused
        if not self._server.room():
            return FULL
        self._server.submit(Record(_number(self._server), kind, words), now)
        return None


def _number(server: KukaGcodeServer) -> int:
    """The number of records that no client has sent: the client follows the numbers, and a new one
    would confirm a record that it never sent."""
    return max(server.progress().completed, 0)


def model_of(config: "Config", robot: KukaGcodeServer) -> RobotModel:
    foot = foot_of(config)
    tools = {
        number: ModelTool(f"tool {number}", pose_mm_deg(pose(frame)))
        for number, frame in robot.model.tools.items()
    }
    return RobotModel(
        chain=robot.model.chain,
        base=tuple(foot.reshape(-1).tolist()),
        tools=lambda: tools,
        tool=lambda now: robot.reading(now).tool,
        program_events=lambda text, reading: _program_events(config, robot, text, reading),
        tip=lambda axes, tool: (foot @ matrix(robot.model.tip(axes, tool)))[:3, 3].tolist(),
    )


def _program_events(
    config: "Config", robot: KukaGcodeServer, text: str, reading: AxisReading
) -> Iterator["Event"]:
    """Offline events of a program that begins where the robot is."""
    from understudy.robots.kuka.offline import walk_program

    start = replace(robot.modal, axes=reading.joints, position=reading.pose)
    return walk_program(text, robot.model, config.blend_percent / 100.0, start)


# ── programs ──────────────────────────────────────────────────────────────────────────────────────


BEFORE_FIRST = -1
"""Line number of the records that are sent before the first line of a program."""


class RecordLanguage(NamedTuple):
    """`Language`: the G-code that the server has records for. Homing selects `tool` and `base`."""

    tool: int
    base: int

    @property
    def target_line(self) -> str:
        return "G1 X{x} Y{y} Z{z} A{rz} B{ry} C{rx}"

    def lines(self, text: str) -> Iterator[ReadLine]:
        return read_lines(text)

    def words(self) -> list[LanguageWord]:
        return list_words()

    def opening(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        """Tool, base and speed as they are at that line; the arc is not switched on."""
        tool = base = 0
        speed: float | None = None
        for step in _steps(lines, first):
            if step.kind in HOMES:
                tool, base = self.tool, BASES[self.base - 1]
            tool = step.kind if step.kind in TOOLS else tool
            base = step.kind if step.kind in BASES else base
            speed = step.words.get("F", speed)
        return [
            *([f"T{tool}"] if tool else []),
            *([f"G{base}"] if base else []),
            *([f"G1 F{number_text(speed / UNIT_OF['F'])}"] if speed is not None else []),
        ]

    def process_before(self, lines: Sequence[ReadLine], first: int) -> tuple[Switched, ...]:
        """The weld job of the last E word; 0 is off."""
        jobs = [(step.line, step.words["E"]) for step in _steps(lines, first) if "E" in step.words]
        if not jobs or not jobs[-1][1]:
            return ()
        line, job = jobs[-1]
        return (Switched(f"E{number_text(job)}", line),)

    def restoring(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        place: dict[str, float] = {}
        for step in _steps(lines, first):
            place = {} if step.kind != LINEAR else place | step.words
        if not {"X", "Y", "Z"} <= place.keys():
            return Refused(
                f"line {first} begins where an earlier line ends, and no line before it names "
                "X, Y and Z of that place: begin at an earlier line"
            )
        words = (f"{word}{number_text(place[word] / UNIT_OF[word])}" for word in place)
        there = " ".join(word for word in words if word[0] not in "EF")
        return [f"G1 {there}", *(f"G1 {on.word}" for on in self.process_before(lines, first))]


def _steps(lines: Sequence[ReadLine], first: int) -> Iterator[Step]:
    """The steps of the lines before a line."""
    for line in lines[: first - 1]:
        yield from line.steps if isinstance(line.steps, list) else ()


class RecordFeed:
    """`LineRobot`. A refused record stops the robot: the server would skip it and go on."""

    def __init__(self, server: KukaGcodeServer) -> None:
        self._server = server
        self.stops = server.stops

    def has_room(self, opened: int, now: int) -> bool:
        return opened < self._server.records_ahead and bool(self._server.room())

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        if refused := self._server.motion_refusal():
            return refused
        steps = read_line(text, number)
        if isinstance(steps, Problem):
            return steps.refused()
        line, seq = number or BEFORE_FIRST, _number(self._server)
        for step in steps:
            self._server.submit(Record(seq, step.kind, step.words, line=line), now)
        return [line] * len(steps)

    def line(self, now: int) -> int:
        return self._server.line()

    def drop(self, now: int) -> None:
        """Drops the records: after a release the server would go on with them."""
        self._server.stop(now)

    def report_to(self, feed: LineFeed) -> None:
        def completed(record: Record, refusal: str, now: int) -> None:
            feed.finished(record.line, Refused(refusal) if refusal else None, now)
            if refusal:
                self.drop(now)

        self._server.on_program_record(completed)


def program_run(server: KukaGcodeServer) -> ProgramRun:
    start = server.model.start
    feed = LineFeed(
        KukaActions(server),
        RecordFeed(server),
        contacts=lambda now: server.tally(now).collisions_detected,
    )
    return ProgramRun(feed, RecordLanguage(start.tool, start.base))
