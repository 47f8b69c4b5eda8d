"""How a real grblHAL is talked to, and what is never done to it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.ports.refusals import ESTOP

Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=86_400.0)]
Pin = Annotated[int, Meta(ge=0, le=255)]

NOT_RESTORED = Refused("a real controller cannot be brought back to an earlier moment")
NO_TIME_SCALE = Refused("the time of a real controller cannot be scaled")
NOT_PUT = Refused("a real arm cannot be put somewhere without moving it")
NEEDS_THE_BUTTON = (1, ESTOP, 17)
"""Alarms in which homing is no way out: hard limit, emergency stop, motor fault."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`dialect`: what programs are written in; `arm` needs someone who turns them into joint
    lines. `heartbeat_ms`: how long a jog goes on without being asked for again. `reconnect_s`: the
    rests between calls; the last one is repeated. Names of outputs stand for their numbers."""

    dialect: Literal["grblhal", "arm"] = "grblhal"
    poll_ms: Milliseconds = 100
    answer_timeout_ms: Milliseconds = 3000
    heartbeat_ms: Milliseconds = 300
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)
    digital_output_names: dict[str, Pin] = {}
    analog_output_names: dict[str, Pin] = {}


class Saved(Struct):
    """What a snapshot holds: the controller itself is not ours to save."""

    now: int
    next_ticket: int
    pending: Ticket | None
    called: bool
    stop_owed: bool
