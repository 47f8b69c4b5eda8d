"""Why a controller does not do what it is told; the codes are grblHAL's numbers."""

from understudy.errors import Refused
from understudy.ports.refusals import BUSY, JOGGING, NOT_CONNECTED, NOT_ENABLED, STOPPED

__all__ = [
    "BUSY", "JOGGING", "MOTOR_FAULT", "NOT_CONNECTED", "NOT_ENABLED", "PROBE_FAILED", "STOPPED",
]  # fmt: skip

MOTOR_FAULT = 17
PROBE_FAILED = Refused("the probe met nothing on its way", 5)
