"""The documents' MotionSimulator: a trajectory reckoned (dry run), or executed and watched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from understudy.errors import Refused
from understudy.gcode.words import number_text
from understudy.jobs.setup import Setup
from understudy.jobs.walk import Run, Violation
from understudy.jobs.waypoints import Speeds, Waypoint, follow, tool_way
from understudy.motion.path import Floats
from understudy.motion.plan import Motion
from understudy.ports import JointState
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM, NS_PER_SECOND, seconds

INTERNAL_RATE_HZ = 1000.0


class Controller(Protocol):
    """What executes a trajectory: lines of dialect `seed` in, joint states out."""

    def send_gcode(self, line: str, now: int) -> Refused | None: ...

    def joint_state(self, now: int) -> JointState: ...

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
        self._rate_hz = rate_hz
        self._recording = False
        self._recorded: list[JointState] = []

    def dry_run(
        self, waypoints: Sequence[Waypoint], start: Floats | None = None
    ) -> SimulationResult:
        """Calculated, nothing executed. A waypoint out of reach is left out; the first is told."""
        runs: list[Run] = []
        problem = ""
        for event in follow(waypoints, self._setup, self._speeds, start):
            if isinstance(event, Violation) and not problem:
                problem = event.message
            elif isinstance(event, Run):
                runs.append(event)
        motions = [_motion(run, self._rate_hz) for run in runs]
        log = tuple(state for logged, _ in motions for state in _states(logged))
        extremes = [extreme for _, extreme in motions]
        return SimulationResult(
            success=not problem,
            total_time_s=runs[-1].plan.ends if runs else 0.0,
            max_velocity=_largest([motion.velocity for motion in extremes]),
            max_acceleration=_largest([motion.acceleration for motion in extremes]),
            trajectory_log=log,
            error_message=problem,
        )

    def simulate_trajectory(self, waypoints: Sequence[Waypoint], now: int = 0) -> SimulationResult:
        """Executed by the controller from ``now`` on, which is brought to the trajectory's end."""
        controller = self._controller
        assert controller is not None, "a dry run needs no controller, an execution does"
        here = np.array(controller.joint_state(now).positions)
        for line in gcode_lines(waypoints, self._setup, self._speeds, here):
            refused = controller.send_gcode(line, now)
            if refused:
                return SimulationResult(False, 0.0, 0.0, 0.0, (), refused.reason)
        log = list(self._watched(controller, now))
        if self._recording:
            self._recorded += [state for _, state in log]
        states = tuple(state for _, state in log)
        return SimulationResult(
            success=True,
            total_time_s=seconds(log[-1][0] - now),
            max_velocity=_largest([np.array(state.velocities) for state in states]),
            max_acceleration=_largest([np.array(state.accelerations) for state in states]),
            trajectory_log=states,
        )

    # ── recording ──

    def start_recording(self) -> None:
        """Keep what is executed from here on, over several trajectories."""
        self._recorded = []
        self._recording = True

    def stop_recording(self) -> None:
        self._recording = False

    def recorded_data(self) -> tuple[JointState, ...]:
        return tuple(self._recorded)

    def _watched(self, controller: Controller, begin: int) -> Iterator[tuple[int, JointState]]:
        """Wake by wake, with a look at every tick between; the last look is at the end."""
        now, tick = begin, 0
        while controller.busy():
            wake = controller.next_wake()
            assert wake is not None, "what is under way has a next moment"
            while (due := begin + round(tick * NS_PER_SECOND / self._rate_hz)) < wake:
                yield due, controller.joint_state(due)
                tick += 1
            now = wake
            controller.wake(now)
        yield now, controller.joint_state(now)


def gcode_lines(
    waypoints: Sequence[Waypoint], setup: Setup, speeds: Speeds, start: Floats
) -> Iterator[str]:
    """The waypoints in dialect `seed`; joint moves at a speed of the tool become G93."""
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
        words = _words("ABCUVW", target / DEG)
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


def _motion(run: Run, rate_hz: float) -> tuple[Motion, Motion]:
    """The states of a run on the grid, with its end; and where speeds are at their extremes."""
    plan = run.plan
    first = np.ceil(plan.begins * rate_hz)
    grid = np.arange(first, plan.ends * rate_hz) / rate_hz
    corners = np.concatenate([plan.law.begins, np.nextafter(plan.law.begins[1:], 0.0)])
    return plan.sample(np.append(grid, plan.ends)), plan.sample(np.sort([*corners, *grid]))


def _states(motion: Motion) -> Iterator[JointState]:
    nothing = (0.0,) * motion.position.shape[1]
    rows = zip(*(values.tolist() for values in motion), strict=True)
    return (JointState(tuple(q), tuple(v), tuple(a), nothing) for q, v, a in rows)


def _largest(values: Sequence[Floats]) -> float:
    return max((float(np.abs(each).max()) for each in values), default=0.0)
