"""What ROS clients may order: services, the topics that the door reads, and the actions.

    /start, /pause, /resume, /reset, /emergency_stop        std_srvs/Trigger: the whole cell
    /run                                                    std_srvs/SetBool: time runs, or not
    /<robot>/enable                                         std_srvs/SetBool
    /<robot>/stop, /reset, /emergency_stop                  std_srvs/Trigger
    /<robot>/hold                                           std_srvs/SetBool: hold, cycle start
    /<robot>/run_program                                    std_srvs/Trigger
    /emergency_stop, /<robot>/emergency_stop                std_msgs/Bool: true stops
    /<robot>/cmd_vel                                        geometry_msgs/Twist, TwistStamped
    /<robot>/follow_joint_trajectory                        control_msgs/FollowJointTrajectory
    /<robot>/navigate_to_pose                               nav2_msgs/NavigateToPose

Each is a command of the table; its refusal is the answer, `success` false with the reason.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.app.live import Live
from understudy.doors.rosbridge.actions import FollowJointTrajectory, Goal, NavigateToPose
from understudy.doors.websocket import Client
from understudy.errors import Refused
from understudy.operator.robots import Robot

TRIGGER, SET_BOOL = "std_srvs/Trigger", "std_srvs/SetBool"
TWISTS = ("geometry_msgs/Twist", "geometry_msgs/TwistStamped")
CMD_VEL_SECONDS = 0.5
"""A robot whose client sends no further `/cmd_vel` for this wall time stops."""


@dataclass(frozen=True)
class Service:
    """A service as a command of the table with its parameters: `on` for a Trigger and for a SetBool
    with true, `off` for a SetBool with false."""

    type: str
    on: tuple[str, dict[str, Any]]
    off: tuple[str, dict[str, Any]] | None = None

    async def call(self, client: Client, args: Mapping[str, Any]) -> dict[str, Any]:
        order = self.on
        if self.off is not None:
            wanted = args.get("data")
            if not isinstance(wanted, bool):
                return {"success": False, "message": "data: true or false is needed"}
            order = self.on if wanted else self.off
        answer = await client.call(*order)
        if isinstance(answer, Refused):
            return {"success": False, "message": answer.reason}
        state = answer.get("state", "") if isinstance(answer, dict) else ""
        return {"success": True, "message": str(state)}


@dataclass
class Orders:
    """The orders of a cell, by name. ``inputs``: topic → types."""

    services: dict[str, Service] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    actions: dict[str, tuple[str, type[Goal], Robot]] = field(default_factory=dict)
    goals: dict[str, Goal] = field(default_factory=dict)
    """The goal of each robot."""
    robots: dict[str, Robot] = field(default_factory=dict)
    """The robot of each topic of `inputs`; none: the cell."""


def orders_of(live: Live) -> Orders:
    found = Orders()
    robots = list(live.operator.robots)
    for name in ("start", "pause", "resume", "reset", "emergency_stop"):
        found.services[f"/{name}"] = Service(TRIGGER, (name, {}))
    found.services["/run"] = Service(SET_BOOL, ("resume", {}), ("pause", {}))
    found.inputs["/emergency_stop"] = ("std_msgs/Bool",)
    for robot in robots:
        _add(found, robot, f"/{robot.name}")
    if len(robots) == 1:
        alone = Orders()
        _add(alone, robots[0], "")
        del alone.robots["/emergency_stop"]  # that of the cell
        for table in ("services", "inputs", "actions", "robots"):
            own = getattr(found, table)
            setattr(found, table, getattr(alone, table) | own)
    return found


def _add(found: Orders, robot: Robot, space: str) -> None:
    """The orders of a robot. The cell's own names stay its own: without a namespace `/reset` is
    that of the cell."""
    own = {"robot": robot.name}
    skills = robot.skills()
    services = {name: Service(TRIGGER, (name, own)) for name in ("stop", "reset", "emergency_stop")}
    if "drives" in skills:
        services["enable"] = Service(SET_BOOL, ("enable", own), ("disable", own))
    if "hold" in skills:
        services["hold"] = Service(SET_BOOL, ("hold", own), ("cycle_start", own))
    if "program" in skills:
        services["run_program"] = Service(TRIGGER, ("run_program", own))
    found.services |= {f"{space}/{name}": each for name, each in services.items()}
    found.inputs[f"{space}/emergency_stop"] = ("std_msgs/Bool",)
    found.robots[f"{space}/emergency_stop"] = robot
    if robot.model.vehicle is not None:
        found.inputs[f"{space}/cmd_vel"] = TWISTS
        found.robots[f"{space}/cmd_vel"] = robot
        found.actions[f"{space}/navigate_to_pose"] = (
            "nav2_msgs/NavigateToPose",
            NavigateToPose,
            robot,
        )
    if "follow_joints" in skills:
        kind = "control_msgs/FollowJointTrajectory"
        found.actions[f"{space}/follow_joint_trajectory"] = kind, FollowJointTrajectory, robot


class Driving:
    """`/cmd_vel` of one client: an order is given when the speed changes, and a stop when no
    further message comes."""

    def __init__(
        self, client: Client, goals: Mapping[str, Goal], tell: Callable[[str], None]
    ) -> None:
        """``goals``: of each robot that has one; ``tell``: says why an order was refused."""
        self._client = client
        self._goals = goals
        self._tell = tell
        self._speeds: dict[str, tuple[float, float, float]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def drive(self, robot: str, message: Mapping[str, Any]) -> None:
        twist = message.get("twist", message)
        try:
            linear, angular = twist.get("linear") or {}, twist.get("angular") or {}
            speeds = (
                float(linear.get("x", 0.0)),
                float(angular.get("z", 0.0)),
                float(linear.get("y", 0.0)),
            )
        except (TypeError, ValueError, AttributeError) as problem:
            return self._tell(f"not a geometry_msgs/Twist: {problem!s:.200}")
        if not all(map(math.isfinite, speeds)):
            return self._tell("the speeds of a geometry_msgs/Twist are finite numbers")
        self._watch(robot, any(speeds))
        if self._speeds.get(robot) == speeds:
            return None
        self._speeds[robot] = speeds
        return await self._order(robot, speeds)

    def stop(self) -> None:
        """The client has gone."""
        for robot, speeds in list(self._speeds.items()):
            if any(speeds):
                self._stop(robot)
        for timer in self._timers.values():
            timer.cancel()

    async def _order(self, robot: str, speeds: tuple[float, float, float]) -> None:
        forward, turning, sideways = speeds
        order: dict[str, Any] = {"robot": robot, "command": "STOP"}
        if any(speeds):
            parameters = {"linear": forward, "angular": turning}
            parameters |= {"lateral": sideways} if sideways else {}
            order |= {"command": "MOVE_VELOCITY", "parameters": parameters}
        answer = await self._client.call("fleet_command", order)
        if isinstance(answer, Refused):
            self._speeds.pop(robot, None)
            self._tell(answer.reason)

    def _watch(self, robot: str, moving: bool) -> None:
        if timer := self._timers.pop(robot, None):
            timer.cancel()
        if moving:
            loop = asyncio.get_running_loop()
            self._timers[robot] = loop.call_later(CMD_VEL_SECONDS, self._stop, robot)

    def _stop(self, robot: str) -> None:
        self._speeds[robot] = (0.0, 0.0, 0.0)
        if robot in self._goals:
            return
        commands = self._client.live.commands
        commands.call("fleet_command", {"robot": robot, "command": "STOP"}, "operator")
