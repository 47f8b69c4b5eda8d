"""Refusals of a controller, simulated or real; the codes are grblHAL's numbers."""

from understudy.errors import Refused

LOCKED, NOT_IDLE = 9, 8
"""Error numbers."""
HARD_LIMIT, SOFT_LIMIT, ESTOP, PROCESS_FAULT, MOTOR_FAULT = 1, 2, 10, 14, 17
"""Alarm numbers. `PROCESS_FAULT`: the spindle, or the arc in its place, is not as commanded."""
NOT_CONNECTED = Refused("the controller is not connected")
NOT_ENABLED = Refused("the drives are not enabled", LOCKED)
STOPPED = Refused("emergency stop: reset first", ESTOP)
INHIBITED = Refused("the cell is stopped: start or reset it first", LOCKED)
JOGGING = Refused("not while jogging", LOCKED)
BUSY = Refused("only a controller at rest can do that", NOT_IDLE)
HAND_FULL = Refused("the hand holds a part: place or release it first")
