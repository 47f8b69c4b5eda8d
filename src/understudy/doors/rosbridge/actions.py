"""Goals of ROS actions: `FollowJointTrajectory` of arms, `NavigateToPose` of mobile robots.

A goal is one order of the command table; the door then only reads what the robot does. A new goal
takes the place of one that the robot has; a goal ends with its client.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.doors import messages as m
from understudy.doors.rosbridge.types import header, is_ros_1, seconds_of, stamp
from understudy.doors.scene import WORLD, pose_message
from understudy.doors.websocket import Client
from understudy.errors import Refused
from understudy.operator.models import figures_of
from understudy.operator.robots import Robot
from understudy.units import NS_PER_SECOND, nanoseconds

SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
"""Status of a goal, action_msgs/GoalStatus."""
SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS = 0, -1, -2
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5
"""Codes of control_msgs/FollowJointTrajectory."""
LOOK_SECONDS = 0.02
MOST_POINTS = 10_000
START_TOLERANCE = 1e-3
"""Distance of a joint, in rad or m, by which the first point may differ from where the arm is."""
GOAL_TOLERANCE = 1e-3
ARRIVED_M, ARRIVED_RAD = 0.1, 0.2
BEGIN_SECONDS = 1.0
"""Simulated time after which a robot that still stands has not taken the order."""
MAPS = ("", "map", "odom", WORLD)


class GoalError(Exception):
    """Why a goal is not taken, with the code of its action."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True)
class Outcome:
    status: int
    code: int = 0
    words: str = ""


class Goal:
    """A goal of an action: runs in a task of its own until it is reached, refused or ended."""

    def __init__(
        self, client: Client, robot: Robot, wanted: Mapping[str, Any], tell: "Tell", kind: Any
    ) -> None:
        """``tell``: feedback; ``kind``: the type that the client has named."""
        self.client, self.robot = client, robot
        self.wanted, self.tell, self.ros_1 = wanted, tell, is_ros_1(kind)
        self.ending: Outcome | None = None
        self.done = asyncio.Event()
        self._began = 0

    def end(self, status: int, words: str) -> None:
        """Ends the goal: its robot stops."""
        self.ending = self.ending or Outcome(status, PATH_TOLERANCE_VIOLATED, words)

    async def run(self) -> Outcome:
        """Its outcome; the robot has stopped if that is not a success."""
        raise NotImplementedError

    def result(self, outcome: Outcome) -> dict[str, Any]:
        raise NotImplementedError

    def now(self) -> int:
        return self.client.live.operator.pump.now()

    def seconds(self) -> float:
        """Simulated time since the goal was taken."""
        return (self.now() - self._began) / NS_PER_SECOND

    async def order(self, command: str, parameters: dict[str, Any], code: int) -> None:
        self._began = self.now()
        answer = await self.client.call(command, {"robot": self.robot.name} | parameters)
        if isinstance(answer, Refused):
            raise GoalError(code, answer.reason)

    async def stop(self, outcome: Outcome) -> Outcome:
        await self.client.call("stop", {"robot": self.robot.name})
        return outcome


Tell = Callable[[dict[str, Any]], None]


# ── arms ────────────────────────────────────────────────────────────────────────────────────────


