"""The steps of a tool change at docks: one table for the job that runs them and for G-code.

CLEAR → APPROACH_PUT → INSERT → UNLOCK → LEAVE → CHECK_LEFT → UNMOUNT (→ CLOSE)
      → APPROACH_TAKE → OPEN → COUPLE → CHECK_DOCK → LOCK → MOUNT → PULL → CHECK_HELD
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports.tools import ChangerSettings, ToolDefinition
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose, translation

Phase = Literal[
    "IDLE",
    "CLEAR",
    "APPROACH_PUT",
    "INSERT",
    "UNLOCK",
    "LEAVE",
    "CHECK_LEFT",
    "UNMOUNT",
    "CLOSE",
    "APPROACH_TAKE",
    "OPEN",
    "COUPLE",
    "CHECK_DOCK",
    "LOCK",
    "MOUNT",
    "PULL",
    "CHECK_HELD",
    "FAULT",
]
Event = Literal["start", "put", "take", "done", "failed", "cancel"]

WORKING: tuple[Phase, ...] = (
    "CLEAR",
    "APPROACH_PUT",
    "INSERT",
    "UNLOCK",
    "LEAVE",
    "CHECK_LEFT",
    "UNMOUNT",
    "CLOSE",
    "APPROACH_TAKE",
    "OPEN",
    "COUPLE",
    "CHECK_DOCK",
    "LOCK",
    "MOUNT",
    "PULL",
    "CHECK_HELD",
)
TRANSITIONS: Mapping[tuple[Phase, Event], Phase] = {
    ("IDLE", "start"): "CLEAR",
    ("FAULT", "start"): "CLEAR",
    # the old tool goes into its dock
    ("CLEAR", "put"): "APPROACH_PUT",
    ("APPROACH_PUT", "done"): "INSERT",
    ("INSERT", "done"): "UNLOCK",
    ("UNLOCK", "done"): "LEAVE",
    ("LEAVE", "done"): "CHECK_LEFT",
    ("CHECK_LEFT", "done"): "UNMOUNT",
    ("UNMOUNT", "done"): "CLOSE",
    ("CLOSE", "done"): "IDLE",
    ("UNMOUNT", "take"): "APPROACH_TAKE",
    # the new tool is taken from its dock
    ("CLEAR", "take"): "APPROACH_TAKE",
    ("APPROACH_TAKE", "done"): "OPEN",
    ("OPEN", "done"): "COUPLE",
    ("COUPLE", "done"): "CHECK_DOCK",
    ("CHECK_DOCK", "done"): "LOCK",
    ("LOCK", "done"): "MOUNT",
    ("MOUNT", "done"): "PULL",
    ("PULL", "done"): "CHECK_HELD",
    ("CHECK_HELD", "done"): "IDLE",
    **{(phase, "failed"): "FAULT" for phase in WORKING},
    **{(phase, "cancel"): "FAULT" for phase in WORKING},
}


class Go(Struct, frozen=True):
    """The flange moves to a pose in the cell, straight if `line`, while `tool` is mounted."""

    flange: Pose
    speed: float
    line: bool
    tool: int


class Sense(Struct, frozen=True):
    """Waits until inputs have these levels; `set`: an output that is switched first."""

    levels: tuple[tuple[int, bool], ...]
    problem: str
    set: tuple[int, bool] | None = None


class Use(Struct, frozen=True):
    """The controller uses another tool from now on."""

    tool: int


Step = Go | Sense | Use


class Change(Struct, frozen=True):
    """A change from one tool to another; 0: the bare flange."""

    old: ToolDefinition
    new: ToolDefinition
    settings: ChangerSettings


BARE = ToolDefinition(0, "flange")


def lack(old: ToolDefinition, new: ToolDefinition) -> Refused | None:
    """Why these two cannot be changed at docks."""
    for tool in (old, new):
        if tool.number and tool.dock is None:
            return Refused(f"T{tool.number} has no dock: change it by hand, or give it a `dock`")
    return Refused(f"T{new.number} is mounted already") if old.number == new.number else None


def outside(dock: Pose, approach: float) -> Pose:
    """The pose before a dock: back along the axis of the flange."""
    return pose(matrix(dock) @ translation(0.0, 0.0, -approach))


def phases(change: Change) -> list[Phase]:
    """The phases of a change in their order, without CLEAR."""
    found: list[Phase] = []
    phase = TRANSITIONS["CLEAR", event_after("CLEAR", change)]
    while phase != "IDLE":
        found.append(phase)
        phase = TRANSITIONS[phase, event_after(phase, change)]
    return found


def event_after(phase: Phase, change: Change) -> Event:
    """The event that ends a phase well."""
    if phase == "CLEAR":
        return "put" if change.old.number else "take"
    return "take" if phase == "UNMOUNT" and change.new.number else "done"


def step(phase: Phase, change: Change) -> Step:
    """What is done in a phase."""
    old, new, s = change.old, change.new, change.settings
    putting = WORKING.index(phase) < WORKING.index("APPROACH_TAKE")
    tool = old if putting else new
    assert tool.dock is not None
    before = outside(tool.dock, s.approach)
    free, held = ((s.present, False), (s.locked, False)), ((s.present, True), (s.locked, True))
    opened = (s.locked, False)
    name = f"T{tool.number}"
    steps: dict[Phase, Step] = {
        "APPROACH_PUT": Go(before, s.move_speed, False, old.number),
        "INSERT": Go(tool.dock, s.dock_speed, True, old.number),
        "UNLOCK": Sense(
            (opened,), f"{name} does not come off: the lock stays closed", (s.unlock, True)
        ),
        "LEAVE": Go(before, s.dock_speed, True, old.number),
        "CHECK_LEFT": Sense(free, f"{name} did not stay in its dock"),
        "UNMOUNT": Use(0),
        "CLOSE": Sense((), "the lock stays open", (s.unlock, False)),
        "APPROACH_TAKE": Go(before, s.move_speed, False, 0),
        "OPEN": Sense((opened,), "the lock does not open", (s.unlock, True)),
        "COUPLE": Go(tool.dock, s.dock_speed, True, 0),
        "CHECK_DOCK": Sense(((s.present, True),), f"{name} is not in its dock"),
        "LOCK": Sense(held, f"{name} is not locked", (s.unlock, False)),
        "MOUNT": Use(new.number),
        "PULL": Go(before, s.dock_speed, True, new.number),
        "CHECK_HELD": Sense(held, f"{name} is not locked after it left its dock"),
    }
    return steps[phase]
