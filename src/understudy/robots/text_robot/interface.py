"""The text robot as its face, its operator and its clients see it, simulated or real."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.space.pose import Pose, pose_of
from understudy.units import MM

TIMEOUT_ERROR, ENVELOPE_ERROR, PARAMETER_ERROR, STATE_ERROR = 1, 2, 3, 4
CONNECTION_ERROR, TEMPERATURE_ERROR = 5, 6
"""Error codes of the contract, as GET_STATUS reports them."""

STOPPED = Refused("Robot in emergency stop state", code=STATE_ERROR)
OVERHEATED = Refused("Temperature too high: reset first", code=TEMPERATURE_ERROR)
OUTSIDE = Refused("Target outside work envelope", code=ENVELOPE_ERROR)


@dataclass(frozen=True, slots=True)
class PoseReading:
    """What the robot reports about itself."""

    pose: Pose
    state: str
    temperature_c: float
    error_code: int
    load_percent: int


class PoseMover(Protocol):
    """Moves a free Cartesian pose; requests of several clients run one after the other."""

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused: ...

    def move_by(self, dx: float, dy: float, dz: float, now: int) -> Ticket | Refused: ...

    def home(self, now: int) -> Ticket | Refused: ...

    def stop(self, now: int) -> None:
        """Emergency stop: refuses the running and all queued moves before it returns."""
        ...

    def halt(self, now: int) -> None:
        """Ordinary stop of an operator. The protocol has none: it is a STOP, and a RESET where the
        STOP is certain to have arrived. A driver leaves the RESET to the operator."""
        ...

    def reset(self, now: int) -> None:
        """Clears the emergency stop and the error code."""
        ...


def submit_move(robot: PoseMover, verb: str, values: Sequence[float], now: int) -> Ticket | Refused:
    """Submits a command that moves; its values are in millimetres and degrees."""
    if verb == "HOME":
        return robot.home(now)
    if verb == "MOVE_REL":
        dx, dy, dz = (value * MM for value in values)
        return robot.move_by(dx, dy, dz, now)
    return robot.move_to(pose_of(values), now)


class PoseSource(Protocol):
    """Reports the state of the robot, and the end of every ticket."""

    def reading(self, now: int) -> PoseReading:
        """Pose and temperature as the sensors measure them: with the noise of scenario rules."""
        ...

    def stopped(self) -> Refused | None:
        """The reason why no motion is accepted now, if there is one."""
        ...

    def fault(self, now: int) -> Refused | None:
        """The emergency stop or fault that no reset has cleared yet."""
        ...

    def stops(self) -> int:
        """Number of emergency stops so far. A RESET from before the last stop has no effect."""
        ...

    def note_error(self, code: int) -> None:
        """Sets the error code that the robot reports until reset."""
        ...

    def on_finished(self, listener: Finished) -> None: ...


class PoseRobot(PoseMover, PoseSource, Protocol):
    """A robot without joints, simulated or real."""
