"""Why a controller does not do what it is told; the codes are grblHAL's numbers."""

import numpy as np

from understudy.errors import Refused
from understudy.motion.path import Floats

HARD_LIMIT, LOCKED, NOT_IDLE, ESTOP, MOTOR_FAULT = 1, 9, 8, 10, 17
NOT_CONNECTED = Refused("the controller is not connected")
NOT_ENABLED = Refused("the drives are not enabled", LOCKED)
STOPPED = Refused("emergency stop: reset first", ESTOP)
JOGGING = Refused("not while jogging", LOCKED)
PROBE_FAILED = Refused("the probe met nothing on its way", 5)
BUSY = Refused("only a controller at rest can do that", NOT_IDLE)


def no_axis(axis: int, dof: int) -> Refused | None:
    if isinstance(axis, int | np.integer) and 0 <= axis < dof:
        return None
    return Refused(f"there is no axis {axis}; there are 0…{dof - 1}")


def no_positions(target: Floats, dof: int) -> Refused | None:
    if target.shape != (dof,):
        return Refused(f"{dof} joint positions are needed")
    return None if np.isfinite(target).all() else Refused("joint positions must be finite numbers")


def out_of_bounds(percent: float, bounds: tuple[float, float]) -> Refused | None:
    low, high = bounds
    if low <= percent <= high:
        return None
    return Refused(f"{percent:g} % is outside {low:g}…{high:g} %")
