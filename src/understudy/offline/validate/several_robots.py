"""Several robots in one proof: the programs of a cell on their time axes, pair by pair."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from understudy.motion.path import Floats
from understudy.offline.robot import Arm, Subject
from understudy.offline.shared_pins import Handshake
from understudy.offline.validate.report import (
    CLEARANCE,
    Finding,
    JudgeOptions,
    Meeting,
    PartContact,
    Report,
    RobotClearance,
)
from understudy.offline.walk import Event, PlannedMotion, Standstill, ToolMounted
from understudy.space.collision.arm_pair import PlacedArm
from understudy.space.collision.two_robots import (
    CloseLines,
    Proof,
    TimedPieces,
    TimedRobot,
    Wait,
    prove_apart,
    timed_path,
)
from understudy.units import MM

AS_PLANNED = 2e-3
"""Shift (s) below which a contact is one of the planned timing."""


class MotionRecord:
    """Records where a robot is at which time of its program, from the events of a walk."""

    def __init__(self, subject: Subject) -> None:
        assert subject.start is not None
        self._subject = subject
        self._start, tool = subject.start
        self._tools = [(0.0, tool)]
        self._parts: list[TimedPieces] = []
        self._begins: list[float] = [0.0]
        self._lines: list[int] = [0]

    def add(self, event: Event) -> None:
        if isinstance(event, PlannedMotion):
            self._mount(event.plan.begins, event.tool)
            law = event.plan.law
            path = event.plan.path
            columns = np.stack(law.columns(), axis=-1)
            part = TimedPieces(law.begins, law.piece, columns, path.shape, path.length)
            self._parts.append(part)
            numbers, begins = event.plan.lines()
            self._begins += begins.tolist()
            self._lines += numbers.tolist()
        elif isinstance(event, Standstill):
            self._begins.append(event.begins)
            self._lines.append(event.line)
        elif isinstance(event, ToolMounted):
            self._mount(event.time_s, event.tool)

    def _mount(self, when: float, tool: int) -> None:
        if tool != self._tools[-1][1]:
            self._tools.append((when, tool))

    def robot(self) -> tuple[TimedRobot, list[int]]:
        """The robot on its time axis, and the number of each of its lines."""
        outfits = [(when, self._arm(tool)) for when, tool in self._tools]
        begins, numbers = np.array(self._begins), np.array(self._lines)
        order = np.argsort(begins, kind="stable")
        begins, numbers = begins[order], numbers[order]
        first = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        numbers = numbers[first]
        if len(numbers) > 1:
            numbers[0] = numbers[0] or numbers[1]  # until the first line begins
        path = timed_path(np.asarray(self._start, dtype=np.float64), self._parts)
        return TimedRobot(path, outfits, begins[first]), numbers.tolist()

    def _arm(self, tool: int) -> PlacedArm:
        arm = self._subject.arm(tool)
        assert isinstance(arm, Arm)
        parts = arm.detector.moving_parts()
        return PlacedArm(arm.chain, arm.foot, parts, arm.limits.velocity)


@dataclass(frozen=True, eq=False)
class CheckedRobot:
    """A robot of the cell with its recorded motion; one without a ``program`` stands."""

    name: str
    program: str
    motion: TimedRobot
    numbers: Sequence[int]


@dataclass
class Met:
    """What the proofs add to the report of a robot."""

    violations: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    robots: list[RobotClearance] = field(default_factory=list)


def check_all(
    robots: Sequence[CheckedRobot],
    options: JudgeOptions,
    timing_s: float | None,
    handshakes: Iterable[Handshake],
    apart: Iterable[tuple[str, str]] = (),
) -> dict[str, Met]:
    """Proves every pair of robots, except those in ``apart``, which stand on one spot."""
    known, left_out = list(handshakes), {frozenset(pair) for pair in apart}
    met = {robot.name: Met() for robot in robots}
    for one, other in combinations(robots, 2):
        if frozenset((one.name, other.name)) not in left_out and (one.program or other.program):
            _check(one, other, options, timing_s, known, met)
    return met


def _check(
    one: CheckedRobot,
    other: CheckedRobot,
    options: JudgeOptions,
    timing_s: float | None,
    handshakes: Sequence[Handshake],
    met: dict[str, Met],
) -> None:
    wanted = CLEARANCE if options.clearance is None else max(options.clearance, CLEARANCE)
    waits = [] if timing_s is None else _waits(one.name, other.name, handshakes)
    proof = prove_apart(one.motion, other.motion, shift=timing_s, waits=waits, clearance=wanted)
    for mine, its, turned in ((one, other, False), (other, one, True)):
        own = met[mine.name]
        for group in _groups(proof.places):
            found = _finding(mine, its, group, turned, wanted, timing_s)
            strict = options.strict or options.clearance is not None
            touches = group[0].distance <= 0.0
            (own.violations if touches or strict else own.warnings).append(found)
        if not proof.finished:
            text = f"the clearance to {its.name} could not be decided everywhere"
            found = Finding(max(mine.numbers[0], 1), "collision", text)
            (own.violations if options.strict else own.warnings).append(found)
        own.robots.append(_clearance(mine, its, proof, turned, timing_s, len(waits)))


def _waits(one: str, other: str, handshakes: Sequence[Handshake]) -> list[Wait]:
    order = (one, other)
    return [
        Wait(order.index(each.waits), each.passed, each.signal)
        for each in handshakes
        if {each.waits, each.signals} == {one, other}
    ]


def _groups(places: Sequence[CloseLines]) -> list[list[CloseLines]]:
    """Contacts of the same shapes on neighbouring lines are one; that with the least shift, and
    then the earliest, comes first."""
    groups: list[list[CloseLines]] = []
    for place in sorted(places, key=lambda each: each.times):
        for group in groups:
            touches = (place.distance <= 0.0) == (group[0].distance <= 0.0)
            near = any(_beside(place.lines, each.lines) for each in group)
            if touches and near and place.names == group[0].names:
                group.append(place)
                break
        else:
            groups.append([place])
    for group in groups:
        group.sort(key=lambda each: (round(abs(each.shift) / AS_PLANNED), each.times))
    return groups


def _beside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return abs(one[0] - other[0]) <= 1 and abs(one[1] - other[1]) <= 1


def _finding(
    mine: CheckedRobot,
    its: CheckedRobot,
    group: Sequence[CloseLines],
    turned: bool,
    wanted: float,
    timing_s: float | None,
) -> Finding:
    """The finding of some places for one of both robots."""
    first, k = group[0], int(turned)
    line, other_line = mine.numbers[first.lines[k]], its.numbers[first.lines[1 - k]]
    names = first.names[k], f"{its.name}.{first.names[1 - k]}"
    late = (first.times[k] - first.times[1 - k]) if its.program else 0.0
    x, y, z = (value / MM for value in first.point)
    did = (
        f"{names[0]} touches {names[1]}"
        if first.distance <= 0.0
        else f"{names[0]} comes closer than {wanted / MM:g} mm to {names[1]}"
    )
    when = f"at {first.times[k]:.3f} s"
    where = f" at ({x:.1f}, {y:.1f}, {z:.1f}) mm"
    what = f" on line {other_line} of {its.program}" if its.program else ", which stands"
    lines = sorted({mine.numbers[each.lines[k]] for each in group})
    text = f"line {line}: {did}{where}{what}, {when}"
    if timing_s is not None and its.program:
        text += _shifted(its.name, late)
    goes_on = timing_s is None and lines[-1] > line
    return Finding(
        line,
        "collision",
        text,
        time_s=first.times[k],
        last=lines[-1] if goes_on else None,
        contact=PartContact(names, first.point, first.depth, first.times[k]),
        meeting=Meeting(its.name, its.program, other_line, first.times[1 - k], late),
    )


def _shifted(robot: str, late: float) -> str:
    if abs(late) < AS_PLANNED:
        return ", in the planned timing"
    return f", if {robot} is {abs(late):.3f} s {'later' if late > 0.0 else 'earlier'} than planned"


def _clearance(
    mine: CheckedRobot,
    its: CheckedRobot,
    proof: Proof,
    turned: bool,
    timing_s: float | None,
    handshakes: int,
) -> RobotClearance:
    k = int(turned)
    return RobotClearance(
        robot=its.name,
        program=its.program,
        timing_s=timing_s,
        clearance=proof.clearance if proof.finished else None,
        seen=proof.seen,
        objects=(proof.names[k], proof.names[1 - k]),
        line=_line_at(mine, proof.seen_at[k]),
        other_line=_line_at(its, proof.seen_at[1 - k]),
        handshakes=handshakes,
    )


def _line_at(robot: CheckedRobot, t: float) -> int:
    lines: Floats = robot.motion.lines
    return robot.numbers[max(int(np.searchsorted(lines, t, side="right")) - 1, 0)]


def with_others(report: Report, met: Met) -> Report:
    """The report of a robot with what was found about the others."""

    def ordered(found: Sequence[Finding], more: Sequence[Finding]) -> tuple[Finding, ...]:
        return tuple(sorted((*found, *more), key=lambda each: (each.line, each.time_s)))

    return replace(
        report,
        violations=ordered(report.violations, met.violations),
        warnings=ordered(report.warnings, met.warnings),
        robots=tuple(met.robots),
        notes=(*report.notes, *(each.text() for each in met.robots)),
    )
