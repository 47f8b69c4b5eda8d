"""The simulated text robot: a free pose that moves continuously, in a fixed time per kind of move.

One motion runs at a time, in the order of submission. The states are in `TRANSITIONS`;
docs/robots/text_robot.md has the diagram.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError, Refused
from understudy.ports import Deps, FaultSource, Finished, Tally, Ticket
from understudy.ports.faults import EMERGENCY_STOP, Fault, Faults, Figure
from understudy.ports.hmi import RobotView
from understudy.robots.text_robot.interface import (
    OUTSIDE,
    OVERHEATED,
    STATE_ERROR,
    STOPPED,
    TEMPERATURE_ERROR,
    PoseReading,
)
from understudy.space.pose import Pose, interpolated, pose_of
from understudy.units import DEG, MM, NS_PER_MS, NS_PER_SECOND

Percent = Annotated[int, Meta(ge=0, le=100)]
Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
PoseMmDeg = tuple[float, float, float, float, float, float]
RangeMm = tuple[float, float]
Kind = Literal["move_abs", "move_rel", "home"]
RobotState = Literal["Idle", "Moving", "Homing", "EmergencyStopped"]

TRANSITIONS: Mapping[tuple[RobotState, str], RobotState] = {
    ("Idle", "move"): "Moving",
    ("Idle", "home"): "Homing",
    ("Moving", "finished"): "Idle",
    ("Homing", "finished"): "Idle",
    ("Idle", "stop"): "EmergencyStopped",
    ("Moving", "stop"): "EmergencyStopped",
    ("Homing", "stop"): "EmergencyStopped",
    ("EmergencyStopped", "stop"): "EmergencyStopped",
    ("EmergencyStopped", "reset"): "Idle",
}
EVENT_OF: Mapping[Kind, str] = {"move_abs": "move", "move_rel": "move", "home": "home"}

FAULTS: Faults = {
    **EMERGENCY_STOP,
    "overheat": Fault("brought", "error code 6 (temperature) until reset"),
    "position_noise": Fault(
        "asked",
        "readings of the pose deviate, evenly within ± the amplitude",
        {"amplitude_mm": Figure(0.1, 0.0, 1000.0), "amplitude_deg": Figure(0.1, 0.0, 180.0)},
        ambient=True,
    ),
    "temperature_noise": Fault(
        "asked",
        "readings of the temperature deviate, evenly within ± the amplitude",
        {"amplitude_c": Figure(0.2, 0.0, 100.0)},
        ambient=True,
    ),
}
FARTHEST = 1e300  # metres; beyond it the difference of two poses overflows


# ── configuration ───────────────────────────────────────────────────────────────────────────────


class EnvelopeMm(Struct, frozen=True, forbid_unknown_fields=True):
    """The box in which targets are allowed."""

    x: RangeMm = (-500.0, 500.0)
    y: RangeMm = (-500.0, 500.0)
    z: RangeMm = (0.0, 1000.0)


class LoadConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Load at rest, in each kind of move and in emergency stop, in percent."""

    idle: Percent = 10
    move_abs: Percent = 75
    move_rel: Percent = 50
    home: Percent = 60
    stopped: Percent = 0


class TemperatureConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Temperature approaches `idle` at rest and `moving` in motion, with one time constant."""

    lowest: float = 25.0
    highest: float = 30.0
    idle: float = 26.0
    moving: float = 29.5
    time_constant_s: Annotated[float, Meta(gt=0)] = 60.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The text robot in a cell file."""

    start_mm_deg: PoseMmDeg = (0.0, 0.0, 100.0, 0.0, 0.0, 0.0)
    home_mm_deg: PoseMmDeg = (0.0, 0.0, 100.0, 0.0, 0.0, 0.0)
    move_abs_ms: Milliseconds = 500
    move_rel_ms: Milliseconds = 200
    home_ms: Milliseconds = 1000
    envelope_mm: EnvelopeMm | None = None
    load_percent: LoadConfig = LoadConfig()
    temperature_c: TemperatureConfig = TemperatureConfig()


def check(config: Config) -> None:
    """Raises a `ConfigError` for values that do not fit together."""
    box, temperature = config.envelope_mm, config.temperature_c
    for axis, value in zip("xyz", config.home_mm_deg[:3], strict=True):
        low, high = getattr(box, axis) if box else (value, value)
        if not low <= value <= high:
            raise ConfigError(
                "home is outside the envelope, or the envelope is empty",
                key=f"envelope_mm.{axis}",
                value=[low, high],
                allowed=f"lower bound first, {value:g} inside",
            )
    for name, value in (("idle", temperature.idle), ("moving", temperature.moving)):
        if not temperature.lowest <= value <= temperature.highest:
            raise ConfigError(
                "out of range",
                key=f"temperature_c.{name}",
                value=value,
                allowed=f"lowest…highest, here {temperature.lowest:g}…{temperature.highest:g}",
            )


# ── state ───────────────────────────────────────────────────────────────────────────────────────


class QueuedMove(Struct, frozen=True):
    """A move in the queue. A relative target is relative to the pose at which the move begins."""

    ticket: Ticket
    kind: Kind
    target: Pose


