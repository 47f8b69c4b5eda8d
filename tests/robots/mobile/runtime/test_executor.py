"""The command queue of a mobile robot: checks in their order, one command at a time, each once."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.runtime.executor import QUEUE, Executor, Readiness, SavedExecutor
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    CommandAck,
    CommandRequest,
    ExecuteAction,
    Received,
    RobotStatus,
)

POSE = {"x": 1.0, "y": 2.0}
GRIP = {"functionKey": "GRIPPER", "targetPosition": 0.04}


class RecordedBody:
    """Notes what it is told; its motors are healthy unless they are named in ``down``."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.halts = 0
        self.down: set[str | None] = set()
        self.refused: Refused | None = None
        self.unfit: Refused | None = None
        self.started_types: list[str] = []

    def problem(self, parameters: Any) -> Refused | None:
        return self.unfit

    def started(self, command_type: CommandType, now: int) -> None:
        self.started_types.append(command_type)

    def begin(self, parameters: Any, now: int) -> Refused | None:
        self.begun.append(parameters)
        return self.refused

    def halt(self, now: int) -> None:
        self.halts += 1

    def begin_beside(self, action: ExecuteAction, now: int) -> None:
        self.begun.append(action)

    def halt_beside(self, motor: str) -> None:
        self.halts += 1

    def keep_beside(self, motors: Collection[str]) -> None: ...

    def is_up(self, motor: str | None) -> bool:
        return motor != "" and motor not in self.down

    def leads_away(self, parameters: Any) -> bool:
        return False

    def motor_of(self, action: ExecuteAction) -> str:
        return "act_1" if "GRIPPER" in (action.function_key, action.motor_id) else ""


class Robot:
    """An executor, and the acks that it has sent: `type:status` or `type:status:reason`."""

    def __init__(self, supported: tuple[CommandType, ...] = tuple(COMMANDS)) -> None:
        self.body = RecordedBody()
        self.acks: list[str] = []
        self.causes: list[str | None] = []
        self.ended: list[tuple[str, str | None]] = []
        self.executor = Executor(self.body, supported, self._note, self._end)
        self.sent = 0

    def _end(self, tag: str, outcome: Refused | None, now: int) -> None:
        self.ended.append((tag, outcome.reason if outcome else None))

    def _note(self, ack: CommandAck, cause: str | None, message_id: str, now: int) -> None:
        reason = f":{ack.reason}" if isinstance(ack.reason, str) else ""
        self.acks.append(f"{ack.command_type}:{ack.status}{reason}")
        self.causes.append(cause)

    def ask(
        self,
        name: str,
        parameters: dict[str, Any] | None = None,
        *,
        status: RobotStatus = "RUNNING",
        stopped: bool = False,
    ) -> list[str]:
        """Sends a command; returns the acks that it caused."""
        self.sent += 1
        before = len(self.acks)
        request = CommandRequest(name, parameters or {})
        message = Received("command.request", f"m-{self.sent}", "c-1", request)
        self.executor.request(message, Readiness(status, stopped=stopped), 0)
        return self.acks[before:]


def test_a_command_is_acked_runs_and_is_done() -> None:
    robot = Robot()
    assert robot.ask("MOVE_TO_POSE", POSE) == ["MOVE_TO_POSE:ACKED", "MOVE_TO_POSE:RUNNING"]
    robot.executor.finished(None, 5)
    assert robot.acks[-1] == "MOVE_TO_POSE:DONE"
    assert set(robot.causes) == {"c-1"}


def test_commands_run_one_after_the_other() -> None:
    robot = Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    assert robot.ask("EXECUTE_ACTION", GRIP) == ["EXECUTE_ACTION:ACKED"]
    robot.executor.finished(None, 5)
    assert robot.acks[-2:] == ["MOVE_TO_POSE:DONE", "EXECUTE_ACTION:RUNNING"]


@pytest.mark.parametrize("status", ["ERROR", "OFFLINE"])
def test_a_robot_that_is_not_ready_accepts_only_stop_and_reset(status: RobotStatus) -> None:
    robot = Robot()
    rejected = robot.ask("MOVE_TO_POSE", POSE, status=status)
    assert rejected == ["MOVE_TO_POSE:REJECTED:ROBOT_NOT_READY"]
    assert robot.ask("STOP", status=status)[0] == "STOP:ACKED"
    assert robot.ask("RESET_MOTOR", {"motorId": "act_1"}, status=status)[0] == "RESET_MOTOR:ACKED"


