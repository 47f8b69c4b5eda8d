"""A robot whose modules are tested alone: it notes what they ask, and ends commands when asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports.state import load, saved
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import MODULES, RobotFile, read_robot_file
from understudy.robots.mobile.runtime.messages import (
    Pose,
    Received,
    RobotStatus,
    StopReason,
    decoded,
)
from understudy.robots.mobile.runtime.modules import Hold, Module, Occurrence, SpeedLimit
from understudy.robots.mobile.runtime.robot import HandledIds, build_orchestration
from understudy.robots.mobile.runtime.tasks import Planner
from understudy.units import NS_PER_SECOND

TICK = NS_PER_SECOND // 50
FILE = Path(__file__).parents[3] / "robots/mobile/config/robot_config.json"


class RecordedRobot:
    """The context of the modules of one robot. ``log``: what they did, in order."""

    def __init__(
        self, planner: Planner | None = None, *, modules: tuple[Any, ...] = MODULES
    ) -> None:
        self.file: RobotFile = read_robot_file(FILE.read_text(), FILE.name)
        self.pose = Pose(0.0, 0.0, 0.0)
        self.speed = 0.0
        self.status: RobotStatus = "RUNNING"
        self.stop_reason: StopReason | None = None
        self.refusal: Refused | None = None
        self.log: list[str] = []
        self.sent: list[tuple[str, Any, str | None]] = []
        self.running: list[tuple[str, CommandType, dict[str, Any]]] = []
        self.limits: list[float | None] = []
        self.notes: list[bytes] = []
        self.now = 0
        self.received = 0
        self._holds: list[StopReason] = []
        self._handled = HandledIds()
        self.orchestration = build_orchestration(self, modules, planner)

    # ── the context ──

    def publish(
        self, kind: str, payload: Struct, now: int, correlation_id: str | None = None
    ) -> str:
        plain = msgspec.to_builtins(payload)
        self.sent.append((kind, plain, correlation_id))
        self.log.append(f"{kind} {json.dumps(plain)}")
        return f"sent-{len(self.sent)}"

    def event(
        self,
        type_: str,
        details: Mapping[str, Any],
        now: int,
        correlation_id: str | None = None,
    ) -> None:
        self.log.append(f"{type_} {json.dumps(details)}")

    def claim(self, message_id: str, now: int) -> bool:
        return True

    def off_map(self, x: float, y: float) -> str:
        return ""

    def answer(
        self, message_id: str, kind: str, payload: Struct, now: int, correlation_id: str
    ) -> None:
        self.publish(kind, payload, now, correlation_id)

    def handled(self, message_id: str, kind: str) -> None:
        """Nothing is kept."""

    def command(
        self, command_type: CommandType, parameters: Mapping[str, Any], tag: str, now: int
    ) -> Refused | None:
        if self.refusal is None:
            self.running.append((tag, command_type, dict(parameters)))
        return self.refusal

    def act(self, parameters: Mapping[str, Any], tag: str, now: int) -> Refused | None:
        return self.command("EXECUTE_ACTION", parameters, tag, now)

    @property
    def is_moving(self) -> bool:
        return self.speed != 0.0

    def locate(self, pose: Pose, now: int) -> None:
        self.pose = pose

    def note(self, content: bytes) -> None:
        self.notes.append(content)

    def cancel_own(self, now: int) -> None:
        self.running.clear()

    def set_hold(self, reason: Hold, held: bool, now: int) -> None:
        self._holds = [each for each in self._holds if each != reason] + [reason] * held

    def limit_speed(self, source: SpeedLimit, fastest: float | None, now: int) -> None:
        self.limits.append(fastest)

    # ── the runtime ──

    @property
    def modules(self) -> list[Module]:
        return list(self.orchestration.modules.values())

    def receive(self, kind: str, payload: dict[str, Any], **envelope: str) -> None:
        """A message from the backend, and the tick at which it is handled."""
        self.received += 1
        whole = {"messageId": f"m-{self.received}", "payload": payload} | envelope
        message = decoded(kind, json.dumps(whole).encode(), self.file.identity.robot_id)
        assert isinstance(message, Received), message
        for module in self.modules:
            if kind in module.kinds() and self._handled.is_new(message.message_id):
                module.handle(message, self.now)
        self.tick()

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += TICK
            for module in self.modules:
                wake = module.next_wake()
                if wake is not None and wake <= self.now:
                    module.advance(self.now)
            self._set_status()

    def _set_status(self) -> None:
        """A hold acts at the end of the tick, as in the runtime."""
        if self._holds:
            self.stop_reason, self.status = self._holds[0], "PAUSED"
        elif self.stop_reason == "TRAFFIC_HOLD":
            self.stop_reason, self.status = None, "RUNNING"

    def wait(self, seconds: float) -> None:
        self.tick(round(seconds * NS_PER_SECOND / TICK))

    def finish(self, problem: str | None = None) -> None:
        """The running command ends; a MOVE_TO_POSE has moved the robot."""
        tag, kind, parameters = self.running.pop(0)
        if kind == "MOVE_TO_POSE" and problem is None:
            yaw = parameters.get("yaw", self.pose.yaw)
            self.pose = Pose(parameters["x"], parameters["y"], yaw)
        for module in self.modules:
            module.ended(tag, Refused(problem) if problem else None, self.now)
        self.tick()

    def stop(self) -> None:
        """The STOP command of a backend."""
        self.running.clear()
        what: Occurrence = "stopped"
        for module in self.modules:
            module.occurred(what, self.now)
        self.tick()

    @property
    def commands(self) -> list[tuple[CommandType, dict[str, Any]]]:
        return [(kind, parameters) for _, kind, parameters in self.running]

    def last(self, kind: str) -> Any:
        """The newest message of a kind."""
        return next(payload for each, payload, _ in reversed(self.sent) if each == kind)

    def kinds_sent(self) -> list[str]:
        return [kind for kind, _, _ in self.sent]

    def restart(self) -> None:
        """Replaces the modules by new ones that load a snapshot of the old ones."""
        states = [msgspec.json.encode(saved(module)) for module in self.modules]
        self.orchestration = build_orchestration(self, MODULES, None)
        for module, data in zip(self.modules, states, strict=True):
            load(module, msgspec.json.decode(data))
