"""The state machine of the pick & place cycle, as a table."""

from collections.abc import Mapping
from typing import Literal

from understudy.ports.pick_place import PickPlaceState

State = PickPlaceState
Event = Literal[
    "start", "stop", "pause", "resume", "reset",
    "done", "found", "not_found", "scans_used_up", "missed", "rescan", "next_cycle", "fault",
]  # fmt: skip
"""`done`: all steps of a state are made. `not_found`: a scan without a part that can be picked.
`missed`: the hand closed without a part. `fault`: also the emergency stop."""
BEFORE_PAUSE: Literal["BEFORE_PAUSE"] = "BEFORE_PAUSE"
"""In the table: the state in which the cycle was paused."""

CYCLE: Mapping[tuple[State, Event], State] = {
    ("IDLE", "start"): "MOVE_TO_SCAN",
    ("MOVE_TO_SCAN", "done"): "SCANNING",
    ("SCANNING", "found"): "MOVE_TO_PICK",
    ("SCANNING", "not_found"): "SCANNING",
    ("SCANNING", "scans_used_up"): "IDLE",
    ("MOVE_TO_PICK", "done"): "APPROACH_PICK",
    ("APPROACH_PICK", "done"): "GRIPPING",
    ("GRIPPING", "done"): "RETRACT_PICK",
    ("GRIPPING", "missed"): "RETRACT_PICK",
    ("RETRACT_PICK", "done"): "MOVE_TO_PLACE",
    ("RETRACT_PICK", "rescan"): "MOVE_TO_SCAN",
    ("MOVE_TO_PLACE", "done"): "APPROACH_PLACE",
    ("APPROACH_PLACE", "done"): "RELEASING",
    ("RELEASING", "done"): "RETRACT_PLACE",
    ("RETRACT_PLACE", "done"): "IDLE",
    ("RETRACT_PLACE", "next_cycle"): "MOVE_TO_SCAN",
}
RUNNING: tuple[State, ...] = (
    "MOVE_TO_SCAN", "SCANNING", "MOVE_TO_PICK", "APPROACH_PICK", "GRIPPING", "RETRACT_PICK",
    "MOVE_TO_PLACE", "APPROACH_PLACE", "RELEASING", "RETRACT_PLACE",
)  # fmt: skip
CARRYING: tuple[State, ...] = ("RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE")
"""States in which the hand has a part, unless the grip failed."""
TRANSITIONS: Mapping[tuple[State, Event], State | Literal["BEFORE_PAUSE"]] = {
    **CYCLE,
    **{(state, "stop"): "IDLE" for state in RUNNING},
    **{(state, "pause"): "PAUSED" for state in RUNNING},
    **{(state, "fault"): "ERROR" for state in RUNNING},
    ("PAUSED", "resume"): BEFORE_PAUSE,
    ("PAUSED", "stop"): "IDLE",
    ("PAUSED", "fault"): "ERROR",
    ("ERROR", "stop"): "ERROR",
    ("ERROR", "fault"): "ERROR",
    ("ERROR", "reset"): "IDLE",
}


def diagram() -> str:
    """The table as a Mermaid diagram; what every running state has is drawn once."""
    lines = [f"    {a} --> {b}: {event}" for (a, event), b in CYCLE.items()]
    common = [(event, TRANSITIONS[RUNNING[0], event]) for event in ("stop", "pause", "fault")]
    lines += [f"    RUNNING --> {b}: {event}" for event, b in common]
    rest = ((a, event, b) for (a, event), b in TRANSITIONS.items() if a in ("PAUSED", "ERROR"))
    lines += [f"    {a} --> {b}: {event}" for a, event, b in rest]
    return "\n".join(["stateDiagram-v2", *lines])
