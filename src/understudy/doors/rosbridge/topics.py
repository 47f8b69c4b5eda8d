"""The topics that the door publishes: messages of the channels of a cell as ROS messages.

A robot's topics begin with its name, `/g60/joint_states`; those of the only robot of a cell are
also there without it. Frames are those of the channels: `world`, `g60/base`, `g60/joint_1` …

    /clock  rosgraph_msgs/Clock            /tf, /tf_static  tf2_msgs/TFMessage
    /emergency_stop  std_msgs/Bool         true while any robot is in emergency stop
    /<robot>/joint_states                  sensor_msgs/JointState
    /<robot>/robot_description             std_msgs/String: URDF
    /<robot>/io_states                     diagnostic_msgs/DiagnosticArray
    /<robot>/emergency_stop                std_msgs/Bool
    /<robot>/odom                          nav_msgs/Odometry, of mobile robots
    /<robot>/scan[/<scanner>]              sensor_msgs/LaserScan
    /<robot>/camera/image/compressed, /camera_info          sensor_msgs/CompressedImage, CameraInfo
"""

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from understudy.app.live import Live
from understudy.doors import messages as m
from understudy.doors.channels import CellChannels, Message
from understudy.doors.rosbridge.types import header, stamp
from understudy.doors.rosbridge.urdf import description
from understudy.doors.scene import WORLD
from understudy.errors import Refused
from understudy.operator.robots import Robot
from understudy.ports.hmi import HasLasers, HasSeenTogether
from understudy.simulation.io.virtual_io import VirtualIO

JOINTS, TF, STRING, BOOL = (
    "sensor_msgs/JointState",
    "tf2_msgs/TFMessage",
    "std_msgs/String",
    "std_msgs/Bool",
)
Values = Callable[[bool], Any]
"""Makes the value of a message, for ROS 1 or not; a thread may call it."""


@dataclass(frozen=True)
class Published:
    """A message of a topic. `key`: a state that is sent once for each value."""

    topic: str
    make: Values
    key: Any = None
    slow: bool = False

    def json(self, *, ros_1: bool) -> bytes:
        value = msgspec.json.encode(self.make(ros_1))
        name = msgspec.json.encode(self.topic)
        return b'{"op":"publish","topic":%s,"msg":%s}' % (name, value)


