"""Why a controller does not do what it is told; the codes are grblHAL's numbers."""

from understudy.errors import Refused

LOCKED, NOT_IDLE, ESTOP, MOTOR_FAULT = 9, 8, 10, 17
NOT_CONNECTED = Refused("the controller is not connected")
NOT_ENABLED = Refused("the drives are not enabled", LOCKED)
STOPPED = Refused("emergency stop: reset first", ESTOP)
JOGGING = Refused("not while jogging", LOCKED)
PROBE_FAILED = Refused("the probe met nothing on its way", 5)
BUSY = Refused("only a controller at rest can do that", NOT_IDLE)
