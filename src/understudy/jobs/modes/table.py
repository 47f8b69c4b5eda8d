"""The changeover as a table: (step, event) → step.

A robot is in CHANGEOVER from the request until the step is SETTLED again. Every step can fail; a
failed changeover waits for `retry` or `abort`, and no step moves the robot until then.
"""

from collections.abc import Mapping

from understudy.ports.modes import CHANGEOVER_STEPS, ChangeStep

STEPS = CHANGEOVER_STEPS

TRANSITIONS: Mapping[tuple[ChangeStep, str], ChangeStep] = {
    ("SETTLED", "request"): "STOP_WELD",
    ("STOP_WELD", "done"): "PARK_TORCH",
    ("PARK_TORCH", "done"): "TOOL_CHANGE",
    ("TOOL_CHANGE", "done"): "UPDATE_TLO",
    ("TOOL_CHANGE", "by_hand"): "CONFIRM_TOOL",
    ("CONFIRM_TOOL", "done"): "UPDATE_TLO",
    ("UPDATE_TLO", "calibrate"): "CALIBRATE_TOOL",
    ("UPDATE_TLO", "done"): "SETTLED",
    ("CALIBRATE_TOOL", "done"): "SETTLED",
    **{(step, "failed"): "FAILED" for step in STEPS},
    **{(step, "abort"): "SETTLED" for step in STEPS},
    ("FAILED", "retry"): "STOP_WELD",
    ("FAILED", "abort"): "SETTLED",
}

PROGRESS: Mapping[ChangeStep, float] = {
    "SETTLED": 1.0,
    "STOP_WELD": 0.0,
    "PARK_TORCH": 0.2,
    "TOOL_CHANGE": 0.4,
    "CONFIRM_TOOL": 0.5,
    "UPDATE_TLO": 0.7,
    "CALIBRATE_TOOL": 0.8,
}
"""Share of a changeover that is done when a step begins."""