@dataclass(frozen=True)
class Topics:
    """The topics of a cell: topic → type."""

    live: Live
    channels: CellChannels
    types: dict[str, str]
    only: str
    """The only robot of the cell; empty if there are several."""

    def of_message(self, message: Message, heard: Iterable[str]) -> Iterator[Published]:
        """What a message of a channel is in ROS, of the topics that are ``heard``."""
        heard = set(heard)
        for each in self._all_of(message, heard):
            if each.topic in heard:
                yield each
            alone = each.topic.removeprefix(f"/{self.only}")
            if self.only and alone != each.topic and alone in heard:
                yield Published(alone, each.make, each.key, each.slow)

    def clock(self) -> Published:
        at = m.time_of(self.live.operator.pump.now())
        return Published("/clock", lambda ros_1: {"clock": stamp(at, ros_1=ros_1)})

    def _all_of(self, message: Message, heard: set[str]) -> Iterator[Published]:
        channel, topic = message.channel, message.channel.topic
        if topic == "/tf":
            if not heard.isdisjoint(("/tf", "/tf_static")):
                yield from self._transforms(message)
        elif topic == "/understudy/scene":
            for name, facts in message.value["robots"].items():
                where = f"/{name}/robot_description"
                if facts["joints"] and not heard.isdisjoint((where, "/robot_description")):
                    text = description(name, facts)
                    yield Published(where, lambda _, text=text: {"data": text}, text)  # type: ignore[misc]
        elif channel.schema_name == "foxglove.JointStates":
            yield Published(topic, lambda ros_1: joint_state(message.value, ros_1))
        elif channel.schema_name == "foxglove.PoseInFrame" and topic.endswith("/pose"):
            robot = topic.removesuffix("/pose").removeprefix("/")
            where = f"/{robot}/odom"
            if where in heard or self.only:
                speeds = self._speeds(robot)
                yield Published(where, lambda ros_1: odometry(message.value, robot, speeds, ros_1))
        elif channel.schema_name == "foxglove.LaserScan":
            robot, _, scanner = topic.removeprefix("/").partition("/scan/")
            where = topic if topic in self.types else f"/{robot}/scan"
            frame = f"{robot}/scan/{scanner}"
            yield Published(where, lambda ros_1: scan(message.value, frame, ros_1))
        elif channel.schema_name == "foxglove.CompressedImage":
            make: Values = lambda ros_1: picture(message.value, ros_1)  # noqa: E731
            yield Published(f"{topic}/compressed", make, slow=True)
        elif channel.schema_name == "foxglove.CameraCalibration":
            where = topic.removesuffix("calibration") + "camera_info"
            yield Published(where, lambda ros_1: camera_info(message.value, ros_1))
        elif channel.schema_name == "understudy.Pins":
            robot = topic.removeprefix("/").removesuffix("/io")
            yield Published(f"/{robot}/io_states", lambda ros_1: pins(message.value, robot, ros_1))
        elif channel.schema_name == "understudy.RobotState":
            yield from self._stops(topic.removesuffix("/state"), message.value)

    def _transforms(self, message: Message) -> Iterator[Published]:
        fixed = {frame for each in self.channels.frames.values() for frame in each.fixed()}
        fixed |= {each for each in _frames(message) if each.endswith("/camera")}
        moving: list[m.FrameTransform] = []
        still: list[m.FrameTransform] = []
        for each in message.value.transforms:
            (still if each.child_frame_id in fixed else moving).append(each)
        for topic, latest in self.channels.latest.items():
            if "/scan/" in topic:
                place = latest.value.pose
                base, child = latest.value.frame_id, topic.removeprefix("/")
                rest = base, child, place.position, place.orientation
                still.append(m.FrameTransform(m.time_of(0), *rest))
        if moving:
            yield Published("/tf", lambda ros_1: transforms(moving, ros_1))
        key = [(each.child_frame_id, each.translation, each.rotation) for each in still]
        yield Published("/tf_static", lambda ros_1: transforms(still, ros_1), key)

    def _speeds(self, robot: str) -> tuple[float, float]:
        """Forward and turning, of a mobile robot."""
        seen = self.live.commands.call("fleet_robot", {"robot": robot}, "viewer")
        return (0.0, 0.0) if isinstance(seen, Refused) else seen.velocity

    def _stops(self, robot: str, state: m.RobotState) -> Iterator[Published]:
        stopped = is_stopped(state.state, state.error)
        yield Published(f"{robot}/emergency_stop", lambda _: {"data": stopped}, stopped)
        any_stopped = stopped or any(
            is_stopped(latest.value.state, latest.value.error)
            for topic, latest in self.channels.latest.items()
            if latest.channel.schema_name == "understudy.RobotState" and topic != f"{robot}/state"
        )
        yield Published("/emergency_stop", lambda _: {"data": any_stopped}, any_stopped)


def is_stopped(state: str, error: str) -> bool:
    """Whether a robot is in emergency stop, from the words of its kind."""
    words = f"{state} {error}".lower().replace("_", "").replace("-", "").replace(" ", "")
    return "emergencystop" in words or "estop" in words


def topics_of(live: Live, channels: CellChannels) -> Topics:
    types = {"/clock": "rosgraph_msgs/Clock", "/tf": TF, "/tf_static": TF, "/emergency_stop": BOOL}
    robots = list(live.operator.robots)
    for robot in robots:
        types |= {f"/{robot.name}/{name}": kind for name, kind in _topics_of(live, robot)}
    only = robots[0].name if len(robots) == 1 else ""
    if only:
        own = {topic: kind for topic, kind in types.items() if topic.startswith(f"/{only}/")}
        types = {topic.removeprefix(f"/{only}"): kind for topic, kind in own.items()} | types
    return Topics(live, channels, types, only)


def _topics_of(live: Live, robot: Robot) -> Iterator[tuple[str, str]]:
    yield "emergency_stop", BOOL
    if robot.model.vehicle is not None:
        yield "odom", "nav_msgs/Odometry"
        names = [each.name for each in _scanners(live, robot.name)]
        for name in names:
            yield "scan" if len(names) == 1 else f"scan/{name}", "sensor_msgs/LaserScan"
    elif robot.model.chain is not None or robot.model.axes:
        yield "joint_states", JOINTS
        yield "robot_description", STRING
    if isinstance(getattr(robot.simulated.controller, "io", None), VirtualIO):
        yield "io_states", "diagnostic_msgs/DiagnosticArray"
    if "camera" in robot.devices:
        yield "camera/image/compressed", "sensor_msgs/CompressedImage"
        yield "camera/camera_info", "sensor_msgs/CameraInfo"


