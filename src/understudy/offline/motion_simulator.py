"""MotionSimulator: a trajectory computed (dry run), or executed by a controller and logged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from understudy.errors import Refused
from understudy.gcode.blocks import number_text
from understudy.motion.path import Floats
from understudy.motion.plan import Motion
from understudy.offline.cycle_time import cycle_time_of
from understudy.offline.setup import Setup
from understudy.offline.walk import PlannedMotion
from understudy.offline.waypoints import Speeds, Waypoint, follow, tool_way
from understudy.ports import ControllerStatus, JointState
from understudy.space.given import given_positive, given_row
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM, NS_PER_SECOND, seconds

INTERNAL_RATE_HZ = 1000.0
"""Rate at which speeds are sampled for their maximum, whatever the rate of the log."""


STATE = ("positions", "velocities", "accelerations")


class Controller(Protocol):
    """A controller that executes a trajectory: lines of dialect `arm` in, joint states out."""

    def send_gcode(self, line: str, now: int) -> Refused | None: ...

    def joint_state(self, now: int) -> JointState: ...

    def status(self, now: int) -> ControllerStatus: ...

    def busy(self) -> bool: ...

    def next_wake(self) -> int | None: ...

    def wake(self, now: int) -> None: ...


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """`max_velocity` and `max_acceleration`: of the fastest joint, rad/s and rad/s²."""

    success: bool
    total_time_s: float
    max_velocity: float
    max_acceleration: float
    trajectory_log: tuple[JointState, ...]
    error_message: str = ""


class MotionSimulator:
    """Waypoints through the planner, or through a controller.

    `speeds`: of the tool where a waypoint has none. The log has a state every 1/`rate_hz` seconds
    and one at the end.
    """

    def __init__(
        self,
        setup: Setup,
        controller: Controller | None = None,
        *,
        speeds: Speeds = (None, None),
        rate_hz: float = INTERNAL_RATE_HZ,
    ) -> None:
        self._setup = setup
        self._controller = controller
        self._speeds = speeds
        self._rate_hz = given_positive(rate_hz, "rate_hz")
        self._recording = False
        self._recorded: list[JointState] = []

    def dry_run(
        self, waypoints: Sequence[Waypoint], start: Floats | None = None
    ) -> SimulationResult:
        """Computes the trajectory without executing it; skips unreachable waypoints, reports the
        first."""
        if start is not None:
            start = given_row(start, len(self._setup.mover.limits.velocity), "start")
        events = list(follow(waypoints, self._setup, self._speeds, start))
        cycle = cycle_time_of(events)
        runs = [event for event in events if isinstance(event, PlannedMotion)]
        motions = [_motion(run, self._rate_hz) for run in runs]
        log = tuple(state for logged, _ in motions for state in self._states(logged))
        extremes = [extreme for _, extreme in motions]
        return SimulationResult(
            success=not cycle.violations,
            total_time_s=cycle.total_s,
            max_velocity=_largest([motion.velocity for motion in extremes]),
            max_acceleration=_largest([motion.acceleration for motion in extremes]),
            trajectory_log=log,
            error_message=next((each.message for each in cycle.violations), ""),
        )

    def simulate_trajectory(self, waypoints: Sequence[Waypoint], now: int = 0) -> SimulationResult:
        """Executes the trajectory on the controller from ``now`` to its end.

        A refusal or a later error of the controller is the error of the result.
        """
        controller = self._controller
        if controller is None:
            raise ValueError(
                "there is no controller to execute the trajectory: give MotionSimulator one, "
                "or compute it with dry_run"
            )
        here = np.array(controller.joint_state(now).positions)
        for line in gcode_lines(waypoints, self._setup, self._speeds, here):
            refused = controller.send_gcode(line, now)
            if refused:
                return SimulationResult(False, 0.0, 0.0, 0.0, (), refused.reason)
        watch = _Recorder(controller, now, self._rate_hz)
        ended = watch.to_the_end()
        log = tuple(self._with_torques(watch.log))
        if self._recording:
            self._recorded += log
        problem = _problem(controller, ended)
        return SimulationResult(
            success=not problem,
            total_time_s=seconds(ended - now),
            max_velocity=watch.max_velocity,
            max_acceleration=watch.max_acceleration,
            trajectory_log=log,
            error_message=problem,
        )

    def _states(self, motion: Motion) -> Iterator[JointState]:
        """The states of a motion; torques are 0 if the setup has no dynamics."""
        dynamics = self._setup.dynamics
        torques = dynamics.torques(motion) if dynamics else np.zeros_like(motion.position)
        rows = zip(*(values.tolist() for values in (*motion, torques)), strict=True)
        return (JointState(tuple(q), tuple(v), tuple(a), tuple(t)) for q, v, a, t in rows)

    def _with_torques(self, log: Sequence[JointState]) -> Iterator[JointState]:
        """The states with computed torques, unless the controller reports its own."""
        if self._setup.dynamics is None or any(any(state.torques) for state in log):
            return iter(log)
        columns = ([getattr(state, name) for state in log] for name in STATE)
        return self._states(Motion(*(np.array(column) for column in columns)))

    # ── recording ──

    def start_recording(self) -> None:
        """Records what is executed from now on, over several trajectories."""
        self._recorded = []
        self._recording = True

    def stop_recording(self) -> None:
        self._recording = False

    def recorded_data(self) -> tuple[JointState, ...]:
        return tuple(self._recorded)


@dataclass(slots=True)
class _Recorder:
    """Runs a controller until it rests; samples it at the log rate, at the internal rate and at its
    wakes."""

    controller: Controller
    begin: int
    rate_hz: float
    log: list[JointState] = field(default_factory=list)
    max_velocity: float = 0.0
    max_acceleration: float = 0.0

    def to_the_end(self) -> int:
        """Runs to the end and returns its time; also ends if the controller has no next wake."""
        now, logged, looked = self.begin, 0, 0
        while self.controller.busy() and (wake := self.controller.next_wake()) is not None:
            while (due := min(self._tick(logged, self.rate_hz), self._tick(looked))) < wake:
                state = self._look(due)
                if due == self._tick(logged, self.rate_hz):
                    self.log.append(state)
                    logged += 1
                looked += due == self._tick(looked)
            now = wake
            self.controller.wake(now)
            self._look(now)
        self.log.append(self._look(now))
        return now

    def _tick(self, number: int, rate_hz: float = INTERNAL_RATE_HZ) -> int:
        return self.begin + round(number * NS_PER_SECOND / rate_hz)

    def _look(self, now: int) -> JointState:
        state = self.controller.joint_state(now)
        self.max_velocity = max(self.max_velocity, *map(abs, state.velocities))
        self.max_acceleration = max(self.max_acceleration, *map(abs, state.accelerations))
        return state


def _problem(controller: Controller, now: int) -> str:
    """Why the executed trajectory failed; empty if it did not."""
    status = controller.status(now)
    if status.error:
        return status.error_message
    if controller.busy() or status.state != "Idle":
        return f"the controller stopped before the end: {status.state}"
    return ""


def gcode_lines(
    waypoints: Sequence[Waypoint], setup: Setup, speeds: Speeds, start: Floats
) -> Iterator[str]:
    """The waypoints in dialect `arm`; joint moves at a speed of the tool become G93."""
    here, arc = start, False
    for waypoint in waypoints:
        if waypoint.process != arc:
            arc = waypoint.process
            yield "M3" if arc else "M5"
        speed = waypoint.speed if waypoint.speed is not None else speeds[waypoint.process]
        if isinstance(waypoint.target, Pose):
            yield _pose_line(waypoint.target, speed)
            continue
        target = np.array(waypoint.target)
        words = _words("ABCUVW", np.array(setup.mover.axes(target)))
        way = tool_way(setup.mover, here, target) if speed is not None else 0.0
        yield (
            f"G93 G1 {words} F{number_text(MINUTE * speed / way)}"
            if speed and way
            else f"G0 {words}"
        )
        here = target
    if arc:
        yield "M5"


def _pose_line(pose: Pose, speed: float | None) -> str:
    scale = np.array([MM] * 3 + [DEG] * 3)
    words = _words("XYZABC", np.array(pose) / scale)
    if speed is None:
        return f"G0 {words}"
    return f"G94 G1 {words} F{number_text(speed / MM * MINUTE)}"


def _words(letters: str, values: Floats) -> str:
    pairs = zip(letters, values.tolist(), strict=True)
    return " ".join(letter + number_text(round(value, 9)) for letter, value in pairs)


def _motion(run: PlannedMotion, rate_hz: float) -> tuple[Motion, Motion]:
    """States of a run on the grid of the log, with its end; and at the times of extreme speeds."""
    begins = run.plan.law.begins
    corners = np.concatenate([begins, np.nextafter(begins[1:], 0.0)])
    extremes = np.sort([*corners, *_grid(run, INTERNAL_RATE_HZ)])
    logged = np.append(_grid(run, rate_hz), run.plan.ends)
    return run.plan.sample(logged), run.plan.sample(extremes)


def _grid(run: PlannedMotion, rate_hz: float) -> Floats:
    first = np.ceil(run.plan.begins * rate_hz)
    return np.arange(first, run.plan.ends * rate_hz) / rate_hz


def _largest(values: Sequence[Floats]) -> float:
    return max((float(np.abs(each).max()) for each in values), default=0.0)
