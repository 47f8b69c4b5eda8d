"""A place off the map is refused, by every way in which a robot is sent to a place."""

import json
from collections.abc import Mapping

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports import WireMessage
from understudy.robots.mobile.config.profile import SimulationProfile, World
from understudy.robots.mobile.fleet_interface import FleetView, HasFleetView
from understudy.robots.mobile.hardware_interface import Bounds
from understudy.robots.mobile.world import floor_of, map_of
from understudy.simulation.cell import Cell
from understudy.space.model.environment import Environment, place
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.wire.exchange import InProcessCell

ALLOWED = "allowed: x -0.2 … 20.2 m, y -0.2 … 14.2 m"


def fleet_of(cell: Cell) -> FleetView:
    part = cell.components["fleet.hardware"]
    assert isinstance(part, HasFleetView)
    return part.seen_together


def answers(kind: str, payload: Mapping[str, object], answer: str) -> list[dict[str, object]]:
    """What robot-1 answers to a message on NATS."""
    cell = InProcessCell(build_cell(load_config("fleet")))
    client = cell.connect("nats")
    cell.advance(0.5)
    client.messages()
    data = json.dumps({"messageId": "m-1", "payload": payload}).encode()
    client.say(WireMessage(f"robot.robot-1.{kind}", data, "ack-1"))
    cell.advance(0.5)
    said = [each for each in client.messages() if each.address == f"robot.robot-1.{answer}"]
    return [json.loads(each.payload)["payload"] for each in said]


def test_a_command_to_a_pose_off_the_map_is_rejected_with_the_bounds() -> None:
    asked = {"commandType": "MOVE_TO_POSE", "parameters": {"x": 50.0, "y": 7.0}}
    [ack] = answers("command.request", asked, "command.ack")
    assert ack["status"] == "REJECTED"
    assert ack["reason"] == f"INVALID_PARAMETERS: x 50 y 7 is off the map; {ALLOWED}"


@pytest.mark.parametrize(
    "work",
    [
        {"taskType": "MOVE_TO_POINT", "moveToPoint": {"x": 5.0, "y": -3.0}},
        {"taskType": "MISSION", "mission": {"steps": [{"type": "MOVE", "x": 5.0, "y": -3.0}]}},
    ],
)
def test_a_task_off_the_map_fails_before_it_begins(work: dict[str, object]) -> None:
    [failed] = answers("task.assign", {"taskId": "t-1", **work}, "task.failed")
    assert failed["errorCode"] == "INVALID_TASK"
    assert str(failed["errorMessage"]).endswith(f"x 5 y -3 is off the map; {ALLOWED}")


def test_an_operator_is_refused_at_once() -> None:
    cell = build_cell(load_config("fleet"))
    running = InProcessCell(cell)
    running.connect("nats")
    running.advance(0.5)
    payload = {"commandType": "MOVE_TO_POSE", "parameters": {"x": 50.0, "y": 7.0}}
    refused = fleet_of(cell).request("robot-1", "command.request", payload, 500_000_000)
    assert isinstance(refused, Refused)
    assert refused.reason.endswith(ALLOWED)


def flat(x_mm: float, z_mm: float) -> CollisionObject:
    at = place((x_mm, 0.0, z_mm), (0.0, 0.0, 0.0))
    return CollisionObject(
        type=ObjectType.BOX, name=f"at {x_mm}", transform=at, dimensions=(2.0, 4.0, 0.1)
    )


def test_the_floor_is_what_has_its_top_at_zero() -> None:
    floors = floor_of(Environment((flat(0.0, -50.0), flat(3000.0, -50.0), flat(9000.0, 300.0))))
    assert floors == Bounds(-1.0, -2.0, 4.0, 2.0)
    assert floor_of(Environment((flat(0.0, 300.0),))) is None


def test_the_map_is_the_room_around_the_start_or_the_floor_below_it() -> None:
    floor = Bounds(-1.0, -2.0, 4.0, 2.0)

    def room(size: float, x: float = 0.0) -> tuple[tuple[float, float], ...]:
        return ((x - size, -size), (x + size, -size), (x + size, size), (x - size, size))

    def found(*walls: tuple[tuple[float, float], ...]) -> Bounds | None:
        return map_of(floor, SimulationProfile(world=World(boundaries=walls)))

    assert found() == floor
    assert found(room(3.0), room(9.0)) == Bounds(-9.0, -9.0, 9.0, 9.0)
    assert found(room(1.0, 5.0), room(1.0, -5.0)) == floor  # the robot is beside both
    assert map_of(Bounds(1.0, 1.0, 2.0, 2.0), SimulationProfile()) is None
    assert map_of(None, SimulationProfile()) is None