def _scanners(live: Live, robot: str) -> Iterable[Any]:
    for part in live.operator.components.values():
        if isinstance(part, HasSeenTogether) and robot in part.seen_together.names():
            lasers: Any = part.seen_together
            return lasers.scans(robot) if isinstance(lasers, HasLasers) else ()
    return ()


def _frames(message: Message) -> Iterator[str]:
    return (each.child_frame_id for each in message.value.transforms)


# ── messages ────────────────────────────────────────────────────────────────────────────────────


def joint_state(value: m.JointStates, ros_1: bool) -> dict[str, Any]:
    joints = value.joints
    return {
        "header": header(value.timestamp, "", ros_1=ros_1),
        "name": [each.name for each in joints],
        "position": [each.position for each in joints],
        "velocity": [each.velocity for each in joints if each.velocity is not None],
        "effort": [each.effort for each in joints if each.effort is not None],
    }


def transforms(found: Iterable[m.FrameTransform], ros_1: bool) -> dict[str, Any]:
    return {
        "transforms": [
            {
                "header": header(each.timestamp, each.parent_frame_id, ros_1=ros_1),
                "child_frame_id": each.child_frame_id,
                "transform": {"translation": each.translation, "rotation": each.rotation},
            }
            for each in found
        ]
    }


def odometry(
    value: m.PoseInFrame, robot: str, speeds: tuple[float, float], ros_1: bool
) -> dict[str, Any]:
    forward, turning = speeds
    twist = {"linear": m.Vector3(x=forward), "angular": m.Vector3(z=turning)}
    return {
        "header": header(value.timestamp, WORLD, ros_1=ros_1),
        "child_frame_id": f"{robot}/base",
        "pose": {"pose": value.pose, "covariance": NO_COVARIANCE},
        "twist": {"twist": twist, "covariance": NO_COVARIANCE},
    }


NO_COVARIANCE = (0.0,) * 36
NEAREST, FARTHEST = 0.01, 100.0


def scan(value: m.LaserScan, frame: str, ros_1: bool) -> dict[str, Any]:
    """Nothing seen is 0 in the channel, and beyond the range in ROS; JSON has no infinity."""
    steps = max(1, len(value.ranges) - 1)
    return {
        "header": header(value.timestamp, frame, ros_1=ros_1),
        "angle_min": value.start_angle,
        "angle_max": value.end_angle,
        "angle_increment": (value.end_angle - value.start_angle) / steps,
        "time_increment": 0.0,
        "scan_time": 0.0,
        "range_min": NEAREST,
        "range_max": FARTHEST,
        "ranges": [far or 2.0 * FARTHEST for far in value.ranges],
        "intensities": [],
    }


def picture(value: m.CompressedImage, ros_1: bool) -> dict[str, Any]:
    data = base64.b64encode(value.data).decode()
    head = header(value.timestamp, value.frame_id, ros_1=ros_1)
    return {"header": head, "format": value.format, "data": data}


def camera_info(value: m.CameraCalibration, ros_1: bool) -> dict[str, Any]:
    matrices = {"D": value.D, "K": value.K, "R": value.R, "P": value.P}
    if not ros_1:
        matrices = {name.lower(): rows for name, rows in matrices.items()}
    return {
        "header": header(value.timestamp, value.frame_id, ros_1=ros_1),
        "height": value.height,
        "width": value.width,
        "distortion_model": value.distortion_model,
        **matrices,
        "binning_x": 0,
        "binning_y": 0,
    }


def pins(value: m.Pins, robot: str, ros_1: bool) -> dict[str, Any]:
    groups = ("digital_inputs", "digital_outputs", "analog_inputs", "analog_outputs")
    status = [
        {
            "level": 0,
            "name": group,
            "message": "",
            "hardware_id": robot,
            "values": [
                {"key": pin.name, "value": msgspec.json.encode(pin.value).decode()}
                for pin in getattr(value, group)
            ],
        }
        for group in groups
    ]
    return {"header": header(value.timestamp, robot, ros_1=ros_1), "status": status}
