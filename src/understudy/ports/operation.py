"""What an operator can do with a robot, kind by kind.

An `OperatorActions` offers those of the verbs below that its robot can do, and no others; that is
how the command table knows its skills. Every verb takes the moment last and returns at once, with
a `Refused` or None.

    enable disable · home(axis) · stop emergency_stop reset · hold cycle_start
    send_gcode(text) · override_feed(percent) override_rapid(percent) · set_tool(number)
    jog(Jog) stop_jog · move_to(Target) · set_joint_positions(radians) · set_tcp(pose)
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from understudy.ports import Joints
from understudy.space.pose import Pose

Frame = Literal["joint", "base", "tool"]

SKILLS: Mapping[str, str] = {
    "drives": "enable",
    "home": "home",
    "gcode": "send_gcode",
    "hold": "hold",
    "override": "override_feed",
    "move_to": "move_to",
    "jog": "jog",
    "jog_held": "stop_jog",
    "set_tool": "set_tool",
    "set_tcp": "set_tcp",
    "set_joint_positions": "set_joint_positions",
}
"""What a page asks for, and the verb that shows it is there."""


class Jog(NamedTuple):
    """Axis 0–5 at a speed: rad/s, or m/s along an axis of a frame; ``step``: so far and no further
    (rad or m), None: until told to stop."""

    frame: Frame
    axis: int
    speed: float
    step: float | None


class Target(NamedTuple):
    """Where to go: joints (rad) or the tool's pose; straight or not; m/s along a line."""

    joints: Joints | None
    pose: Pose | None
    line: bool
    speed: float


class Condition(Struct, frozen=True):
    """How a robot stands, whatever kind it is."""

    state: str
    moving: bool = False
    connected: bool = True
    enabled: bool = True
    error: str = ""
    code: int = 0
    line: int = 0


class AxisReading(Struct, frozen=True):
    """What plots and points are made of: rad, rad/s, Nm, metres; nothing where there are no
    joints."""

    joints: Joints
    velocities: Joints
    torques: Joints
    pose: Pose


class OperatorActions(Protocol):
    """What all of them offer."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """In which its axes can be jogged."""
        ...

    def condition(self, now: int) -> Condition: ...

    def axis_reading(self, now: int) -> AxisReading: ...

    def stop(self, now: int) -> Any: ...

    def emergency_stop(self, now: int) -> Any: ...

    def reset(self, now: int) -> Any: ...


def skills(actions: OperatorActions) -> tuple[str, ...]:
    able = [skill for skill, verb in SKILLS.items() if hasattr(actions, verb)]
    return (*able, *(f"jog_{_side(frame)}" for frame in actions.frames if frame != "tool"))


def _side(frame: Frame) -> str:
    return "joint" if frame == "joint" else "cartesian"