class FollowJointTrajectory(Goal):
    """The points of a trajectory, planned once by the controller (`follow_joints`)."""

    def result(self, outcome: Outcome) -> dict[str, Any]:
        return {"error_code": outcome.code, "error_string": outcome.words}

    async def run(self) -> Outcome:
        trajectory = _Trajectory.read(self.robot, self.wanted)
        rows = [figures_of(self.robot, row) for row in trajectory.points.tolist()]
        at = trajectory.times.tolist()
        if rows:
            await self.order("follow_joints", {"joints_deg": rows, "at_s": at}, INVALID_GOAL)
        outcome = self._look(trajectory)
        while outcome is None:
            await asyncio.sleep(LOOK_SECONDS)
            outcome = self._look(trajectory)
        if outcome.status != SUCCEEDED:
            await self.stop(outcome)
            await self.client.call("send_gcode", {"robot": self.robot.name, "line": "G94"})
        return outcome

    def _look(self, trajectory: "_Trajectory") -> Outcome | None:
        how, at = self.robot.condition(), self.seconds()
        joints = np.array(self.robot.axis_reading().joints)
        wanted = trajectory.at(at)
        self._tell(trajectory, joints, wanted, at)
        if self.ending is not None:
            code = SUCCESSFUL if self.ending.status == CANCELED else self.ending.code
            return Outcome(self.ending.status, code, self.ending.words)
        if how.error or not how.enabled:
            words = how.error or f"{self.robot.name} is {how.state}: its drives are off"
            return Outcome(ABORTED, PATH_TOLERANCE_VIOLATED, words)
        if trajectory.path_tolerance is not None:
            far = np.abs(joints - wanted)
            if (over := np.argwhere(far > trajectory.path_tolerance)).size:
                number = int(over[0, 0])
                return Outcome(
                    ABORTED, PATH_TOLERANCE_VIOLATED, trajectory.off(number, far[number], at)
                )
        if how.moving:
            return self._late(trajectory, at)
        return None if how.state.startswith("Hold") else self._arrived(trajectory, joints, at)

    def _late(self, trajectory: "_Trajectory", at: float) -> Outcome | None:
        over = at - trajectory.times[-1] if len(trajectory.times) else 0.0
        if not 0.0 < trajectory.extra < over:
            return None
        words = f"not at the goal {trajectory.extra:g} s after the time of the last point"
        return Outcome(ABORTED, GOAL_TOLERANCE_VIOLATED, words)

    def _arrived(self, trajectory: "_Trajectory", joints: Any, at: float) -> Outcome | None:
        if not len(trajectory.points):
            return Outcome(SUCCEEDED)
        far = np.abs(joints - trajectory.points[-1])
        if not (over := np.argwhere(far > trajectory.goal_tolerance)).size:
            return Outcome(SUCCEEDED)
        if at < BEGIN_SECONDS:
            return None
        number = int(over[0, 0])
        return Outcome(ABORTED, GOAL_TOLERANCE_VIOLATED, trajectory.off(number, far[number], at))

    def _tell(self, trajectory: "_Trajectory", joints: Any, wanted: Any, at: float) -> None:
        time = stamp(m.time_of(nanoseconds(at)), ros_1=self.ros_1)
        rows = {"desired": wanted, "actual": joints, "error": wanted - joints}
        points = {
            name: {"positions": row.tolist(), "time_from_start": time} for name, row in rows.items()
        }
        head = header(m.time_of(self.now()), "", ros_1=self.ros_1)
        self.tell({"header": head, "joint_names": list(trajectory.names), **points})


@dataclass(frozen=True)
class _Trajectory:
    """A trajectory that was read: points in the order of the robot's joints, from where it is."""

    names: Sequence[str]
    here: Any
    points: Any
    times: Any
    path_tolerance: Any
    goal_tolerance: Any
    extra: float

    @classmethod
    def read(cls, robot: Robot, wanted: Mapping[str, Any]) -> "_Trajectory":
        try:
            return cls._read(robot, wanted)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as problem:
            raise GoalError(INVALID_GOAL, f"not a trajectory: {problem!s:.200}") from None

    @classmethod
    def _read(cls, robot: Robot, wanted: Mapping[str, Any]) -> "_Trajectory":
        trajectory = wanted["trajectory"]
        names, given = joint_names(robot), list(trajectory["joint_names"])
        if sorted(given, key=str) != sorted(names):
            words = f"the joints are {', '.join(names)}; the goal has {str(given)[:200]}"
            raise GoalError(INVALID_JOINTS, words)
        rows = trajectory["points"]
        if not 0 < len(rows) <= MOST_POINTS:
            words = f"{len(rows)} points; a trajectory has 1 to {MOST_POINTS}"
            raise GoalError(INVALID_GOAL, words)
        order = [given.index(name) for name in names]
        points = np.array([row["positions"] for row in rows], dtype=float)
        if points.shape != (len(rows), len(names)) or not np.isfinite(points).all():
            words = f"each point has {len(names)} positions, finite numbers"
            raise GoalError(INVALID_GOAL, words)
        points = points[:, order]
        times = np.array([seconds_of(row.get("time_from_start", 0)) for row in rows])
        here = np.array(robot.axis_reading().joints)
        if times[0] <= 0.0:
            far = np.abs(points[0] - here)
            if far.max() > START_TOLERANCE:
                words = f"point 0 has no time_from_start and is {far.max():.4f} away from the arm"
                raise GoalError(INVALID_GOAL, words)
            points, times = points[1:], times[1:]
        tolerances = (
            _tolerances(wanted.get(f"{each}_tolerance") or (), names) for each in ("path", "goal")
        )
        path, goal = tolerances
        extra = seconds_of(wanted.get("goal_time_tolerance") or 0)
        ending = np.where(np.isfinite(goal), goal, GOAL_TOLERANCE)
        watched = path if np.isfinite(path).any() else None
        return cls(names, here, points, times, watched, ending, extra)

    def at(self, seconds: float) -> Any:
        """Where the joints should be."""
        if not len(self.points):
            return self.here
        times = np.concatenate(([0.0], self.times))
        rows = np.vstack((self.here, self.points))
        return np.array([np.interp(seconds, times, column) for column in rows.T])

    def off(self, number: int, far: float, at: float) -> str:
        return f"{self.names[number]} is {far:.4f} off at {at:.2f} s"


