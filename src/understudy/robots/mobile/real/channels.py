"""What a motor, an input or an output of a REAL robot is connected to, whatever driver it has."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from understudy.robots.mobile.config.robot_file import Driver, Motor
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.units import NS_PER_MS

Log = Callable[[str], None]
TIMEOUT = 500 * NS_PER_MS
STALE = 500 * NS_PER_MS
"""Values that are older count as not connected."""


class MotorCommand(NamedTuple):
    """What one motor shall do, in SI units. `limits`: speed, acceleration, deceleration."""

    limits: tuple[float, float, float]
    enable: bool = False
    moving: bool = False
    reset: bool = False
    speed: float = 0.0
    target: float = 0.0
    tolerance: float = 0.0


class MotorStatus(NamedTuple):
    """What one motor reports, in SI units. `read_at`: when its device was read; None where all
    devices are read at the same instant, as the drives of a CAN bus by one SYNC."""

    ready: bool = False
    faulty: bool = False
    homing: bool = False
    position: float = 0.0
    velocity: float = 0.0
    fault: int = 0
    read_at: int | None = None


class MotorChannel(Protocol):
    def put(self, command: MotorCommand) -> None:
        """What the next cycle sends."""
        ...

    def status(self, now: int) -> MotorStatus | None:
        """None: not connected."""
        ...

    def fault(self, number: int) -> MotorFault:
        """What a number of `MotorStatus.fault` means."""
        ...


class Input(Protocol):
    def answer(self, now: int) -> Sequence[int] | None:
        """What was read last; None: not connected."""
        ...


class Output(Protocol):
    def put(self, value: bool) -> None: ...


class DeviceFamily(Protocol):
    """Devices that are reached in the same way. ``key``: where the driver stands in the robot's
    file. All raise a `ConfigError` for what cannot be connected."""

    def motor(self, driver: Driver, motor: Motor, key: str) -> MotorChannel: ...

    def input(self, driver: Driver, key: str) -> Input: ...

    def output(self, driver: Driver, key: str) -> Output: ...

    def sensor(self, driver: Driver, count: int, key: str) -> Input:
        """``count``: of its registers."""
        ...
