"""An arm on the bench: connected, enabled, on virtual time."""

import math
from typing import Any

import numpy as np

from understudy import VirtualController
from understudy.errors import Refused
from understudy.units import DEG

READY = [0.0, -40.0, 80.0, 0.0, 50.0, 0.0]
"""A pose with the tool pointing down in front of the arm, away from singularities."""


def arm(**settings: Any) -> VirtualController:
    controller = VirtualController(**settings)
    assert controller.connect() is None
    assert controller.enable() is None
    return controller


def prompt_arm(**settings: Any) -> VirtualController:
    """An arm without delays: a command acts, and is visible, at once."""
    return arm(simulation={"command_delay_ms": 0, "feedback_delay_ms": 0}, **settings)


def send(controller: VirtualController, *lines: str) -> None:
    for line in lines:
        assert controller.send_gcode(line) is None, line


def run(controller: VirtualController, *lines: str) -> None:
    """Send lines and let time pass until they are done; nothing may fail."""
    send(controller, *lines)
    controller.run_until_idle()
    assert controller.status().error_message == ""


def refusal(answer: Refused | None) -> str:
    assert answer is not None, "nothing was refused"
    return answer.reason


def degrees(controller: VirtualController) -> list[float]:
    return [round(q / DEG, 9) + 0.0 for q in controller.joint_state().positions]


def tip_mm(controller: VirtualController) -> np.ndarray:
    pose = controller.tcp()
    return np.array([pose.x, pose.y, pose.z]) * 1e3


def output(controller: VirtualController, pin: int) -> bool:
    return bool(controller.digital_io().outputs >> pin & 1)


def sampled(controller: VirtualController, seconds: float, step: float = 1e-3) -> np.ndarray:
    """(samples, 3, 6): positions, velocities, accelerations during these seconds."""
    rows = []
    for _ in range(math.ceil(seconds / step)):
        controller.advance(step)
        state = controller.joint_state()
        rows.append((state.positions, state.velocities, state.accelerations))
    return np.array(rows)


def until_idle(controller: VirtualController, step: float = 1e-3) -> np.ndarray:
    """Like `sampled`, as long as something moves."""
    rows = []
    while controller.status().moving:
        controller.advance(step)
        state = controller.joint_state()
        rows.append((state.positions, state.velocities, state.accelerations))
    return np.array(rows)
