"""Refusals of a controller, simulated or real; the codes are grblHAL's numbers."""

from understudy.errors import Refused

LOCKED, NOT_IDLE = 9, 8
"""Error numbers."""
HARD_LIMIT, SOFT_LIMIT, ESTOP, MOTOR_FAULT = 1, 2, 10, 17
"""Alarm numbers."""
NOT_CONNECTED = Refused("the controller is not connected")
NOT_ENABLED = Refused("the drives are not enabled", LOCKED)
STOPPED = Refused("emergency stop: reset first", ESTOP)
INHIBITED = Refused("the cell is stopped: start or reset it first", LOCKED)
JOGGING = Refused("not while jogging", LOCKED)
BUSY = Refused("only a controller at rest can do that", NOT_IDLE)
HAND_FULL = Refused("the hand holds a part: place or release it first")
