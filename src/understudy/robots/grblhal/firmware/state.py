"""What a firmware remembers, and its numbers."""

from typing import Literal

from msgspec import Struct, field

from understudy.gcode.dialect import ZERO, Axes

IDLE_ONLY, LOCKED, NO_HOMING, SOFT_LIMITS_NEED_HOMING = 8, 9, 5, 10
UNKNOWN, TRAVEL, OVERFLOW, HOME_FIRST = 3, 15, 11, 46
SOFT_LIMIT, RESET_IN_MOTION, PROBE_FAILED, HOMING_RESET, NO_SWITCH = 2, 3, 5, 6, 9
PROBE_TOUCHES, ESTOP, MOTOR_FAULT = 4, 10, 17
CRITICAL = (1, SOFT_LIMIT, ESTOP, MOTOR_FAULT)
"""Alarms after which only a reset is accepted."""
STAYING = (11, 12, 13)
"""Alarms that a stop (0x19) leaves in force."""

INCHES, SOFT_LIMITS, HOMING, SLEEP_ALLOWED = 13, 20, 22, 62
MOST_RPM, LEAST_RPM, SPINDLE_REVIVES_S, COOLANT_REVIVES_S = 30, 31, 392, 393

Ending = Literal["", "stop", "cancel", "alarm"]
"""What happens when the motion under way has come to rest: nothing, 0x19, 0x85, an alarm, …"""


class State(Struct):
    """All that a snapshot holds of a firmware besides its program.

    `alarm` is grblHAL's number of the last lock; `pressed`: the emergency stop is. `dark`: spindle
    and coolant are off while the `door` is open; `reviving`: until when they are given time to come
    back. `tool` is the one in the spindle while an M6 waits
    for the operator. What M48 … M53 allow is `…_allowed`; an override that is not is kept, and acts
    when it is again. `ending`: see there, with the alarm in `pending`. `system` and `shift` are the
    coordinate system and the work offset that were told of last. `numbered` are the N words of
    queued lines; `starting` and `storing` own lines under way, by number. `resume_at`: when a
    waiting client may go on.
    """

    settings: list[tuple[int, float]] = []
    startup: list[str] = field(default_factory=lambda: ["", ""])
    label: str = ""
    alarm: int = 0
    locked: bool = False
    critical: bool = False
    pressed: bool = False
    checking: bool = False
    asleep: bool = False
    door: bool = False
    dark: bool = False
    reviving: int | None = None
    tool: int | None = None
    jogging: bool = False
    ending: Ending = ""
    pending: int = 0
    homing_until: int | None = None
    feed_allowed: bool = True
    speed_allowed: bool = True
    hold_allowed: bool = True
    feed: int = 100
    rapid: int = 100
    spindle_percent: int = 100
    spindle: str = "M5"
    flood: bool = False
    mist: bool = False
    result: float | None = None
    system: int = 0
    shift: Axes = ZERO
    probe: Axes = ZERO
    touched: bool = False
    optional_stop: bool = True
    single_block: bool = False
    block_delete: bool = False
    lines: int = 0
    numbered: list[tuple[int, int]] = []
    starting: list[tuple[int, str]] = []
    storing: tuple[int, int, str] | None = None
    resume_at: int | None = None
