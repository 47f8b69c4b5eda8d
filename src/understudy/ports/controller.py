"""Protocols of an arm's controller, simulated or real: the documents' IMotionController.

Every call returns at once; progress comes with time. Angles are rad, speeds rad/s, percent where
the name has that word. ``now`` is simulated time, or the wall clock in front of a real controller.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from understudy.errors import Refused
from understudy.ports import AnalogIO, ControllerStatus, DigitalIO, JointState, Tally
from understudy.space.pose import Pose

StatusListener = Callable[[ControllerStatus], None]
JointListener = Callable[[JointState], None]


class Connection(Protocol):
    """Connection to the controller, and its drives. Connecting never enables, homes or resets."""

    def connect(self, now: int) -> Refused | None: ...

    def disconnect(self, now: int) -> Refused | None: ...

    def is_connected(self) -> bool: ...

    def enable(self, now: int) -> Refused | None: ...

    def disable(self, now: int) -> Refused | None: ...

    def is_simulation(self) -> bool: ...


class Motion(Protocol):
    """Commands that move and stop the arm."""

    def send_gcode(self, text: str, now: int) -> Refused | None: ...

    def jog(self, axis: int, velocity: float, now: int) -> Refused | None: ...

    def stop_jog(self, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None: ...

    def emergency_stop(self, now: int) -> Refused | None: ...

    def home(self, now: int, axis: int = -1) -> Refused | None: ...


class Operation(Protocol):
    """The operator's buttons and overrides."""

    def hold(self, now: int) -> Refused | None: ...

    def cycle_start(self, now: int) -> Refused | None: ...

    def override_feed(self, percent: float, now: int) -> Refused | None: ...

    def override_rapid(self, percent: float, now: int) -> Refused | None: ...

    def reset(self, now: int) -> Refused | None: ...

    def set_optional_stop(self, wanted: bool) -> None: ...


@runtime_checkable
class Pins(Protocol):
    """The controller's inputs and outputs."""

    def digital_io(self) -> DigitalIO: ...

    def analog_io(self, now: int) -> AnalogIO: ...

    def input_result(self) -> float: ...

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None: ...

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None: ...


class Readings(Protocol):
    """Joints, tool tip, status and tally, and listeners to them."""

    def joint_state(self, now: int) -> JointState: ...

    def tcp(self, now: int) -> Pose: ...

    def status(self, now: int) -> ControllerStatus: ...

    def tally(self, now: int) -> Tally: ...

    def on_status(self, listener: StatusListener) -> None: ...

    def on_joint_state(self, listener: JointListener, now: int) -> None: ...


@runtime_checkable
class ReportsStatus(Protocol):
    """A controller that reports every change of its status."""

    def on_status(self, listener: StatusListener) -> None: ...


class SimulatedTime(Protocol):
    """The cell's clock; a real controller ignores these."""

    def set_time_scale(self, scale: float) -> Refused | None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def simulation_time(self, now: int) -> float: ...


class MotionController(Connection, Motion, Operation, Pins, Readings, SimulatedTime, Protocol):
    """All of these Protocols together."""