def test_the_checks_come_in_the_order_of_the_contract() -> None:
    robot = Robot(supported=("MOVE_TO_POSE", "STOP"))
    robot.body.down = {None}
    bad: dict[str, Any] = {"status": "ERROR", "stopped": True}
    assert robot.ask("MOVE_VELOCITY", {"linear": 1}, **bad)[0].endswith("CAPABILITY_NOT_SUPPORTED")
    assert robot.ask("FLY", **bad)[0].endswith("CAPABILITY_NOT_SUPPORTED")
    assert robot.ask("MOVE_TO_POSE", POSE, **bad)[0].endswith("ROBOT_NOT_READY")
    assert robot.ask("MOVE_TO_POSE", POSE, stopped=True)[0].endswith("REQUIRED_MOTOR_UNAVAILABLE")
    robot.body.down = set()
    assert robot.ask("MOVE_TO_POSE", POSE, stopped=True)[0].endswith("SAFETY_STOP_ACTIVE")
    assert robot.ask("STOP", stopped=True)[-1] == "STOP:DONE"
    assert robot.ask("MOVE_TO_POSE", POSE)[0] == "MOVE_TO_POSE:ACKED"


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("MOVE_TO_POSE", {"x": 1}, "missing required field `y`"),
        ("MOVE_TO_POSE", {"x": "1", "y": 2}, "Expected `float`, got `str` - at `$.x`"),
        ("MOVE_TO_POSE", {"x": 1, "y": 1e300}, "`float` <= 1000000000.0"),
        ("MOVE_VELOCITY", {}, "missing required field `linear`"),
        ("MOVE_VELOCITY", {"linear": 1, "durationSeconds": 0}, "$.durationSeconds"),
        ("SET_SPEED_LIMIT", {"maxSpeedMps": -1}, "$.maxSpeedMps"),
        ("EXECUTE_ACTION", {"targetPosition": 1}, "give motorId or functionKey"),
        ("RESET_MOTOR", {}, "missing required field `motorId`"),
    ],
)
def test_wrong_parameters_are_named(name: str, parameters: dict[str, Any], says: str) -> None:
    (ack,) = Robot().ask(name, parameters)
    assert ack.startswith(f"{name}:REJECTED:INVALID_PARAMETERS: ")
    assert says in ack


def test_an_action_without_its_motor_is_rejected() -> None:
    robot = Robot()
    unknown = {"functionKey": "CRANE", "targetPosition": 1.0}
    assert robot.ask("EXECUTE_ACTION", unknown)[0].endswith("REQUIRED_MOTOR_UNAVAILABLE")
    robot.body.down = {"act_1"}
    assert robot.ask("EXECUTE_ACTION", GRIP)[0].endswith("REQUIRED_MOTOR_UNAVAILABLE")
    assert robot.ask("MOVE_TO_POSE", POSE)[0] == "MOVE_TO_POSE:ACKED", "the drive is healthy"


def test_stop_ends_the_running_command_and_cancels_the_queued_ones() -> None:
    robot = Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    robot.ask("EXECUTE_ACTION", GRIP)
    assert robot.ask("STOP") == [
        "STOP:ACKED",
        "EXECUTE_ACTION:CANCELED",
        "STOP:RUNNING",
        "MOVE_TO_POSE:CANCELED",
        "STOP:DONE",
    ]
    assert robot.body.halts == 1
    assert robot.executor.active is None


def test_a_safety_stop_fails_the_running_command() -> None:
    robot = Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    robot.ask("EXECUTE_ACTION", GRIP)
    robot.executor.cut_off(9)
    assert robot.acks[-2:] == ["EXECUTE_ACTION:CANCELED", "MOVE_TO_POSE:FAILED:SAFETY_STOP"]
    assert robot.body.halts == 1


def test_a_velocity_without_duration_ends_when_the_next_command_begins() -> None:
    robot = Robot()
    robot.ask("MOVE_VELOCITY", {"linear": 0.5})
    assert robot.ask("MOVE_VELOCITY", {"linear": 0.3, "durationSeconds": 2.0}) == [
        "MOVE_VELOCITY:ACKED",
        "MOVE_VELOCITY:DONE",
        "MOVE_VELOCITY:RUNNING",
    ]
    assert robot.ask("MOVE_VELOCITY", {"linear": 0.1}) == ["MOVE_VELOCITY:ACKED"]


def test_a_command_that_the_body_cannot_begin_fails() -> None:
    robot = Robot()
    robot.body.refused = Refused("COOLDOWN")
    assert robot.ask("RESET_MOTOR", {"motorId": "act_1"})[-1] == "RESET_MOTOR:FAILED:COOLDOWN"
    assert robot.executor.active is None


