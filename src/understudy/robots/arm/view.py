"""An arm as its operator and as the eye see it."""

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.ports.hmi import Pins, RobotView
from understudy.robots.arm.drives import Drives
from understudy.robots.arm.mover import ArmMover
from understudy.space.transform import pose


def status_of(drives: Drives, alarm: Refused | None, now: int) -> ControllerStatus:
    """As far as the drives know; whether they are connected and enabled they do not."""
    runner = drives.runner
    error = alarm or runner.error
    used = runner.queue.used(now)
    return ControllerStatus(
        moving=drives.moving(now),
        error=error is not None,
        homed=runner.homed,
        error_message=error.reason if error else "",
        error_code=error.code if error else 0,
        buffer_available=drives.arm.window - used,
        buffer_used=used,
        state="Alarm" if alarm else drives.doing(now),
        line=runner.queue.line_at(now),
        stops=runner.state.stops,
        at=now,
    )


def view_of(drives: Drives, io: VirtualIO, *, lit: bool, alarm: bool, now: int) -> RobotView:
    """Joints and tip of the same instant: where it truly is, whatever its feedback tells."""
    runner, digital = drives.runner, io.digital()
    mover, joints = runner.mover, drives.motion(now).position
    assert isinstance(mover, ArmMover)
    goal = drives.goal(now)
    return RobotView(
        q=joints.tolist(),
        tcp=pose(mover.frames.tcp(mover.chain.flange(joints))),
        state="Alarm" if alarm else drives.doing(now),
        moving=drives.moving(now),
        tool=runner.state.modal.tool,
        line=runner.queue.line_at(now),
        ghost=None if goal is None else goal.tolist(),
        arc=lit,
        io=Pins(digital.inputs, digital.outputs),
    )
