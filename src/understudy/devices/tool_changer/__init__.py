"""A pneumatic tool changer on the flange of an arm, with docks for the tools."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    STANDS,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Trial,
    active,
    enable,
    status,
)
from understudy.ports.faults import Fault, Faults, Figure

if TYPE_CHECKING:
    from understudy.devices.tool_changer.lock import ToolLock
    from understudy.ports.device import Mount

PinNumber = Annotated[int, Meta(ge=0, lt=32)]
Milliseconds = Annotated[float, Meta(ge=0, le=60_000)]
Speed = Annotated[float, Meta(gt=0, le=10_000)]
Millimetres = Annotated[float, Meta(gt=0, le=1000)]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Pins, motion and mechanics of a tool changer; the docks are those of the arm's `tools`.

    `approach_mm`: distance above a dock at which the arm travels, back along the axis of the
    flange. `tolerance_mm`: a flange that is farther from a dock neither takes nor leaves its tool.
    """

    unlock_output: PinNumber = 5
    locked_input: PinNumber = 5
    present_input: PinNumber = 6
    sensor_timeout_ms: Annotated[float, Meta(gt=0, le=60_000)] = 2000.0
    approach_mm: Millimetres = 100.0
    move_speed_mm_s: Speed = 250.0
    dock_speed_mm_s: Speed = 50.0
    lock_ms: Milliseconds = 150.0
    unlock_ms: Milliseconds = 150.0
    tolerance_mm: Millimetres = 2.0

    def __post_init__(self) -> None:
        if self.locked_input == self.present_input:
            raise ValueError("locked_input and present_input are the same input")


LEVEL = {"value": Figure(1.0, 0.0, 1.0)}
FAULTS: Faults = {
    "lock_fails": Fault("brought", "the lock does not close until reset"),
    "unlock_fails": Fault("brought", "the lock does not open until reset"),
    "locked_sensor_stuck": Fault("brought", "the input `locked` keeps a level until reset", LEVEL),
    "present_sensor_stuck": Fault(
        "brought", "the input `present` keeps a level until reset", LEVEL
    ),
    "tool_missing": Fault(
        "brought",
        "a tool is not in its dock, until reset",
        {"tool": Figure(1.0, 1.0, 99.0)},
    ),
}


def build(name: str, config: Config, mount: "Mount") -> "ToolLock":
    from understudy.devices.tool_changer.lock import ToolLock

    return ToolLock(name, config, mount)


# ── expected reactions to its faults: during a change, and of the job that changes ──

CHANGE_S = 60.0
OTHER = 2
"""The tool that is fetched; the changer's cell has another one mounted."""


def ready(trial: Trial) -> None:
    """a tool is mounted, the drives are on"""
    enable(trial)
    trial.own("tool_change")


def change(trial: Trial) -> None:
    """tool 2 is fetched"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    changer = trial.own("tool_change")
    changer.on_finished(lambda ticket, refused, now: ends.append(refused))
    ticket = changer.change(OTHER, trial.now)
    if isinstance(ticket, Refused):
        raise NotPossibleError(ticket.reason)


FAILED = (
    Seen(
        "the change ends with a refusal",
        lambda t: any(each is not None for each in t.notes["ends"]),
    ),
    status("phase", "FAULT", of="tool_change"),
    ENGINE_FAILED,
    STANDS,
)
BLOCKED = active("the lock does not move")
REACTIONS: Reactions = {
    "lock_fails": Reaction(ready, (*FAILED, BLOCKED), within_s=CHANGE_S, then=change),
    "unlock_fails": Reaction(ready, (*FAILED, BLOCKED), within_s=CHANGE_S, then=change),
    "locked_sensor_stuck": Reaction(
        ready,
        (*FAILED, active("the sensor locked is stuck")),
        within_s=CHANGE_S,
        parameters={"value": 1.0},
        then=change,
    ),
    "present_sensor_stuck": Reaction(
        ready,
        (*FAILED, active("the sensor present is stuck")),
        within_s=CHANGE_S,
        parameters={"value": 1.0},
        then=change,
    ),
    "tool_missing": Reaction(
        ready,
        (*FAILED, active(f"T{OTHER} is missing")),
        within_s=CHANGE_S,
        parameters={"tool": float(OTHER)},
        then=change,
    ),
}
