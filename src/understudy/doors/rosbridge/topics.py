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
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec
import numpy as np

from understudy.app.live import Live
from understudy.doors import messages as m
from understudy.doors.channels import CellChannels, Message
from understudy.doors.rosbridge.types import header, stamp
from understudy.doors.scene import WORLD
from understudy.errors import Refused
from understudy.operator.robots import Robot
from understudy.ports.hmi import HasLasers, HasSeenTogether
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.space.transform import pose

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
                # The speeds are asked when the message is sent: a query lets the cell catch up, and
                # what that publishes would come before the rest of this reading.
                yield Published(
                    where,
                    lambda ros_1: odometry(message.value, robot, self._speeds(robot), ros_1),
                )
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
        named = {each.child_frame_id for each in message.value.transforms}
        fixed |= {each for each in named if each.endswith("/camera")}
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


# ── URDF ────────────────────────────────────────────────────────────────────────────────────────

URDF_SPEED = 1.0
"""Of a joint, in rad/s or m/s, for viewers; the limits of the cell are in the query `robots`."""


def description(robot: str, facts: Mapping[str, Any]) -> str:
    """URDF of a robot, from its ``facts`` in the query `scene`.

    Its links are called as the frames of `/tf`: `g60/base`, `g60/joint_1` …, so that rviz shows the
    robot without a prefix. A mesh is shown as the box around it: a URDF names files, and the viewer
    has not those of the cell.
    """
    root = Element("robot", name=robot)
    bodies: dict[int, list[Any]] = {}
    for link in facts["links"]:
        bodies.setdefault(link["joint"], []).extend(link["shapes"])
    base = f"{robot}/base"
    _link(root, base, bodies.get(-1, ()))
    above = base
    for number, joint in enumerate(facts["joints"]):
        frame = f"{robot}/{joint['name']}"
        _joint(root, joint, above, frame)
        _link(root, frame, bodies.get(number, ()))
        above = frame
    fixed = {"name": "flange", "type": "fixed", "axis": (0, 0, 1), "origin": np.eye(4).tolist()}
    _joint(root, fixed, above, f"{robot}/flange")
    _link(root, f"{robot}/flange", ())
    return tostring(root, encoding="unicode")


def _joint(root: Element, joint: Mapping[str, Any], above: str, below: str) -> None:
    own = SubElement(root, "joint", name=joint["name"], type=joint["type"])
    SubElement(own, "parent", link=above)
    SubElement(own, "child", link=below)
    _origin(own, joint["origin"])
    SubElement(own, "axis", xyz=_words(joint["axis"]))
    if joint["type"] != "fixed":
        far = math.tau if joint["type"] == "revolute" else 10.0
        lower, upper = (joint.get(side) for side in ("lower", "upper"))
        SubElement(
            own,
            "limit",
            lower=f"{-far if lower is None else lower:g}",
            upper=f"{far if upper is None else upper:g}",
            effort="0",
            velocity=f"{URDF_SPEED:g}",
        )


def _link(root: Element, name: str, shapes: Any) -> None:
    own = SubElement(root, "link", name=name)
    for shape in shapes:
        for place, kind, sizes in _plain(shape):
            visual = SubElement(own, "visual")
            _origin(visual, place)
            SubElement(SubElement(visual, "geometry"), kind, sizes)


def _plain(shape: Mapping[str, Any]) -> Iterator[tuple[Any, str, dict[str, str]]]:
    """A shape as those that URDF has: place, kind, sizes."""
    kind, place = str(shape["type"]).lower(), shape["origin"]
    if kind == "box":
        yield place, "box", {"size": _words(shape["dimensions"])}
    elif kind == "sphere":
        yield place, "sphere", {"radius": f"{shape['radius']:g}"}
    elif kind in ("cylinder", "capsule"):
        length = shape.get("length") or shape["height"]
        yield place, "cylinder", {"radius": f"{shape['radius']:g}", "length": f"{length:g}"}
    elif "vertices" in shape:
        rows = shape["vertices"]
        corners = np.array(
            msgspec.json.decode(rows) if isinstance(rows, msgspec.Raw) else rows
        ).reshape(-1, 3)
        if len(corners):
            low, high = corners.min(axis=0), corners.max(axis=0)
            middle = np.eye(4)
            middle[:3, 3] = (low + high) / 2.0
            whole = np.asarray(place, dtype=float).reshape(4, 4) @ middle
            yield whole, "box", {"size": _words(high - low)}


def _origin(of: Element, rows: Any) -> None:
    """rx, ry, rz of the house are roll, pitch and yaw of URDF: both turn about fixed axes x y z."""
    x, y, z, roll, pitch, yaw = pose(np.asarray(rows, dtype=float).reshape(4, 4))
    SubElement(of, "origin", xyz=_words((x, y, z)), rpy=_words((roll, pitch, yaw)))


def _words(values: Any) -> str:
    return " ".join(f"{float(value):.9g}" for value in values)
