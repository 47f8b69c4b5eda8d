"""What cameras see of a cell at a time: its bodies, and the faces of them that are rendered."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.errors import ConfigError
from understudy.ports import Component
from understudy.ports.device import HasFingers
from understudy.ports.requests import AsksProcess
from understudy.sight.faces import (
    ROBOT_SIDES,
    SIDES,
    Color,
    FaceSet,
    face_set,
    joined,
    marker_face,
    shape_faces,
    top_of,
)
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import Holder, holders
from understudy.space.model.appearance import PLAIN, Appearance, BoardConfig, MarkerConfig
from understudy.space.model.robot import Box, Cylinder
from understudy.space.model.shapes import CollisionObject, Shape
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, translation
from understudy.units import seconds

if TYPE_CHECKING:
    from understudy.simulation.workpieces.workpieces import Workpieces

AXES = {"x": 0, "y": 1}
FINGER = re.compile(r"\.finger[^.]*$", re.IGNORECASE)
"""A shape of a tool that the gripper moves, as in the 3D scene of the pages."""


@dataclass(frozen=True, slots=True)
class VisibleBody:
    """A shape and its place in the cell, 4×4. `robot`: it belongs to a robot."""

    shape: Shape
    place: Array
    look: Appearance = PLAIN
    robot: bool = False


class Hand(NamedTuple):
    """The fingers of a robot and where its tool is, seen from the cell."""

    device: HasFingers
    tool: Callable[[int], Pose]

    def shifted(self, place: Array, now: int) -> Array:
        """Where a finger is whose shape, as the tool has it, is at this place: as far inwards as
        the fingers are closed."""
        facts = self.device.fingers()
        if facts is None:
            return place
        tool = matrix(self.tool(now))
        axis = tool[:3, AXES[facts.axis]]
        side = np.sign((place[:3, 3] - tool[:3, 3]) @ axis)
        moved = place.copy()
        moved[:3, 3] -= axis * side * (facts.widest - self.device.opening(now)) / 2.0
        return moved


def hands_of(robots: Mapping[str, Any], parts: Mapping[str, Component]) -> dict[str, Hand]:
    """The robots whose gripper has fingers, by name."""
    found = {}
    for name, part in parts.items():
        owner = name.partition(".")[0]
        tool = getattr(robots.get(owner), "tcp", None)
        if isinstance(part, HasFingers) and tool is not None:
            found[owner] = Hand(part, tool)
    return found


class VisibleCell:
    """The environment, the parts and the robots of a cell. Robots are seen as their collision
    shapes, if they have a collision watch."""

    def __init__(
        self,
        environment: CellEnvironment,
        workpieces: "Workpieces | None",
        holding: Mapping[str, Holder],
        watches: Mapping[str, CollisionWatch],
        asking: Sequence[AsksProcess] = (),
        hands: Mapping[str, Hand] = MappingProxyType({}),
    ) -> None:
        self._environment = environment
        self._cell_parts = workpieces
        self._holding = holding
        self._watches = watches
        self._asking = asking
        self._hands = hands
        self._shapes: dict[tuple[str, tuple[float, float, float]], Shape] = {}

    def objects(self) -> tuple[CollisionObject, ...]:
        """The objects of the environment; the same tuple as long as nothing has changed."""
        return self._environment.environment.objects

    def bodies(self, now: int) -> Iterator[VisibleBody]:
        """The parts and the robots."""
        yield from self._parts_now(now)
        for name, watch in self._watches.items():
            yield from self._robot(watch, self._hands.get(name.partition(".")[0]), now)

    def flange(self, robot: str, now: int) -> Array | None:
        """The flange of a robot in the cell; None if it has none."""
        holder = self._holding.get(robot)
        return None if holder is None else holder.flange(now)

    def superseded(self, trigger: str) -> bool:
        """Whether this is the trigger of a question that the cell does not ask any more."""
        return any(part.superseded(trigger) for part in self._asking)

    def _parts_now(self, now: int) -> Iterator[VisibleBody]:
        parts = self._cell_parts
        if parts is None:
            return
        for name in parts.names():
            value = parts.value(name)
            kind = value.type, value.size
            if kind not in self._shapes:
                x, _, z = value.size
                round_one = value.type == "cylinder"
                self._shapes[kind] = Cylinder(x / 2.0, z) if round_one else Box(value.size)
            look = Appearance(value.color, value.marker)
            yield VisibleBody(self._shapes[kind], parts.place(name, now), look)

    def _robot(self, watch: CollisionWatch, hand: Hand | None, now: int) -> Iterator[VisibleBody]:
        """The links, the tool with its fingers as far open as they are, and what is attached; held
        parts are among the parts."""
        own = self._cell_parts.names() if self._cell_parts is not None else ()
        held = tuple(thing for thing in watch.held() if thing.name not in own)
        tool = watch.tool_and_held[0]
        figure = watch.body.figure(tool, held)
        looks = {thing.name: thing.look for thing in watch.body.carried(tool, held)}
        q = watch.plan.at(seconds(now)).position
        frames = figure.foot @ figure.chain.axes_of(np.asarray(q)[None])[0]
        for part in figure.parts:
            place, look = frames[part.body] @ part.place, looks.get(part.name, PLAIN)
            if hand is not None and part.name in looks and FINGER.search(part.name):
                place = hand.shifted(place, now)
            yield VisibleBody(part.shape, place, look, robot=True)


def visible_cell(
    environment: CellEnvironment,
    workpieces: "Workpieces | None",
    robots: Mapping[str, Any],
    parts: Mapping[str, Component],
) -> VisibleCell:
    """The cell as its cameras see it."""
    watches = {name: part for name, part in parts.items() if isinstance(part, CollisionWatch)}
    asking = [part for part in parts.values() if isinstance(part, AsksProcess)]
    hands = hands_of(robots, parts)
    return VisibleCell(environment, workpieces, holders(robots, parts), watches, asking, hands)


def color_of(name: str) -> Color:
    """`#d9822b` → red, green and blue."""
    return int(name[1:3], 16), int(name[3:5], 16), int(name[5:7], 16)


class CameraScene:
    """The faces of a cell; those of the environment are kept until it changes."""

    def __init__(self, cell: VisibleCell, object_color: Color, robot_color: Color) -> None:
        self._cell = cell
        self._object_color = object_color
        self._robot_color = robot_color
        self._around: tuple[tuple[CollisionObject, ...], FaceSet] | None = None
        self._sheets: dict[MarkerConfig | BoardConfig, FaceSet | None] = {}
        self._started = False
        for thing in cell.objects():
            self._sheet(thing.look)
        for body in cell.bodies(0):
            self._sheet(body.look)
        self._started = True

    def faces(self, now: int) -> FaceSet:
        bodies = [self._body(body) for body in self._cell.bodies(now)]
        return joined([self._environment(), *bodies])

    def _environment(self) -> FaceSet:
        objects = self._cell.objects()
        if self._around is None or self._around[0] is not objects:
            found = [self._body(VisibleBody(o.shape, o.place, o.look)) for o in objects]
            self._around = objects, joined(found)
        return self._around[1]

    def _body(self, body: VisibleBody) -> FaceSet:
        color = self._robot_color if body.robot else self._object_color
        color = color_of(body.look.color) if body.look.color else color
        sides = ROBOT_SIDES if body.robot else SIDES
        faces, sheet = shape_faces(body.shape, color, sides), self._sheet(body.look)
        if sheet is not None:
            faces = joined([faces, sheet.moved(translation(0.0, 0.0, top_of(body.shape)))])
        return faces.moved(body.place)

    def _sheet(self, look: Appearance) -> FaceSet | None:
        """The marker or board on an object, about the origin."""
        printed = look.marker or look.board
        if printed is None:
            return None
        if printed not in self._sheets:
            try:
                self._sheets[printed] = _printed(printed)
            except ConfigError:
                if self._started:
                    self._sheets[printed] = None  # of a part that was added to the running cell
                else:
                    raise
        return self._sheets[printed]


def _printed(printed: MarkerConfig | BoardConfig) -> FaceSet | None:
    """None without OpenCV: a cell runs without it, only its vision process does not."""
    try:
        from understudy.sight import markers
    except ImportError:
        return None
    if isinstance(printed, MarkerConfig):
        side = markers.paper_size(printed.dictionary, printed.size)
        pattern = markers.marker_pattern(printed.dictionary, printed.id)
        return face_set([marker_face(pattern, side, side)])
    size = printed.columns, printed.rows, printed.square
    board = (
        markers.Charuco(*size, printed.dictionary)
        if printed.type == "charuco"
        else markers.Chessboard(*size)
    )
    return face_set([marker_face(board.pattern(), board.width, board.height)])
