"""Why a controller, simulated or real, does not do what it is told; codes are grblHAL's numbers."""

from understudy.errors import Refused

LOCKED, NOT_IDLE, ESTOP = 9, 8, 10
NOT_CONNECTED = Refused("the controller is not connected")
NOT_ENABLED = Refused("the drives are not enabled", LOCKED)
STOPPED = Refused("emergency stop: reset first", ESTOP)
JOGGING = Refused("not while jogging", LOCKED)
BUSY = Refused("only a controller at rest can do that", NOT_IDLE)
