"""A machine as the eye sees it: three lengths, then three angles."""

from understudy.devices.io.virtual_io import VirtualIO
from understudy.ports.hmi import Pins, RobotView
from understudy.robots.grblhal.firmware import Firmware
from understudy.units import DEG, MM, nanoseconds

LINEAR = 3
UNITS = (MM, MM, MM, DEG, DEG, DEG)


def view_of(firmware: Firmware, io: VirtualIO, now: int) -> RobotView:
    reading, digital = firmware.reading(now), io.digital()
    plan = firmware.core.runner.queue.plan
    axes = _si(reading.position)
    return RobotView(
        q=axes,
        tcp=axes,
        state=reading.state,
        moving=firmware.core.moving(now),
        tool=reading.tool,
        line=reading.line,
        ghost=_si(plan.target.tolist()) if nanoseconds(plan.ends) > now else None,
        io=Pins(digital.inputs, digital.outputs),
        linear=LINEAR,
    )


def _si(position: tuple[float, ...] | list[float]) -> tuple[float, ...]:
    return tuple(value * unit for value, unit in zip(position, UNITS, strict=True))
