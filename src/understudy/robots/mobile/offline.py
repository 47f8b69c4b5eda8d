"""Missions of mobile robots without a running cell: the runs of the runtime itself, recorded.

No closed form says where a robot is: it drives by a controller on a grid of ticks, on a route of
the planner, and stops for obstacles. So all mobile robots of the cell run with simulated hardware
on virtual time, and their true poses are recorded at every tick. Within a tick a robot moves on an
arc at constant speeds; the record is the chord of it, and the body is larger by the distance of
both (`Recording.error`), so that it encloses the robot at every time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.agenda import ClockState, advance
from understudy.config.cell import grouped
from understudy.offline.recorded_run import RecordedLine, RecordedRun
from understudy.offline.validate.report import Finding
from understudy.ports import Deps, FaultSource, Run
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.group import SimulatedHardware, build
from understudy.robots.mobile.mission import MissionLine, MissionTask, mission_tasks, read_mission
from understudy.robots.mobile.robot import body_of
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.space.collision.two_robots import TimedPieces, TimedRobot, timed_path
from understudy.space.collision.vehicle import placed_vehicle
from understudy.units import NS_PER_SECOND, nanoseconds, seconds

if TYPE_CHECKING:
    from understudy.config import CellConfig

Floats = NDArray[np.float64]
KIND = "mobile"
LONGEST_S = 3600.0
"""Simulated time after which missions that have not ended are left."""
FAILED = "task.failed"


def recorded_runs(
    config: "CellConfig", missions: Mapping[str, str | bytes], faults: FaultSource, run: Run
) -> dict[str, RecordedRun]:
    """The runs of all mobile robots of a cell; those without a mission stand.

    All missions begin at the first tick. One with a mistake is not begun.
    """
    robots = grouped(config.robots)[KIND]
    deps = Deps(faults, config.read_file, ClockState(), run=run)
    group = build(robots, config.sections, deps)
    fleet, hardware = group.parts["fleet"], group.parts["fleet.hardware"]
    assert isinstance(fleet, Fleet)
    assert isinstance(hardware, SimulatedHardware)
    hardware.surround(config.environment(), None)
    fleet.set_connected(True, 0)
    advance([fleet], 0)
    layout = fleet.layout
    lines = {name: read_mission(text) for name, text in missions.items()}
    recordings = {
        name: Recording(name, row, layout, lines.get(name, []))
        for name, row in layout.robot_rows.items()
        if layout.robots[row].runtime.mode == "MOCK"
    }
    begun = [each for each in recordings.values() if each.begin(fleet)]
    fleet.on_robot_event(
        lambda robot, kind, details, now: (
            recordings[robot].note(kind, details, now) if robot in recordings else None
        )
    )
    now = 0
    while True:
        for each in recordings.values():
            each.add(fleet, hardware, now)
        running = any(each.is_running for each in begun)
        wake = fleet.next_wake()
        if not running or wake is None or wake > nanoseconds(LONGEST_S):
            break
        now = wake
        advance([fleet], now)
    return {name: each.run(now) for name, each in recordings.items()}


@dataclass(eq=False)
class Recording:
    """A robot that is recorded."""

    name: str
    row: int
    layout: Layout
    lines: list[MissionLine]
    tasks: list[MissionTask] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    poses: list[tuple[float, float, float]] = field(default_factory=list)
    begins: list[tuple[int, int]] = field(default_factory=list)
    """The time at which a line begins, and its number."""
    findings: list[Finding] = field(default_factory=list)
    ended: int = 0
    """Tasks that have ended."""
    at: int = 0
    """The time of the last change: the program ends there."""

    @property
    def is_running(self) -> bool:
        return self.ended < len(self.tasks)

    def begin(self, fleet: Fleet) -> bool:
        """Gives the robot its tasks; False if there are none, or a line is wrong."""
        wrong = [line for line in self.lines if line.problem]
        self.findings += [
            Finding(line.number, "syntax", f"line {line.number}: {line.problem}") for line in wrong
        ]
        tasks = [] if wrong else mission_tasks(self.lines, f"validate-{self.name}")
        for task in tasks:
            refused = fleet.request(self.row, "task.assign", task.payload, 0)
            if refused is not None:
                line = task.lines[0]
                self.findings.append(Finding(line, "process", f"line {line}: {refused.reason}"))
                return False
        self.tasks = tasks
        return bool(tasks)

    def note(self, kind: str, details: Mapping[str, object], now: int) -> None:
        """The end of a task; what is below is called at every event of the robot."""
        names = [task.payload["taskId"] for task in self.tasks]
        if kind not in ("task.done", FAILED) or details.get("taskId") not in names:
            return
        self.ended += 1
        self.at = now
        if kind == FAILED:
            line = self.begins[-1][1] if self.begins else self.tasks[0].lines[0]
            why = " ".join(str(details[k]) for k in ("errorCode", "errorMessage") if k in details)
            text = f"line {line}: the robot fails at {seconds(now):.3f} s: {why}"
            self.findings.append(Finding(line, "process", text, time_s=seconds(now)))

    def add(self, fleet: Fleet, hardware: SimulatedHardware, now: int) -> None:
        """The pose after a tick of this robot, and the line that it is on."""
        if self.times and fleet.last_tick(self.row) != now:
            return  # a tick of robots with another rate
        assert hardware.graph.mock is not None
        pose = hardware.graph.mock.pose(self.row)
        if self.times:
            hz = self.layout.robots[self.row].runtime.tick_hz
            number = now * hz // NS_PER_SECOND
            before = -(-(number - 1) * NS_PER_SECOND // hz)
            if before > self.times[-1]:  # ticks were left out while it stood
                self.times.append(before)
                self.poses.append(self.poses[-1])
        self.times.append(now)
        self.poses.append(pose)
        for reading in fleet.robot(self.row).tasks.readings() if self.tasks else ():
            if reading.running:
                task = next(t for t in self.tasks if t.payload["taskId"] == reading.task)
                line = task.lines[min(reading.done, len(task.lines) - 1)]
                if not self.begins or self.begins[-1][1] != line:
                    self.begins.append((now, line))

    # ── what was recorded ──

    def path(self) -> tuple[Floats, Floats, float]:
        """Times in seconds, poses without jumps of the yaw, and how far a point of the robot can be
        from the record between two of them."""
        times, poses = np.array(self.times) / NS_PER_SECOND, np.array(self.poses)
        poses[:, 2] = np.unwrap(poses[:, 2])
        steps = np.diff(poses, axis=0)
        moves = np.concatenate([[True], (steps != 0.0).any(axis=1), [True]])
        kept = moves[:-1] | moves[1:]  # the middle of a rest needs no record
        # The distance of an arc to its chord, at the same share of both, is at most an eighth of
        # the length of the arc times its angle.
        half = np.abs(steps[:, 2]) / 2.0
        arcs = np.hypot(steps[:, 0], steps[:, 1]) / np.sinc(half / math.pi)
        error = float((arcs * half / 4.0).max(initial=0.0))
        return times[kept], poses[kept], error

    def run(self, now: int) -> RecordedRun:
        if self.is_running:
            line = self.begins[-1][1] if self.begins else 1
            text = f"line {line}: the mission has not ended after {seconds(now):.0f} s"
            self.findings.append(Finding(line, "process", text, time_s=seconds(now)))
        times, poses, error = self.path()
        body = body_of(self.layout.robots[self.row])
        vehicle = placed_vehicle(body, margin=error)
        count = len(times) - 1
        spans = np.diff(times)
        law = np.zeros((count, 4))
        law[:, 1] = 1.0 / spans
        shape = np.stack([poses[:-1], np.diff(poses, axis=0)], axis=1)
        piece = np.arange(count)
        parts = [TimedPieces(times, piece, law, shape, np.ones(count))] if count else []
        begins = [(0, self.begins[0][1]), *self.begins[1:]] if self.begins else [(0, 0)]
        motion = TimedRobot(
            timed_path(poses[0], parts),
            [(0.0, vehicle)],
            np.array([seconds(at) for at, _ in begins]),
        )
        way = float(np.hypot(*np.diff(poses[:, :2], axis=0).T).sum())
        return RecordedRun(
            motion,
            [line for _, line in begins],
            self._rows(begins),
            tuple(self.findings),
            way,
            seconds(self.at),
            error,
        )

    def _rows(self, begins: list[tuple[int, int]]) -> list[RecordedLine]:
        """The lines that were begun, with their times."""
        texts = {line.number: line.text for line in self.lines}
        ends = [at for at, _ in begins[1:]] + [self.at]
        return [
            RecordedLine(number, texts[number], seconds(at), seconds(max(end, at)))
            for (at, number), end in zip(begins, ends, strict=True)
            if number in texts
        ]
