"""Why a controller does not do what it is told; the codes are grblHAL's numbers."""

import numpy as np

from understudy.errors import Refused
from understudy.motion.path import Floats
from understudy.ports.refusals import (
    BUSY,
    HARD_LIMIT,
    JOGGING,
    MOTOR_FAULT,
    NOT_CONNECTED,
    NOT_ENABLED,
    STOPPED,
)  # fmt: skip

__all__ = [
    "BUSY", "HARD_LIMIT", "JOGGING", "MOTOR_FAULT", "NOT_CONNECTED", "NOT_ENABLED",
    "PROBE_FAILED", "STOPPED", "no_axis", "no_positions", "out_of_bounds",
]  # fmt: skip

PROBE_FAILED = Refused("the probe met nothing on its way", 5)


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
