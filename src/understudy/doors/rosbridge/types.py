"""The ROS types that the door speaks: names of ROS 1 and ROS 2, and their fields for `rosapi`.

A type is known here by the name it has in ROS 1, `sensor_msgs/JointState`. In ROS 2 there is a word
between, `sensor_msgs/msg/JointState`; a client that names a type in this way, or none, gets
messages as ROS 2 writes them: `sec` and `nanosec` instead of `secs` and `nsecs`, and no `seq`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from understudy.doors.messages import Time
from understudy.units import NS_PER_SECOND

MESSAGES: Mapping[str, str] = {
    "actionlib_msgs/GoalID": "time stamp, string id",
    "builtin_interfaces/Duration": "int32 sec, uint32 nanosec",
    "builtin_interfaces/Time": "int32 sec, uint32 nanosec",
    "control_msgs/JointTolerance": "string name, float64 position, float64 velocity, "
    "float64 acceleration",
    "diagnostic_msgs/DiagnosticArray": "std_msgs/Header header, "
    "diagnostic_msgs/DiagnosticStatus[] status",
    "diagnostic_msgs/DiagnosticStatus": "byte level, string name, string message, "
    "string hardware_id, diagnostic_msgs/KeyValue[] values",
    "diagnostic_msgs/KeyValue": "string key, string value",
    "geometry_msgs/Point": "float64 x, float64 y, float64 z",
    "geometry_msgs/Pose": "geometry_msgs/Point position, geometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseStamped": "std_msgs/Header header, geometry_msgs/Pose pose",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose, float64[36] covariance",
    "geometry_msgs/Quaternion": "float64 x, float64 y, float64 z, float64 w",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation, "
    "geometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": "std_msgs/Header header, string child_frame_id, "
    "geometry_msgs/Transform transform",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear, geometry_msgs/Vector3 angular",
    "geometry_msgs/TwistStamped": "std_msgs/Header header, geometry_msgs/Twist twist",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist, float64[36] covariance",
    "geometry_msgs/Vector3": "float64 x, float64 y, float64 z",
    "nav_msgs/Odometry": "std_msgs/Header header, string child_frame_id, "
    "geometry_msgs/PoseWithCovariance pose, geometry_msgs/TwistWithCovariance twist",
    "rosgraph_msgs/Clock": "builtin_interfaces/Time clock",
    "sensor_msgs/CameraInfo": "std_msgs/Header header, uint32 height, uint32 width, "
    "string distortion_model, float64[] d, float64[9] k, float64[9] r, float64[12] p, "
    "uint32 binning_x, uint32 binning_y",
    "sensor_msgs/CompressedImage": "std_msgs/Header header, string format, uint8[] data",
    "sensor_msgs/JointState": "std_msgs/Header header, string[] name, float64[] position, "
    "float64[] velocity, float64[] effort",
    "sensor_msgs/LaserScan": "std_msgs/Header header, float32 angle_min, float32 angle_max, "
    "float32 angle_increment, float32 time_increment, float32 scan_time, float32 range_min, "
    "float32 range_max, float32[] ranges, float32[] intensities",
    "std_msgs/Bool": "bool data",
    "std_msgs/Header": "builtin_interfaces/Time stamp, string frame_id",
    "std_msgs/String": "string data",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "trajectory_msgs/JointTrajectory": "std_msgs/Header header, string[] joint_names, "
    "trajectory_msgs/JointTrajectoryPoint[] points",
    "trajectory_msgs/JointTrajectoryPoint": "float64[] positions, float64[] velocities, "
    "float64[] accelerations, float64[] effort, builtin_interfaces/Duration time_from_start",
}
"""The fields of each message, as a .msg file has them."""
SERVICES: Mapping[str, tuple[str, str]] = {
    "std_srvs/SetBool": ("bool data", "bool success, string message"),
    "std_srvs/Trigger": ("", "bool success, string message"),
}
"""Request and response."""
ACTIONS: Mapping[str, tuple[str, str, str]] = {
    "control_msgs/FollowJointTrajectory": (
        "trajectory_msgs/JointTrajectory trajectory, control_msgs/JointTolerance[] path_tolerance, "
        "control_msgs/JointTolerance[] goal_tolerance, "
        "builtin_interfaces/Duration goal_time_tolerance",
        "int32 error_code, string error_string",
        "std_msgs/Header header, string[] joint_names, "
        "trajectory_msgs/JointTrajectoryPoint desired, "
        "trajectory_msgs/JointTrajectoryPoint actual, trajectory_msgs/JointTrajectoryPoint error",
    ),
    "nav2_msgs/NavigateToPose": (
        "geometry_msgs/PoseStamped pose, string behavior_tree",
        "uint16 error_code, string error_msg",
        "geometry_msgs/PoseStamped current_pose, builtin_interfaces/Duration navigation_time, "
        "int16 number_of_recoveries, float32 distance_remaining",
    ),
}
"""Goal, result and feedback."""
WORDS = ("msg", "srv", "action")
OLD_NAMES = {
    "tf/tfMessage": "tf2_msgs/TFMessage",
    "control_msgs/FollowJointTrajectoryAction": "control_msgs/FollowJointTrajectory",
    "control_msgs/FollowJointTrajectoryActionGoal": "control_msgs/FollowJointTrajectory",
}


def plain(name: Any) -> str:
    """A type without the middle word of ROS 2: `sensor_msgs/msg/JointState`."""
    parts = str(name).split("/")
    if len(parts) == 3 and parts[1] in WORDS:
        parts.pop(1)
    return OLD_NAMES.get("/".join(parts), "/".join(parts))


def in_ros_2(name: str) -> str:
    package, _, kind = name.partition("/")
    word = "srv" if name in SERVICES else "action" if name in ACTIONS else "msg"
    return f"{package}/{word}/{kind}"


def is_ros_1(name: Any) -> bool:
    """Whether a client that names this type wants messages of ROS 1."""
    return isinstance(name, str) and name.count("/") == 1


# ── times and headers ──


def stamp(at: Time, *, ros_1: bool) -> dict[str, int]:
    """A time or a duration as ROS writes it."""
    return {"secs": at.sec, "nsecs": at.nsec} if ros_1 else {"sec": at.sec, "nanosec": at.nsec}


def header(at: Time, frame: str, *, ros_1: bool) -> dict[str, Any]:
    seq = {"seq": 0} if ros_1 else {}
    return {**seq, "stamp": stamp(at, ros_1=ros_1), "frame_id": frame}


def seconds_of(duration: Any) -> float:
    """A duration in the words of ROS 1 or ROS 2, or as a number; ValueError if it is none."""
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        return float(duration)
    if not isinstance(duration, dict):
        raise ValueError(f"{str(duration)[:80]} is no duration: give sec and nanosec")
    whole: Any = duration.get("sec", duration.get("secs", 0))
    rest: Any = duration.get("nanosec", duration.get("nsecs", 0))
    if not all(isinstance(each, int | float) for each in (whole, rest)):
        raise ValueError("the sec and nanosec of a duration are numbers")
    return float(whole) + float(rest) / NS_PER_SECOND


# ── rosapi ──

BASIC = {"float64", "float32", "string", "bool", "byte", "char", "time", "duration"}
BASIC |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
EXAMPLES = {"string": "", "bool": "False", "time": "0", "duration": "0"}


def typedefs(name: str, fields: str) -> list[dict[str, Any]]:
    """The definition of a type, and those of the types in it, as `rosapi` describes them."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [(name, fields)]
    while waiting:
        own, text = waiting.pop(0)
        rows = list(_fields(text))
        found[own] = {
            "type": own if own not in MESSAGES else in_ros_2(own),
            "fieldnames": [field for _, field, _ in rows],
            "fieldtypes": [kind if kind in BASIC else in_ros_2(kind) for kind, _, _ in rows],
            "fieldarraylen": [length for _, _, length in rows],
            "examples": [_example(kind, length) for kind, _, length in rows],
            "constnames": [],
            "constvalues": [],
        }
        inside = (kind for kind, _, _ in rows if kind in MESSAGES and kind not in found)
        waiting += [(kind, MESSAGES[kind]) for kind in inside]
    return list(found.values())


def _fields(text: str) -> Iterator[tuple[str, str, int]]:
    """Type, name and length of each field; -1: no array, 0: of any length."""
    for each in filter(None, text.split(", ")):
        kind, _, name = each.partition(" ")
        bare, bracket, length = kind.partition("[")
        yield bare, name, int(length.rstrip("]") or 0) if bracket else -1


def _example(kind: str, length: int) -> str:
    if length >= 0:
        return "[]"
    return EXAMPLES.get(kind, "0" if kind in BASIC else "{}")
