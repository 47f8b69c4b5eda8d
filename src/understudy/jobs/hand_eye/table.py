"""The state machine of the hand-eye calibration, as a table."""

from collections.abc import Mapping
from typing import Literal

State = Literal[
    "IDLE",
    "MOVING",
    "SETTLING",
    "CAPTURING",
    "COMPUTING",
    "VALIDATING",
    "DONE",
    "CHECK_FAILED",
    "ERROR",
]
Event = Literal[
    "start",
    "capture",
    "arrived",
    "settled",
    "next_pose",
    "captured",
    "all_captured",
    "compute",
    "computed",
    "validate",
    "validated",
    "check_failed",
    "cancel",
    "fault",
]
"""`capture`: one picture where the arm is. `next_pose`: a pose was captured, or left out."""
RESTING: tuple[State, ...] = ("IDLE", "DONE", "CHECK_FAILED", "ERROR")
RUNNING: tuple[State, ...] = ("MOVING", "SETTLING", "CAPTURING", "COMPUTING", "VALIDATING")

TRANSITIONS: Mapping[tuple[State, Event], State] = {
    **{(state, "start"): "MOVING" for state in RESTING},
    **{(state, "capture"): "CAPTURING" for state in RESTING},
    **{(state, "compute"): "COMPUTING" for state in RESTING},
    **{(state, "validate"): "VALIDATING" for state in RESTING},
    ("MOVING", "arrived"): "SETTLING",
    ("MOVING", "next_pose"): "MOVING",
    ("MOVING", "all_captured"): "COMPUTING",
    ("SETTLING", "settled"): "CAPTURING",
    ("CAPTURING", "next_pose"): "MOVING",
    ("CAPTURING", "captured"): "IDLE",
    ("CAPTURING", "all_captured"): "COMPUTING",
    ("COMPUTING", "computed"): "VALIDATING",
    ("VALIDATING", "validated"): "DONE",
    ("VALIDATING", "check_failed"): "CHECK_FAILED",
    **{(state, "cancel"): "IDLE" for state in RUNNING},
    **{(state, "fault"): "ERROR" for state in RUNNING},
}


def diagram() -> str:
    """The table as a Mermaid diagram; what several states have in common is drawn once."""
    groups = {"RESTING": RESTING, "RUNNING": RUNNING}
    common: tuple[Event, ...] = ("start", "capture", "compute", "validate", "cancel", "fault")
    lines = [
        f"    {name} --> {TRANSITIONS[states[0], event]}: {event}"
        for name, states in groups.items()
        for event in common
        if (states[0], event) in TRANSITIONS
    ]
    lines += [
        f"    {a} --> {b}: {event}" for (a, event), b in TRANSITIONS.items() if event not in common
    ]
    return "\n".join(["stateDiagram-v2", *lines])