def test_a_full_queue_rejects() -> None:
    robot = Robot()
    for _ in range(QUEUE + 1):
        assert robot.ask("MOVE_TO_POSE", POSE)[0] == "MOVE_TO_POSE:ACKED"
    assert robot.ask("MOVE_TO_POSE", POSE) == ["MOVE_TO_POSE:REJECTED:QUEUE_FULL"]


# ── the robot's own commands ──


def test_own_commands_have_no_acks_and_report_their_end() -> None:
    robot = Robot()
    ready = Readiness()
    assert robot.executor.request_own("MOVE_TO_POSE", POSE, "step-1", ready, 0) is None
    assert robot.executor.request_own("MOVE_TO_POSE", POSE, "step-2", ready, 0) is None
    robot.executor.finished(None, 5)
    robot.ask("STOP")
    assert robot.ended == [("step-1", None), ("step-2", "CANCELED")]
    assert all(ack.startswith("STOP") for ack in robot.acks)


def test_own_commands_stand_in_the_same_queue() -> None:
    robot = Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    robot.executor.request_own("EXECUTE_ACTION", GRIP, "step", Readiness(), 0)
    assert len(robot.body.begun) == 1
    robot.executor.finished(None, 5)
    assert isinstance(robot.body.begun[-1], ExecuteAction)


def test_canceling_own_commands_leaves_those_of_the_backend() -> None:
    robot = Robot()
    robot.executor.request_own("MOVE_TO_POSE", POSE, "step", Readiness(), 0)
    robot.executor.request_own("MOVE_TO_POSE", POSE, "next", Readiness(), 0)
    robot.ask("MOVE_TO_POSE", POSE)
    robot.executor.cancel_own(1)
    assert robot.ended == [("next", "CANCELED"), ("step", "CANCELED")]
    assert robot.acks[-1] == "MOVE_TO_POSE:RUNNING"


def test_in_a_hold_own_commands_wait_and_others_fail() -> None:
    robot = Robot()
    robot.executor.request_own("MOVE_TO_POSE", POSE, "step", Readiness(), 0)
    robot.ask("MOVE_TO_POSE", POSE)
    robot.executor.cut_off(1, keep_own=True)
    assert robot.acks[-1] == "MOVE_TO_POSE:CANCELED"
    assert robot.ended == []
    held = Readiness("PAUSED", held=True)
    assert robot.executor.request_own("MOVE_TO_POSE", POSE, "next", held, 2) is None
    robot.executor.cut_off(3)
    assert robot.ended == [("next", "CANCELED"), ("step", "SAFETY_STOP")]


def test_policies_keep_a_robot_from_moving() -> None:
    robot = Robot()
    for ready in (Readiness(may_drive=False), Readiness(may_act=False)):
        drive = robot.executor.request_own("MOVE_TO_POSE", POSE, "a", ready, 0)
        act = robot.executor.request_own("EXECUTE_ACTION", GRIP, "b", ready, 0)
        refused = [each.reason for each in (drive, act) if each is not None]
        assert refused == ["ROBOT_NOT_READY"]


def test_what_a_robot_can_never_do_is_rejected() -> None:
    robot = Robot()
    robot.body.unfit = Refused("INVALID_PARAMETERS: targetPosition 0.1; allowed: 0 … 0.08")
    assert robot.ask("EXECUTE_ACTION", GRIP)[0].startswith("EXECUTE_ACTION:REJECTED:INVALID")


def test_every_command_that_runs_is_reported_to_the_hardware() -> None:
    robot = Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    robot.executor.request_own("EXECUTE_ACTION", GRIP, "step", Readiness(), 0)
    robot.ask("STOP")
    assert robot.body.started_types == ["MOVE_TO_POSE", "STOP"]


def test_a_snapshot_has_the_running_and_the_queued_commands() -> None:
    robot, restored = Robot(), Robot()
    robot.ask("MOVE_TO_POSE", POSE)
    robot.executor.request_own("EXECUTE_ACTION", GRIP, "step", Readiness(), 0)
    data = msgspec.json.encode(robot.executor.save())
    restored.executor.load(msgspec.json.decode(data, type=SavedExecutor))
    assert restored.executor.save() == robot.executor.save()
    restored.executor.finished(None, 5)
    restored.executor.finished(None, 6)
    assert restored.acks == ["MOVE_TO_POSE:DONE"]
    assert restored.ended == [("step", None)]
