"""The ROS door: topics, services, actions, locks, bounds, nonsense.

roslibpy is in `examples/ros_client.py`, which runs with the other examples; roslib of npm in a soak
test.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from tests import live_doors
from tests.live_doors import BENCH, TOKEN
from tests.scratch_packages import npm_packages
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from understudy.app.live import Live
from understudy.doors.channels import Message, channels_of
from understudy.doors.rosbridge.server import open_door
from understudy.doors.rosbridge.types import MESSAGES, in_ros_2, plain, seconds_of
from understudy.doors.websocket import MOST_REPLY_BYTES, Client, address_of
from understudy.errors import ConfigError, Refused


class Ros(live_doors.JsonClient):
    """A client that speaks the protocol."""

    async def call(self, service: str, /, **args: Any) -> Any:
        await self.send("call_service", id=service, service=service, args=args)
        return await self.next(op="service_response", id=service)

    async def message(self, topic: str, **given: Any) -> Any:
        await self.send("subscribe", id=topic, topic=topic, **given)
        return (await self.next(op="publish", topic=topic))["msg"]

    async def refused(self, **operation: Any) -> str:
        await self.send(**operation)
        return str((await self.next(op="status"))["msg"])


in_cell = partial(live_doors.in_cell, open_door)


def with_client(scene: Callable[[Live, Ros], Awaitable[None]], **options: Any) -> None:
    async def run(live: Live, address: str) -> None:
        async with connect(address) as socket:
            await scene(live, Ros(socket))

    in_cell(run, **options)


# ── topics ──────────────────────────────────────────────────────────────────────────────────────


def test_topics_of_an_arm_with_a_camera() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        joints = await ros.message("/joint_states")
        assert joints["name"] == list(live.operator.robots.find("g60").model.chain.names)  # type: ignore[union-attr]
        assert set(joints["header"]["stamp"]) == {"sec", "nanosec"}
        old = await ros.message("/g60/joint_states", type="sensor_msgs/JointState")
        assert set(old["header"]["stamp"]) == {"secs", "nsecs"}
        urdf = fromstring((await ros.message("/g60/robot_description"))["data"])
        links = {link.attrib["name"] for link in urdf.iter("link")}
        fixed, moving = await ros.message("/tf_static"), await ros.message("/tf")
        still = {each["child_frame_id"] for each in fixed["transforms"]}
        frames = still | {each["child_frame_id"] for each in moving["transforms"]}
        assert {"g60/base", "g60/flange", "g60/camera"} <= still
        assert links <= frames
        picture = await ros.message("/camera/image/compressed")
        assert picture["format"] in ("png", "jpeg")
        assert len(picture["data"]) > 1000
        assert len((await ros.message("/camera/camera_info"))["k"]) == 9
        assert {each["name"] for each in (await ros.message("/io_states"))["status"]} >= {
            "digital_inputs"
        }
        first = (await ros.message("/clock"))["clock"]
        await ros.socket.send('{"op": "subscribe", "topic": "/clock"}')
        while (await ros.next(op="publish", topic="/clock"))["msg"]["clock"] == first:
            pass

    with_client(scene, cell="pick_place")


def test_topics_of_a_mobile_robot() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        odom = await ros.message("/odom", type="nav_msgs/msg/Odometry")
        assert odom["child_frame_id"] == "robot-1/base"
        assert len(odom["twist"]["covariance"]) == 36
        scan = await ros.message("/scan")
        count = (scan["angle_max"] - scan["angle_min"]) / scan["angle_increment"]
        assert len(scan["ranges"]) == round(count) + 1
        place = {"header": {"frame_id": "camera"}, "pose": {"position": {"x": 1, "y": 1}}}
        given = {"id": 1, "action": "/navigate_to_pose"}
        await ros.send("send_action_goal", **given, args={"pose": place})
        values = (await ros.next(op="action_result"))["values"]
        assert values["error_msg"] == "frame_id 'camera'; allowed: map, odom, world"
        await ros.call("/robot-1/emergency_stop")
        place["header"] = {"frame_id": "map"}
        await ros.send("send_action_goal", **given, args={"pose": place})
        answer = await ros.next(op="action_result")
        assert (answer["status"], answer["values"]["error_code"] != 0) == (6, True), answer
        stopped = "/robot-1/emergency_stop"
        await ros.send("subscribe", topic=stopped)
        await ros.next(op="publish", topic=stopped, msg={"data": True})

    with_client(scene, cell="mobile_robot")


def test_no_time_passes_while_the_messages_of_a_reading_are_published() -> None:
    """A state that is read in between would be replaced by the older one."""

    async def scene(live: Live, ros: Ros) -> None:
        channels = channels_of(live)

        def note_times(times: list[int]) -> None:
            """Of poses; everything is published again when a listener comes."""

            def listener(message: Message) -> None:
                if message.channel.topic == "/robot-1/pose":
                    times.append(live.operator.cell.now)

            channels.listen(listener)

        before: list[int] = []
        after: list[int] = []
        note_times(before)
        await ros.message("/odom")
        note_times(after)
        while not after:
            await ros.next(op="publish", topic="/odom")
        assert after == before[-len(after) :]

    with_client(scene, cell="mobile_robot")


# ── services and actions ────────────────────────────────────────────────────────────────────────


def test_services_and_refusals_of_a_cell() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        assert (await ros.call("/pause"))["values"] == {"success": True, "message": "PAUSED"}
        assert (await ros.call("/run", data=True))["values"]["message"] == "RUNNING"
        assert (await ros.call("/run"))["values"]["success"] is False
        assert (await ros.call("/bench/emergency_stop"))["values"]["success"] is True
        await ros.send("subscribe", topic="/emergency_stop")
        await ros.next(op="publish", topic="/emergency_stop", msg={"data": True})
        assert (await ros.call("/reset"))["values"]["success"] is True
        await ros.send("publish", topic="/emergency_stop", msg={"data": True})
        assert (await ros.call("/nothing"))["result"] is False
        assert live.operator.robots.find("bench").condition().state == "EmergencyStopped"  # type: ignore[union-attr]
        await ros.send("send_action_goal", id="a", action="/follow", args={})
        answer = await ros.next(op="action_result")
        assert (answer["result"], answer["status"]) == (False, 6)
        assert answer["values"].startswith("action '/follow' does not exist")
        for operation, words in (
            ({"op": "publish", "topic": "/chatter", "msg": {}}, "nothing reads '/chatter'"),
            ({"op": "advertise", "topic": "/emergency_stop", "type": "a/B"}, "cannot be adver"),
            ({"op": "subscribe", "topic": "/chatter"}, "nothing publishes '/chatter'"),
            ({"op": "subscribe", "topic": "/clock", "type": "std_msgs/Bool"}, "rosgraph_msgs/C"),
            ({"op": "unsubscribe", "topic": "/clock"}, "not subscribed"),
            ({"op": "advertise_service", "service": "/x"}, "unknown op"),
            ({"op": "cancel_action_goal", "id": "b"}, "no goal 'b'"),
            ({"op": "set_level", "level": 3}, "allowed: none, error, warning, info"),
        ):
            assert words in await ros.refused(**operation)

    with_client(scene, cell=BENCH)


def test_rosapi() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        topics = (await ros.call("/rosapi/topics"))["values"]
        assert dict(zip(topics["topics"], topics["types"], strict=True))["/clock"] == (
            "rosgraph_msgs/msg/Clock"
        )
        types = {
            name: (await ros.call("/rosapi/topic_type", topic=name))["values"]
            for name in topics["topics"]
        }
        assert all(each["type"] for each in types.values())
        for name in (await ros.call("/rosapi/services"))["values"]["services"]:
            assert (await ros.call("/rosapi/service_type", service=name))["values"]["type"]
            answer = await ros.call(name) if name.startswith("/rosapi/") else {"values": ""}
            assert answer["values"] is not None
        found = await ros.call("/rosapi/message_details", type="sensor_msgs/msg/JointState")
        assert [each["type"] for each in found["values"]["typedefs"]] == [
            in_ros_2(each)
            for each in ("sensor_msgs/JointState", "std_msgs/Header", "builtin_interfaces/Time")
        ]
        assert (await ros.call("/rosapi/get_param", name="/use_sim_time"))["values"][
            "value"
        ] == "true"

    with_client(scene, cell=BENCH)


def test_trajectories_that_are_refused_and_one_that_leaves_its_path() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        arm: Any = live.operator.robots.find("g60")
        names, here = list(arm.model.chain.names), list(arm.axis_reading().joints)
        numbers = iter(range(100))

        async def follow(points: list[Any], names: list[str] = names, **more: Any) -> Any:
            rows = [{"positions": row, "time_from_start": at} for at, row in points]
            goal = {"trajectory": {"joint_names": names, "points": rows}, **more}
            number = str(next(numbers))
            action = "/g60/follow_joint_trajectory"
            await ros.send("send_action_goal", id=number, action=action, args=goal)
            return (await ros.next(op="action_result", id=number))["values"]

        there = [q + 0.1 for q in here]
        refused = await follow([(1, there)])
        assert refused["error_code"] == -1  # its drives are off
        await ros.call("/enable", data=True)
        for code, words, points, more in (
            (-2, "the joints are", [(1, there)], {"names": names[1:]}),
            (-1, "1 to 10000", [], {}),
            (-1, "finite", [(1, there[1:])], {}),
            (-1, "not a trajectory", [("soon", there)], {}),
            (-1, "point 1 is at 1 s, after 2 s", [(2, there), (1, here)], {}),
            (-1, "point 0 has no time", [(0, there), (1, here)], {}),
            (-1, "outside", [(100, [9.0, *here[1:]])], {}),
            (-2, "a tolerance for", [(1, there)], {"path_tolerance": [{"name": "x"}]}),
        ):  # fmt: skip
            answer = await follow(points, **more)
            assert answer["error_code"] == code, answer
            assert words in answer["error_string"]
        tight = [{"name": names[0], "position": 1e-9}]
        left = await follow([(0.3, there)], path_tolerance=tight)
        assert left["error_code"] == -4, left
        assert (await follow([(1, here), (2, there)]))["error_code"] == 0
        assert math.dist(arm.axis_reading().joints, there) < 1e-3

    with_client(scene, cell="g60_welding")


def test_a_goal_ends_with_its_client() -> None:
    async def scene(live: Live, address: str) -> None:
        arm: Any = live.operator.robots.find("g60")
        goal = {
            "joint_names": list(arm.model.chain.names),
            "points": [{"positions": [0.5] * 6, "time_from_start": {"secs": 600}}],
        }
        async with connect(address) as socket:
            ros = Ros(socket)
            await ros.call("/enable", data=True)
            given = {"action": "/follow_joint_trajectory", "args": {"trajectory": goal}}
            await ros.send("send_action_goal", id="a", feedback=True, **given)
            while not arm.condition().moving:
                await ros.next(op="action_feedback")
            await ros.send("send_action_goal", id="a", **given)
            twice = await ros.next(op="action_result", id="a")
            assert (twice["result"], "another id" in twice["values"]) == (False, True)
        async with connect(address) as socket:
            ros = Ros(socket)
            while arm.condition().moving:
                await ros.call("/rosapi/get_time")
        assert not arm.condition().error

    in_cell(scene, cell="g60_welding")


# ── locks and bounds ────────────────────────────────────────────────────────────────────────────


def test_a_door_that_others_can_reach_wants_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(live: Live, address: str) -> None:
        port = address.rpartition(":")[2]
        here = f"ws://127.0.0.1:{port}"
        async with connect(here) as socket:
            await socket.send('{"op": "call_service", "service": "/pause"}')
            with pytest.raises(ConnectionClosed):
                await socket.recv()
        with pytest.raises(InvalidStatus):
            await connect(f"{here}/?token=wrong")
        async with connect(here) as socket:
            ros = Ros(socket)
            await ros.send("auth", mac=TOKEN)
            assert (await ros.call("/pause"))["result"]
        async with connect(f"{here}/?token={TOKEN}", origin="https://example.org") as socket:  # type: ignore[arg-type]
            assert (await Ros(socket).call("/resume"))["result"]

    with pytest.raises(ConfigError, match="can be reached from other machines"):
        in_cell(scene, cell=BENCH, value="0.0.0.0:0")
    monkeypatch.setenv("UNDERSTUDY_TOKEN", TOKEN)
    in_cell(scene, cell=BENCH, value="0.0.0.0:0")


def test_nothing_is_read_from_a_client_for_which_a_large_reply_waits() -> None:
    async def scene(live: Live, address: str) -> None:
        taken = asyncio.Event()

        async def send(data: Any, **given: Any) -> None:
            await taken.wait()

        lock = live.lock_at("rosbridge", "127.0.0.1")
        client = Client(live, SimpleNamespace(send=send), lock, text=True)
        client.reply(b"x" * MOST_REPLY_BYTES)
        room = asyncio.ensure_future(client.room())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not room.done()
        sender = asyncio.ensure_future(client.send_all())
        await room
        sender.cancel()

    in_cell(scene, cell=BENCH)


def test_pages_of_other_sites_are_refused_and_wrong_addresses() -> None:
    async def scene(live: Live, address: str) -> None:
        for origin in ("https://example.org", "null"):
            with pytest.raises(InvalidStatus):
                await connect(address, origin=origin)  # type: ignore[arg-type]
        async with connect(address, origin="http://localhost:8080"):  # type: ignore[arg-type]
            pass
        assert address_of(live, "rosbridge", "", 9090) == ("127.0.0.1", 0)
        assert address_of(live, "rosbridge", "[::1]:7", 9090) == ("::1", 7)
        for wrong in ("a:b", "70000"):
            with pytest.raises(ConfigError):
                address_of(live, "rosbridge", wrong, 9090)

    in_cell(scene, cell=BENCH)


def test_an_emergency_stop_passes_a_flood_of_a_client_that_reads_nothing() -> None:
    async def scene(live: Live, address: str) -> None:
        async with connect(address) as deaf, connect(address) as other:

            async def stop() -> None:
                assert (await Ros(other).call("/emergency_stop"))["values"]["success"]

            question = json.dumps({"op": "call_service", "service": "/rosapi/topics"})
            await live_doors.check_stop_beside_a_deaf_flood(deaf, question, stop)

    in_cell(scene, cell=BENCH)


@pytest.mark.soak
def test_an_emergency_stop_beside_a_flood_takes_less_than_50_ms() -> None:
    async def scene(live: Live, address: str) -> None:
        async with connect(address) as socket:
            ros = Ros(socket)

            async def stop() -> None:
                assert (await ros.call("/emergency_stop"))["result"]

            message = '{"op": "publish", "topic": "/emergency_stop", "msg": {"data": false}}'
            await live_doors.check_stops_beside_a_flood(
                address, message, stop, lambda: ros.call("/reset")
            )

    in_cell(scene, cell=BENCH)


def test_of_a_throttled_topic_nothing_comes_before_its_time() -> None:
    async def scene(live: Live, ros: Ros) -> None:
        first = await ros.message("/clock", throttle_rate=3_600_000)
        while seconds_of((await ros.call("/rosapi/get_time"))["values"]["time"]) < 3.0:
            pass
        assert ros.heard == []
        assert (await ros.message("/clock"))["clock"] != first["clock"]

    with_client(scene, cell=BENCH)


def test_a_client_gets_as_many_messages_as_its_queue_is_long() -> None:
    async def scene(live: Live, address: str) -> None:
        topic, channels = "/g60/io_states", channels_of(live)
        async with connect(address) as one, connect(address) as other:
            newest, five = Ros(one), Ros(other)
            await newest.message(topic)
            await five.message(topic, queue_length=5)
            for turn in range(10):  # nothing is sent meanwhile
                output = {"robot": "g60", "pin": 0, "value": turn % 2 == 0}
                assert not isinstance(live.commands.call("set_output", output, "operator"), Refused)
                channels.read(live.operator.cell.now)
            for ros, count in ((newest, 1), (five, 5)):
                ros.heard.clear()
                for _ in range(count):
                    await ros.next(op="publish", topic=topic)
                await ros.call("/rosapi/get_time")
                assert not [each for each in ros.heard if each.get("topic") == topic]

    in_cell(scene, cell="g60_welding", rate=0.0)


@pytest.mark.soak
def test_roslib_of_npm_drives_an_arm_and_a_mobile_robot(tmp_path: Path) -> None:
    environment = npm_packages(tmp_path / "npm", "roslib")
    script = str(Path(__file__).with_name("driver.mjs"))

    async def scene(live: Live, address: str) -> None:
        found = await live_doors.printed("node", script, address, env=environment)
        assert found["enabled"]["success"]
        assert found["reached"]["result"]["error_code"] == 0
        assert found["moved"] < 1e-3
        assert "the client has canceled the goal" in found["canceled"]["failed"]
        assert abs(found["place"]) < 0.1
        assert found["driven"] >= 0.05

    in_cell(scene)


KEYS = (
    "topic", "type", "msg", "args", "id", "service", "action", "action_type", "level", "feedback",
)  # fmt: skip
OPS = (
    "advertise", "publish", "subscribe", "unsubscribe", "call_service", "send_action_goal",
    "cancel_action_goal", "auth", "set_level", "status", "fragment",
)  # fmt: skip
VALUES = (
    None, True, -1, 1e300, "", "x", "/clock", "/tf", "/g60/joint_states", "/robot-1/cmd_vel",
    "/emergency_stop", "/g60/hold", "/rosapi/topics", "/rosapi/message_details",
    "/rosapi/get_param", "/robot-1/navigate_to_pose", "/g60/follow_joint_trajectory",
)  # fmt: skip
INSIDE = ("trajectory", "points", "joint_names", "positions", "pose", "linear", "data", "header")


def test_nonsense_is_answered_and_ends_nothing() -> None:
    async def scene(live: Live, address: str) -> None:
        async with connect(address, max_size=None) as socket:
            ros = Ros(socket)
            for each in live_doors.nonsense(Random(7), OPS, VALUES, KEYS, INSIDE):
                await socket.send(each)
            assert (await ros.call("/rosapi/get_time"))["result"]
        large = await connect(address, close_timeout=1)
        await live_doors.check_too_large_a_message_ends_the_connection(large)
        async with connect(address) as socket:
            assert (await Ros(socket).call("/rosapi/get_time"))["result"]

    in_cell(scene)


def test_names_of_types() -> None:
    assert plain("sensor_msgs/msg/JointState") == plain("sensor_msgs/JointState")
    assert all(plain(in_ros_2(name)) == name for name in MESSAGES)
    assert plain("control_msgs/FollowJointTrajectoryAction") == "control_msgs/FollowJointTrajectory"
    assert seconds_of({"secs": 1, "nsecs": 500_000_000}) == 1.5
