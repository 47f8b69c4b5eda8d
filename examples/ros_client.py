"""Drive an arm and a mobile robot from a script with roslibpy, no ROS installed.

The arm follows a trajectory, and then one that is canceled on its way; the mobile robot goes to a
place, and then drives by `/cmd_vel`. The cell is one that this script starts; with a cell of your
own, `understudy run --rosbridge`, the address is 127.0.0.1 and port 9090.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import roslibpy

RUN = "run default --rate 10 --ephemeral --no-hmi --rosbridge --ready-file=ready.json"
SECONDS = 120


def call(ros: Any, service: str, kind: str, **args: Any) -> Any:
    return roslibpy.Service(ros, service, kind).call(roslibpy.ServiceRequest(args), timeout=SECONDS)


def next_message(ros: Any, topic: str, kind: str) -> Any:
    """The next message of a topic."""
    found, there = list[Any](), threading.Event()

    def hear(message: Any) -> None:
        found.append(message)
        there.set()

    listener = roslibpy.Topic(ros, topic, kind)
    listener.subscribe(hear)
    assert there.wait(SECONDS), topic
    listener.unsubscribe()
    return found[0]


class Action:
    """A goal of an action: `cancel` it, or wait for its `result`."""

    def __init__(self, ros: Any, name: str, kind: str, goal: dict[str, Any]) -> None:
        self._client = roslibpy.ActionClient(ros, name, kind)
        self._done, self._answer = threading.Event(), dict[str, Any]()
        self.moved = threading.Event()
        self._id = self._client.send_goal(
            roslibpy.Goal(goal), self._end, lambda feedback: self.moved.set(), self._end
        )

    def _end(self, result: Any) -> None:
        self._answer = result
        self._done.set()

    def cancel(self) -> None:
        self._client.cancel_goal(self._id)

    def result(self) -> tuple[str, Any]:
        assert self._done.wait(SECONDS)
        return self._answer["status"].name, self._answer["values"]


def trajectory(names: list[str], *points: tuple[float, list[float]]) -> dict[str, Any]:
    rows = [
        {"positions": joints, "time_from_start": {"sec": int(at), "nanosec": int(at % 1 * 1e9)}}
        for at, joints in points
    ]
    return {"trajectory": {"joint_names": names, "points": rows}}


def drive_arm(ros: Any, arm: str) -> None:
    follow = f"/{arm}/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory"
    print("enable:", call(ros, f"/{arm}/enable", "std_srvs/srv/SetBool", data=True))
    state = next_message(ros, f"/{arm}/joint_states", "sensor_msgs/msg/JointState")
    names, here = state["name"], state["position"]
    there, back = [q + 0.2 for q in here], [q - 0.1 for q in here]
    way = trajectory(names, (1.0, there), (2.5, back), (3.0, here))
    reached = Action(ros, *follow, way).result()
    print("trajectory:", *reached)
    assert reached == ("SUCCEEDED", {"error_code": 0, "error_string": ""})
    too_fast = trajectory(names, (0.01, there))
    status, refused = Action(ros, *follow, too_fast).result()
    print("too fast:", status, refused)
    assert (status, refused["error_code"]) == ("ABORTED", -1)
    goal = Action(ros, *follow, trajectory(names, (30.0, there)))
    goal.moved.wait(SECONDS)
    goal.cancel()
    status, _ = goal.result()
    print("canceled:", status)
    assert status == "CANCELED"


def drive_robot(ros: Any, robot: str) -> None:
    odom = f"/{robot}/odom", "nav_msgs/msg/Odometry"
    spot = next_message(ros, *odom)["pose"]["pose"]
    spot["position"]["x"] += 0.3
    place = {"pose": {"header": {"frame_id": "map"}, "pose": spot}}
    drive = f"/{robot}/navigate_to_pose", "nav2_msgs/action/NavigateToPose"
    status, result = Action(ros, *drive, place).result()
    print("navigate:", status, result)
    assert status == "SUCCEEDED"
    before = next_message(ros, *odom)["pose"]["pose"]["position"]["x"]
    velocity = roslibpy.Topic(ros, f"/{robot}/cmd_vel", "geometry_msgs/msg/Twist")
    now, end = before, time.monotonic() + SECONDS
    while abs(now - before) < 0.05 and time.monotonic() < end:
        velocity.publish({"linear": {"x": 0.2}, "angular": {"z": 0.0}})
        now = next_message(ros, *odom)["pose"]["pose"]["position"]["x"]
    print("cmd_vel:", f"{now - before:.2f} m")
    assert abs(now - before) >= 0.05
    velocity.publish({})


def drive(host: str, port: int) -> None:
    ros = roslibpy.Ros(host, port)
    ros.run(SECONDS)
    found = call(ros, "/rosapi/action_servers", "rosapi/GetActionServers")["action_servers"]
    arms, robots = (
        [name.split("/")[1] for name in found if name.endswith(f"/{kind}")]
        for kind in ("follow_joint_trajectory", "navigate_to_pose")
    )
    print("arms:", *arms, "mobile robots:", *robots)
    drive_arm(ros, arms[0])
    drive_robot(ros, robots[0])
    ros.terminate()


def main(folder: Path) -> None:
    command = [sys.executable, "-m", "understudy", *RUN.split()]
    cell = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        ready: dict[str, Any] = {"endpoints": {}}
        while "rosbridge" not in ready["endpoints"] and cell.poll() is None:
            time.sleep(0.05)
            with suppress(FileNotFoundError):
                ready = json.loads((folder / "ready.json").read_text())
        host, _, port = ready["endpoints"]["rosbridge"].removeprefix("ws://").rpartition(":")
        drive(host, int(port))
    finally:
        cell.terminate()
        cell.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
