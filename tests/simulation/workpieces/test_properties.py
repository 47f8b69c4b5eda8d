"""Whatever is done with the parts: none is lost, none is inside another, and snapshots and slices
of time change nothing. The overlaps are those of the collision detector, not of the parts' own
geometry."""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.agenda import advance
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.simulation.workpieces.workpieces import Holder, Workpieces, solid
from understudy.space.collision.detector import CollisionDetector
from understudy.space.model.environment import Environment, ObjectConfig
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, translation
from understudy.units import DEG, MM, NS_PER_MS

TABLE = {"name": "table", "type": "box", "position_mm": [0, 0, 25], "dimensions_mm": [400, 300, 50]}
STAND = {
    "name": "stand", "type": "cylinder", "radius_mm": 60, "height_mm": 30,
    "position_mm": [300, 0, 15],
}  # fmt: skip
NAMES = ("cube", "plate", "can", "disc", "brick")
PARTS: list[dict[str, Any]] = [
    {"name": "cube", "dimensions_mm": [40, 40, 40], "position_mm": [-100, 0, 70]},
    {"name": "plate", "dimensions_mm": [120, 80, 10], "position_mm": [0, 0, 55]},
    {"name": "can", "type": "cylinder", "radius_mm": 20, "height_mm": 50,
     "position_mm": [120, 0, 75]},
    {"name": "disc", "type": "cylinder", "radius_mm": 40, "height_mm": 12,
     "position_mm": [120, 100, 56]},
    {"name": "brick", "dimensions_mm": [60, 30, 25], "position_mm": [-100, 100, 62.5]},
]  # fmt: skip


class Action(NamedTuple):
    """Moves a part (mm, deg), or takes it there and lets it go at another place; then time
    passes."""

    part: str
    at: tuple[float, float, float, float, float]
    carried: bool
    wait_ms: int


ACTIONS = st.builds(
    Action,
    st.sampled_from(NAMES),
    st.tuples(
        st.floats(-150, 330),
        st.floats(-120, 120),
        st.floats(20, 200),
        st.sampled_from((0.0, 0.0, 0.0, 2.0, 25.0, 80.0, 180.0)),
        st.floats(-180, 180),
    ),
    st.booleans(),
    st.integers(0, 150),
)


class Shelf:
    """Parts on a table and a stand, with a robot whose flange is set by hand."""

    def __init__(self) -> None:
        self.now = 0
        self.flange = np.eye(4)
        objects = tuple(msgspec.convert(o, ObjectConfig).build(str.encode) for o in (TABLE, STAND))
        self.environment = CellEnvironment(Environment(objects))
        self.parts = Workpieces([msgspec.convert(part, WorkpieceConfig) for part in PARTS])
        self.parts.join(self.environment, {"hand": Holder(lambda now: self.flange)})

    def do(self, action: Action, slices: int = 1) -> None:
        x, y, z, tilt, yaw = action.at
        place = matrix(Pose(x * MM, y * MM, z * MM, tilt * DEG, 0.0, yaw * DEG))
        if action.carried:
            self.carry(action.part, place)
        else:
            assert self.parts.move(action.part, place, self.now) is None
        for n in range(1, slices + 1):
            self.run(self.now + action.wait_ms * NS_PER_MS * n // slices)
        self.now += action.wait_ms * NS_PER_MS

    def carry(self, part: str, place: Array) -> None:
        """Takes the part where it is, moves the flange, and lets go."""
        self.parts.take(part, "hand", self.now)
        within = self.parts.within_flange(part)
        assert within is not None
        self.flange = place @ np.linalg.inv(within)
        self.parts.let_go("hand", self.now)

    def run(self, to: int) -> None:
        advance([self.parts], to)

    def settle(self) -> None:
        while (due := self.parts.next_wake()) is not None:
            self.now = due
            self.run(due)

    def saved(self) -> bytes:
        return msgspec.json.encode(self.parts.save())


def solids(shelf: Shelf) -> dict[str, CollisionObject]:
    """The parts, thinner by the margin, where they are."""
    records = shelf.parts.save().records
    return {
        r.value.name: solid(r.value, shelf.parts.place(r.value.name, shelf.now), 1.0 * MM)
        for r in records
    }


def touches(thing: CollisionObject, others: list[CollisionObject]) -> bool:
    found = CollisionDetector(objects=[thing, *others]).check_objects()
    return any(thing.name in (hit.object1_name, hit.object2_name) for hit in found)


@given(st.lists(ACTIONS, min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
@example([Action("can", (0, 0, 90, 0, 0), True, 0), Action("plate", (20, 5, 120, 0, 30), True, 0)])
def test_no_part_is_lost_and_none_is_inside_another(actions: list[Action]) -> None:
    shelf = Shelf()
    for action in actions:
        shelf.do(action)
    shelf.settle()
    status = shelf.parts.status(shelf.now)
    assert [part.name for part in status.parts] == list(NAMES)
    assert {part.state for part in status.parts} == {"resting"}
    found = solids(shelf)
    around = list(shelf.environment.environment.objects)
    assert CollisionDetector(objects=[*around, *found.values()]).check_objects() == []
    for part in status.parts:
        place = matrix(part.pose)
        axes = np.abs(place[2, :3])
        assert math.isclose(axes.max(), 1.0, abs_tol=1e-9) or (
            part.type == "cylinder" and abs(place[2, 2]) < 1e-9
        ), "it does not lie flat"
        on_floor = part.pose.z <= max(part.size) / 2.0 + 1e-9
        below = translation(0.0, 0.0, -2.5 * MM) @ place
        rest = [thing for name, thing in found.items() if name != part.name]
        value = {r.value.name: r.value for r in shelf.parts.save().records}[part.name]
        lowered = solid(value, below, 1.0 * MM)
        assert on_floor or touches(lowered, [*around, *rest]), f"{part.name} hangs in the air"


@given(st.lists(ACTIONS, min_size=1, max_size=6), st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_other_slices_of_time_change_nothing(actions: list[Action], slices: int) -> None:
    one, other = Shelf(), Shelf()
    for action in actions:
        one.do(action)
        other.do(action, slices)
    assert one.saved() == other.saved()


@given(st.lists(ACTIONS, min_size=2, max_size=6), st.data())
@settings(max_examples=25, deadline=None)
def test_a_snapshot_at_any_moment_goes_on_alike(actions: list[Action], data: Any) -> None:
    cut = data.draw(st.integers(1, len(actions)))
    one, other = Shelf(), Shelf()
    for action in actions[:cut]:
        one.do(action)
    other.parts.load(msgspec.json.decode(one.saved()))
    other.now, other.flange = one.now, one.flange
    assert other.saved() == one.saved()
    for action in actions[cut:]:
        for shelf in (one, other):
            shelf.do(action)
    for shelf in (one, other):
        shelf.settle()
    assert other.saved() == one.saved()
    assert other.parts.status(one.now) == one.parts.status(one.now)
    laid = [
        [(thing.name, thing.place.tolist()) for thing in shelf.environment.with_parts().objects]
        for shelf in (one, other)
    ]
    assert laid[0] == laid[1]
