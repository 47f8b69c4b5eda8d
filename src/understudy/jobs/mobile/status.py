"""The status of a mobile robot, from its health: the first condition that holds decides."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from understudy.jobs.mobile.messages import FaultLevel, RobotStatus, StopReason


class Condition(Struct, frozen=True):
    """What the status depends on."""

    nats_connected: bool = True
    needs_nats: bool = True
    """`requireNatsForMotion`."""
    drive_down: bool = False
    """A DRIVE motor is faulty or not connected."""
    function_down: bool = False
    """A FUNCTIONAL motor is faulty or not connected."""
    stop: StopReason | None = None
    """Why the robot is stopped for safety."""


PRECEDENCE: Sequence[tuple[RobotStatus, Callable[[Condition], bool]]] = (
    ("OFFLINE", lambda health: health.needs_nats and not health.nats_connected),
    ("ERROR", lambda health: health.drive_down),
    ("PAUSED", lambda health: health.stop is not None),
    ("WARNING", lambda health: health.function_down),
    ("RUNNING", lambda health: True),
)


def status_of(health: Condition) -> RobotStatus:
    return next(status for status, holds in PRECEDENCE if holds(health))


def fault_level(health: Condition) -> FaultLevel:
    """The worst fault of a motor, whatever the status is."""
    if health.drive_down:
        return "ERROR"
    return "WARN" if health.function_down else "NONE"