def _tolerances(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    """Of each joint; infinite where none is given, as 0 is none in ROS."""
    found = np.full(len(names), math.inf)
    for row in rows:
        if row["name"] not in names:
            words = f"a tolerance for {row['name']!s:.100}; the joints are {', '.join(names)}"
            raise GoalError(INVALID_JOINTS, words)
        if (position := float(row.get("position", 0.0))) > 0.0:
            found[names.index(row["name"])] = position
    return found


def joint_names(robot: Robot) -> list[str]:
    """The joints as `/joint_states` and the description call them."""
    return list(robot.model.chain.names)


# ── mobile robots ───────────────────────────────────────────────────────────────────────────────


class NavigateToPose(Goal):
    """A drive to a place, by the robot's own command MOVE_TO_POSE."""

    def result(self, outcome: Outcome) -> dict[str, Any]:
        failed = outcome.status != SUCCEEDED
        return {"error_code": int(failed), "error_msg": outcome.words}

    async def run(self) -> Outcome:
        x, y, yaw = self._place()
        order = {"command": "MOVE_TO_POSE", "parameters": {"x": x, "y": y, "yaw": yaw}}
        await self.order("fleet_command", order, INVALID_GOAL)
        seen = False
        while True:
            found = await self.client.call("fleet_robot", {"robot": self.robot.name})
            if isinstance(found, Refused):
                raise GoalError(INVALID_GOAL, found.reason)
            queued = any(each.command == "MOVE_TO_POSE" for each in found.queue)
            seen = seen or queued
            here_x, here_y, here_yaw = found.pose
            far = math.hypot(here_x - x, here_y - y)
            self._tell(found.pose, far)
            if self.ending is not None or found.estop:
                if self.ending is None:
                    self.end(ABORTED, f"SAFETY_STOP_ACTIVE: {found.stop}")
                assert self.ending is not None
                return await self.stop(self.ending)
            if not queued and (seen or self.seconds() > BEGIN_SECONDS):
                turned = math.remainder(here_yaw - yaw, math.tau)
                if far < ARRIVED_M and abs(turned) < ARRIVED_RAD:
                    return Outcome(SUCCEEDED)
                why = ", ".join([*found.faults, found.stop, found.status])
                return Outcome(ABORTED, INVALID_GOAL, f"{far:.2f} m before the goal: {why}")
            await asyncio.sleep(LOOK_SECONDS)

    async def stop(self, outcome: Outcome) -> Outcome:
        await self.client.call("fleet_command", {"robot": self.robot.name, "command": "STOP"})
        return outcome

    def _place(self) -> tuple[float, float, float]:
        try:
            stamped = self.wanted["pose"]
            frame = str((stamped.get("header") or {}).get("frame_id", ""))
            spot, turn = stamped["pose"]["position"], stamped["pose"].get("orientation") or {}
            x, y = float(spot["x"]), float(spot["y"])
            qz, qw = float(turn.get("z", 0.0)), float(turn.get("w", 1.0))
            qx, qy = float(turn.get("x", 0.0)), float(turn.get("y", 0.0))
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            words = f"not a geometry_msgs/PoseStamped: {problem!s:.200}"
            raise GoalError(INVALID_GOAL, words) from None
        if frame not in MAPS:
            words = f"frame_id {frame[:100]!r}; allowed: {', '.join(MAPS[1:])}"
            raise GoalError(INVALID_GOAL, words)
        yaw = math.atan2(2.0 * (qw * qz + qx * qy), 1.0 - 2.0 * (qy * qy + qz * qz))
        return x, y, yaw

    def _tell(self, pose: Sequence[float], far: float) -> None:
        x, y, yaw = pose
        head = header(m.time_of(self.now()), WORLD, ros_1=self.ros_1)
        here = pose_message((x, y, 0.0, 0.0, 0.0, yaw))
        self.tell(
            {
                "current_pose": {"header": head, "pose": here},
                "navigation_time": stamp(m.time_of(nanoseconds(self.seconds())), ros_1=self.ros_1),
                "number_of_recoveries": 0,
                "distance_remaining": far,
            }
        )