class Motion(Struct, frozen=True):
    """The running move: planned once, sampled at any time."""

    ticket: Ticket
    kind: Kind
    start: Pose
    end: Pose
    begins: int
    ends: int

    def at(self, now: int) -> Pose:
        done = min(max((now - self.begins) / (self.ends - self.begins), 0.0), 1.0)
        return interpolated(self.start, self.end, done**3 * (10.0 - 15.0 * done + 6.0 * done**2))


class PoseState(Struct, kw_only=True):
    """The state of the robot. `rest`: the pose at which the last motion ended. `temperature` is the
    one at the time `temperature_at`; `inhibited`: the cell is stopped; `emergency`: the robot
    itself is in emergency stop; `overheated`: the temperature fault was not reset."""

    state: RobotState = "Idle"
    rest: Pose
    motion: Motion | None = None
    queue: list[QueuedMove] = []
    next_ticket: int = 1
    stops: int = 0
    error_code: int = 0
    temperature: float
    temperature_at: int = 0
    inhibited: bool = False
    emergency: bool = False
    overheated: bool = False
    moves_done: int = 0
    distance: float = 0.0


class TextRobot:
    """`PoseRobot`, `Component` and `Injectable`."""

    def __init__(self, name: str, config: Config, fault_source: FaultSource) -> None:
        self._name = name
        self._config = config
        self._fault_source = fault_source
        self._durations: Mapping[Kind, int] = {
            "move_abs": config.move_abs_ms * NS_PER_MS,
            "move_rel": config.move_rel_ms * NS_PER_MS,
            "home": config.home_ms * NS_PER_MS,
        }
        self._loads: Mapping[Kind, int] = {
            "move_abs": config.load_percent.move_abs,
            "move_rel": config.load_percent.move_rel,
            "home": config.load_percent.home,
        }
        self._listeners: list[Finished] = []
        self._command_listeners: list[Callable[[str, int], None]] = []
        start = pose_of(config.start_mm_deg)
        self.state = PoseState(rest=start, temperature=config.temperature_c.idle)

    # ── requests ──

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused:
        return self._submit("move_abs", pose, now)

    def move_by(self, dx: float, dy: float, dz: float, now: int) -> Ticket | Refused:
        return self._submit("move_rel", Pose(dx, dy, dz, 0.0, 0.0, 0.0), now)

    def home(self, now: int) -> Ticket | Refused:
        return self._submit("home", pose_of(self._config.home_mm_deg), now)

    def stop(self, now: int) -> None:
        self.state.emergency = True
        self._abort(now)

    def halt(self, now: int) -> None:
        """Ends all moves and accepts new ones; an emergency stop or a fault stays."""
        if self.stopped() is None:
            self._abort(now)
            self._release(now)

    def _abort(self, now: int) -> None:
        """Refuses the running and all queued moves; no move is accepted then."""
        self.state.stops += 1
        tickets = [self.state.motion.ticket] if self.state.motion else []
        tickets += [move.ticket for move in self.state.queue]
        self.state.distance = self._distance_at(now)
        self.state.rest = self.tcp(now)
        self._enter("stop", now)
        self.state.motion = None
        self.state.queue.clear()
        for ticket in tickets:
            self._finish(ticket, STOPPED, now)

    def reset(self, now: int) -> None:
        """Clears faults; while the cell is stopped the state stays EmergencyStopped."""
        self.state.error_code = 0
        self.state.emergency = self.state.overheated = False
        self._release(now)

    # ── supervised ──

    def inhibit_motion(self, now: int) -> None:
        """Stops as an emergency stop does: clients of this robot know no other."""
        self.state.inhibited = True
        self._abort(now)

    def permit_motion(self, now: int) -> None:
        self.state.inhibited = False
        if not self.state.emergency:
            self._release(now)

    def fault(self, now: int) -> Refused | None:
        if self.state.emergency:
            return STOPPED
        return OVERHEATED if self.state.overheated else None

    def _release(self, now: int) -> None:
        if not self.state.inhibited and (self.state.state, "reset") in TRANSITIONS:
            self._enter("reset", now)

    # ── errors ──

    def note_error(self, code: int) -> None:
        self.state.error_code = code

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each move, from a client, an operator or a program."""
        self._command_listeners.append(listener)

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    # ── readings ──

    def stops(self) -> int:
        return self.state.stops

    def stopped(self) -> Refused | None:
        return STOPPED if self.state.state == "EmergencyStopped" else None

    def reading(self, now: int) -> PoseReading:
        pose = self.tcp(now)
        if active := self._fault_source.draw_fault("position_noise", self._name, now):
            mm, deg = active.parameters["amplitude_mm"], active.parameters["amplitude_deg"]
            scale = (mm * MM,) * 3 + (deg * DEG,) * 3
            noise = self._fault_source.deviations(active, 6)
            pose = Pose(*(p + s * n for p, s, n in zip(pose, scale, noise, strict=True)))
        temperature = self._temperature(now)
        if active := self._fault_source.draw_fault("temperature_noise", self._name, now):
            noise = self._fault_source.deviations(active, 1)
            temperature += active.parameters["amplitude_c"] * noise[0]
        limits = self._config.temperature_c
        return PoseReading(
            pose=pose,
            state=self.state.state,
            temperature_c=min(max(temperature, limits.lowest), limits.highest),
            error_code=self.state.error_code,
            load_percent=self._load(),
        )

    def tcp(self, now: int) -> Pose:
        """The true pose, without noise."""
        return self.state.motion.at(now) if self.state.motion else self.state.rest

    def view(self, now: int) -> RobotView:
        return RobotView((), self.tcp(now), self.state.state, moving=self.state.motion is not None)

    def status(self, now: int) -> PoseReading:
        """A reading without noise."""
        return PoseReading(
            self.tcp(now),
            self.state.state,
            self._temperature(now),
            self.state.error_code,
            self._load(),
        )

    def tally(self, now: int) -> Tally:
        """Moves that were completed, and the path of the tool."""
        return Tally(gcode_executed=self.state.moves_done, distance=self._distance_at(now))

    def _distance_at(self, now: int) -> float:
        motion, distance = self.state.motion, self.state.distance
        if motion is None:
            return distance
        return distance + math.dist(motion.start[:3], motion.at(now)[:3])

    # ── time ──

    def next_wake(self) -> int | None:
        return self.state.motion.ends if self.state.motion else None

    def wake(self, now: int) -> None:
        motion = self.state.motion
        if motion is None or now < motion.ends:
            return
        self.state.distance += math.dist(motion.start[:3], motion.end[:3])
        self.state.moves_done += 1
        self.state.rest = motion.end
        self._enter("finished", now)
        self.state.motion = None
        self._finish(motion.ticket, None, now)
        self._begin_next(now)

    def busy(self) -> bool:
        return self.state.motion is not None

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "emergency_stop":
            self.stop(now)
        elif fault == "emergency_release":
            self.reset(now)
        elif fault == "overheat":
            self.state.overheated = True
            self.note_error(TEMPERATURE_ERROR)
        else:
            allowed = ", ".join(name for name, each in FAULTS.items() if each.how == "brought")
            return Refused(f"{fault} cannot be injected into {self._name}; allowed: {allowed}")
        return None

    # ── the queue ──

    def _submit(self, kind: Kind, target: Pose, now: int) -> Ticket | Refused:
        for listener in self._command_listeners:
            listener(kind.upper(), now)
        if self.state.state == "EmergencyStopped":
            self.state.error_code = STATE_ERROR
            return STOPPED
        # The end of a relative move is unknown as long as another motion runs before it.
        end_is_known = kind != "move_rel" or self.state.motion is None
        if end_is_known and self._is_outside(self._end_of(kind, target)):
            self.state.error_code = OUTSIDE.code
            return OUTSIDE
        ticket = Ticket(self.state.next_ticket)
        self.state.next_ticket += 1
        self.state.queue.append(QueuedMove(ticket, kind, target))
        if self.state.motion is None:
            self._begin_next(now)
        return ticket

    def _begin_next(self, now: int) -> None:
        while self.state.queue and self.state.motion is None:
            move = self.state.queue.pop(0)
            end = self._end_of(move.kind, move.target)
            if self._is_outside(end):
                self._finish(move.ticket, OUTSIDE, now)
                continue
            self._enter(EVENT_OF[move.kind], now)
            ends = now + self._durations[move.kind]
            self.state.motion = Motion(move.ticket, move.kind, self.state.rest, end, now, ends)

    def _end_of(self, kind: Kind, target: Pose) -> Pose:
        """The end of a motion that begins now."""
        if kind != "move_rel":
            return target
        return Pose(*(a + b for a, b in zip(self.state.rest, target, strict=True)))

    def _enter(self, event: str, now: int) -> None:
        """Changes the state. To be called before the motion changes: the temperature up to now
        depends on the motion up to now."""
        self.state.temperature = self._temperature(now)
        self.state.temperature_at = now
        self.state.state = TRANSITIONS[self.state.state, event]

    def _finish(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        if outcome is not None:
            self.state.error_code = outcome.code
        for listener in self._listeners:
            listener(ticket, outcome, now)

    # ── inside ──

    def _temperature(self, now: int) -> float:
        config = self._config.temperature_c
        goal = config.moving if self.state.motion else config.idle
        passed = (now - self.state.temperature_at) / NS_PER_SECOND / config.time_constant_s
        return goal + (self.state.temperature - goal) * math.exp(-passed)

    def _load(self) -> int:
        load = self._config.load_percent
        if self.state.motion is not None:
            return self._loads[self.state.motion.kind]
        return load.stopped if self.state.state == "EmergencyStopped" else load.idle

    def _is_outside(self, pose: Pose) -> bool:
        box = self._config.envelope_mm
        if any(abs(value) > FARTHEST for value in pose):
            return True
        if box is None:
            return False
        sides = zip(pose[:3], (box.x, box.y, box.z), strict=True)
        return any(not low * MM <= value <= high * MM for value, (low, high) in sides)


def build(name: str, config: Config, deps: Deps) -> TextRobot:
    check(config)
    return TextRobot(name, config, deps.fault_source)
