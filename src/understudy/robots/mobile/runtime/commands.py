"""The commands of mobile robots: their parameters, and what each of them needs."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.hardware_interface import RESET_COOLDOWN, RESET_NOT_ALLOWED
from understudy.robots.mobile.runtime.messages import Finite, Identifier, Message, Positive

Seconds = Annotated[float, Meta(gt=0, le=86_400)]

UNSUPPORTED = Refused("CAPABILITY_NOT_SUPPORTED")
NOT_READY = Refused("ROBOT_NOT_READY")
MOTOR_DOWN = Refused("REQUIRED_MOTOR_UNAVAILABLE")
STOPPED = Refused("SAFETY_STOP_ACTIVE")
"""Why a command is rejected, in the order of the checks."""
CUT_OFF = Refused("SAFETY_STOP")
TIMEOUT = Refused("TIMEOUT")
"""Why a running command fails."""
INVALID = "INVALID_PARAMETERS"


class MoveVelocity(Message, frozen=True):
    """m/s and rad/s; without a duration until the next command. `lateral`: to the left, for drives
    that can move sideways."""

    linear: Finite
    angular: Finite = 0.0
    lateral: Finite = 0.0
    duration_seconds: Seconds | None = None


class MoveToPose(Message, frozen=True):
    """Metres and radians; without `yaw` the robot keeps the direction in which it arrives."""

    x: Finite
    y: Finite
    yaw: Finite | None = None
    tolerance: Annotated[float, Meta(ge=0.005, le=10)] = 0.02


class Stop(Message, frozen=True):
    """Brakes; queued commands are canceled."""


class ResetMotor(Message, frozen=True):
    """Clears the fault of a motor."""

    motor_id: Identifier


class SetSpeedLimit(Message, frozen=True):
    """The largest speed of the following motions, m/s."""

    max_speed_mps: Positive


class ExecuteAction(Message, frozen=True):
    """Moves a functional motor, named by its id or by what it is for."""

    target_position: Finite
    motor_id: Identifier | None = None
    function_key: Identifier | None = None
    tolerance: Positive | None = None
    timeout_seconds: Seconds | None = None


Parameters = MoveVelocity | MoveToPose | Stop | ResetMotor | SetSpeedLimit | ExecuteAction


class CommandKind(Struct, frozen=True):
    """``drives``: it needs the DRIVE motors, ``acts``: a FUNCTIONAL motor. ``always``: it is
    accepted whatever the status is. ``stops``: it is carried out at once and in a safety stop."""

    parameters: type[Struct]
    drives: bool = False
    acts: bool = False
    always: bool = False
    stops: bool = False


COMMANDS: Mapping[CommandType, CommandKind] = {
    "MOVE_VELOCITY": CommandKind(MoveVelocity, drives=True),
    "MOVE_TO_POSE": CommandKind(MoveToPose, drives=True),
    "STOP": CommandKind(Stop, always=True, stops=True),
    "RESET_MOTOR": CommandKind(ResetMotor, always=True),
    "SET_SPEED_LIMIT": CommandKind(SetSpeedLimit),
    "EXECUTE_ACTION": CommandKind(ExecuteAction, acts=True),
}


def command_kind(name: str) -> CommandKind | None:
    """The kind of a command; None if there is no such command."""
    return next((kind for known, kind in COMMANDS.items() if known == name), None)


def read_parameters(kind: CommandKind, parameters: Mapping[str, Any]) -> Any | Refused:
    """The parameters of a command; `Refused` names the wrong one."""
    try:
        found = msgspec.convert(parameters, kind.parameters, strict=True)
    except msgspec.ValidationError as problem:
        return Refused(f"{INVALID}: {problem}")
    if isinstance(found, ExecuteAction) and (found.motor_id is None) == (
        found.function_key is None
    ):
        return Refused(f"{INVALID}: give motorId or functionKey, one of them")
    return found


REASONS: Mapping[str, str] = {
    UNSUPPORTED.reason: "the robot does not know the command, or does not support it",
    NOT_READY.reason: "the status is ERROR or OFFLINE, or the robot waits for its settings",
    INVALID: "a parameter is missing or wrong; the rest of the text names it",
    MOTOR_DOWN.reason: "a motor that the command needs is faulty or not connected",
    STOPPED.reason: "the robot is stopped for safety or held; STOP is accepted",
    "QUEUE_FULL": "100 commands wait already",
    CUT_OFF.reason: "a safety stop ended the command",
    TIMEOUT.reason: "the action took longer than its timeoutSeconds",
    RESET_COOLDOWN: "RESET_MOTOR came too early after the fault; the rest of the text says how "
    "long it must wait",
    RESET_NOT_ALLOWED.reason: "the resetPolicy of the motor has no allowReset",
}
"""Reasons of REJECTED (in the order of the checks) and FAILED, and what they mean."""
