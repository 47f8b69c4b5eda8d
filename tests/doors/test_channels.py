"""Channels of a cell: schemas, frames, what is sent when, and that reading changes nothing."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest

import understudy
from understudy.app.build import build_cell
from understudy.campaign.plan import job_of
from understudy.config import load_config
from understudy.doors.channels import Message, channels_on_virtual_time
from understudy.doors.scene import pose_message, quaternion_of, stl_of
from understudy.registry import module_of
from understudy.simulation.cell import Cell, write_snapshot
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.wire.exchange import InProcessCell

PROGRAMS = Path(understudy.__file__).parent / "catalog/programs"


class Listened:
    """A shipped cell on virtual time, and the messages of its channels by topic."""

    def __init__(self, name: str) -> None:
        config = load_config(name)
        self.cell = InProcessCell(build_cell(config))
        self.channels = channels_on_virtual_time(config, self.cell)
        self.messages: dict[str, list[Message]] = defaultdict(list)
        self.stop = self.channels.listen(
            lambda each: self.messages[each.channel.topic].append(each)
        )
        self.timed: Any = self.cell.timed_cell

    def enable(self, robot: str) -> None:
        module_of("robots", "arm").operator_actions(self.timed.components[robot]).enable(
            self.timed.now
        )

    def run(self, robot: str, text: str) -> None:
        self.enable(robot)
        program = self.timed.components[f"{robot}.program"]
        for _ in program.prepare(text):
            pass
        assert program.load_prepared("weld.nc") is None
        assert program.run(self.timed.now) is None

    def value(self, topic: str) -> Any:
        return self.channels.latest[topic].value


def check_viewable(schema: Any, where: str) -> None:
    """Lichtblick refuses a channel whose schema has anything else."""
    assert schema.get("type") in ("object", "array", "boolean", "string", "number", "integer"), (
        where
    )
    for name, each in schema["properties"].items() if schema["type"] == "object" else ():
        check_viewable(each, f"{where}.{name}")
    if schema["type"] == "array":
        check_viewable(schema["items"], f"{where}[]")


@pytest.fixture(scope="module")
def welding() -> Listened:
    heard = Listened("g60_welding")
    heard.cell.advance(0.2)
    heard.run("g60", (PROGRAMS / "seam.gcode").read_text())
    heard.cell.run_while_busy()
    heard.cell.advance(1.5)
    return heard


@pytest.fixture(scope="module")
def default() -> Listened:
    heard = Listened("default")
    heard.cell.connect("bench.text_tcp").ask(b"MOVE_ABS 100,0,150,0,0,0\n")
    heard.cell.advance(1.0)
    return heard


@pytest.fixture(scope="module")
def picking() -> Listened:
    heard = Listened("pick_place")
    heard.enable("g60")
    job = job_of(heard.timed, "g60")
    assert job is not None
    job.start(heard.timed.now, max_cycles=1)
    heard.cell.run_while_busy()
    heard.cell.advance(1.5)
    return heard


def all_messages(*heard: Listened) -> Iterator[Message]:
    for each in heard:
        for messages in each.messages.values():
            yield from {*messages[:10], *messages[-10:]}


def test_every_message_fits_the_schema_of_its_channel(
    default: Listened, picking: Listened, welding: Listened
) -> None:
    fleet = Listened("mobile_robot")
    fleet.cell.advance(1.0)
    checks: dict[bytes, Any] = {}
    kinds = set()
    for message in all_messages(default, picking, welding, fleet):
        schema = message.channel.schema
        if schema not in checks:
            checks[schema] = jsonschema.Draft7Validator(msgspec.json.decode(schema))
        checks[schema].validate(msgspec.json.decode(message.json()))
        kinds.add(message.channel.schema_name)
        if not message.channel.native:
            check_viewable(msgspec.json.decode(schema), message.channel.topic)
    assert {
        "foxglove.CameraCalibration",
        "foxglove.CompressedImage",
        "foxglove.FrameTransforms",
        "foxglove.ImageAnnotations",
        "foxglove.JointStates",
        "foxglove.LaserScan",
        "foxglove.Log",
        "foxglove.PoseInFrame",
        "foxglove.PosesInFrame",
        "foxglove.SceneUpdate",
        "understudy.Detections",
        "understudy.DeviceState",
        "understudy.Metrics",
        "understudy.Pins",
        "understudy.ProgramLine",
        "understudy.RobotState",
        "understudy.WireEvent",
    } <= kinds


def test_the_transforms_lead_to_the_tool(welding: Listened) -> None:
    """The frames of /tf, multiplied, are the pose that the robot reports, in every message."""
    poses = {message.at: message.value.pose for message in welding.messages["/g60/tool_pose"]}
    assert len(poses) > 50
    for message in welding.messages["/tf"]:
        if message.at not in poses:
            continue
        frames = {each.child_frame_id: each for each in message.value.transforms}
        whole, frame = np.eye(4), "g60/tool"
        while frame != "world":
            each = frames[frame]
            whole, frame = _matrix(each.translation, each.rotation) @ whole, each.parent_frame_id
        there = poses[message.at]
        wanted = _matrix(there.position, there.orientation)
        np.testing.assert_allclose(whole, wanted, atol=2e-6)


def test_bodies_lie_in_frames_that_exist(default: Listened, picking: Listened) -> None:
    for heard in (default, picking):
        known = {each.child_frame_id for each in heard.value("/tf").transforms} | {"world"}
        for topic in ("/scene/robots", "/scene/environment", "/scene/workpieces"):
            if topic in heard.channels.latest:
                used = {entity.frame_id for entity in heard.value(topic).entities}
                assert used <= known, used - known
    assert "g60/finger_left" in known


def test_what_happens_is_in_its_channel(
    default: Listened, picking: Listened, welding: Listened
) -> None:
    lines = [message.value.line for message in welding.messages["/g60/program"]]
    assert lines == sorted(lines)
    assert welding.value("/g60/program").state == "done"
    assert any(message.value.arc for message in welding.messages["/g60/state"])
    assert welding.value("/scene/trails").entities[0].lines[0].points
    requests = [message.value for message in default.messages["/journal/bench.text_tcp"]]
    assert [each.kind for each in requests][:2] == ["!", ">"]
    assert requests[1].data == b"MOVE_ABS 100,0,150,0,0,0\n"
    held = [
        entity.frame_id
        for message in picking.messages["/scene/workpieces"]
        for entity in message.value.entities
    ]
    assert "g60/flange" in held
    assert picking.value("/g60/camera/image").data[:2] == b"\xff\xd8"  # a JPEG
    found = picking.messages["/g60/detections"][0].value.objects
    assert found
    assert found[0].name == "block"


def test_a_cell_at_rest_sends_nothing() -> None:
    heard = Listened("text_robot")
    heard.cell.advance(2.0)
    heard.messages.clear()
    heard.cell.advance(3600.0)
    assert not heard.messages
    heard.stop()
    heard.cell.connect("bench.text_tcp").ask(b"GET_POS\n")
    assert not heard.messages


def test_reading_changes_nothing() -> None:
    alone = InProcessCell(build_cell(load_config("pick_place")))
    heard = Listened("pick_place")
    for cell in (alone, heard.cell):
        timed: Any = cell.timed_cell
        assert isinstance(timed, Cell)
        module_of("robots", "arm").operator_actions(timed.components["g60"]).enable(timed.now)
        job = job_of(timed, "g60")
        assert job is not None
        job.start(timed.now, max_cycles=1)
        cell.advance(12.0)
    assert write_snapshot(alone.snapshot()) == write_snapshot(heard.cell.snapshot())


def test_rotations_as_quaternions() -> None:
    rng = np.random.default_rng(1)
    for values in rng.uniform(-3.1, 3.1, (200, 3)).tolist():
        pose = pose_message((0.0, 0.0, 0.0, *values))
        whole = _matrix(pose.position, pose.orientation)
        x, y, z, w = quaternion_of(whole[:3, :3])
        assert abs(x * x + y * y + z * z + w * w - 1.0) < 1e-12
        np.testing.assert_allclose(whole, matrix(Pose(0.0, 0.0, 0.0, *values)), atol=1e-12)


def test_a_mesh_as_stl() -> None:
    vertices = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    data = stl_of(vertices, np.array([[0, 1, 2]]))
    assert len(data) == 84 + 50
    numbers = np.frombuffer(data[84:132], dtype="<f4").reshape(4, 3)
    np.testing.assert_array_equal(numbers[0], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(numbers[1:], vertices)


def _matrix(place: Any, turn: Any) -> Any:
    x, y, z, w = turn.x, turn.y, turn.z, turn.w
    whole = np.eye(4)
    whole[:3, 3] = place.x, place.y, place.z
    whole[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return whole
