"""Workpieces: the parts of a cell on the time axis, resting, held or falling.

They are the ground truth for tests and for simulated vision. Resting parts are objects of the
environment for every robot; a held part moves with the flange of its robot, in collision checks and
in the torques of the joints.

Where a part comes to rest has the same rules for a running cell and for the offline check. A part
at rest has one of its axes upright. It stands on what is below it: objects of the environment and
other parts, each taken as an upright prism. Boxes and cylinders with an upright axis are exact; a
cylinder on its side and every other shape count as the box around them.

`WorkpieceSequence` has the parts step by step and without a clock, for offline checks: each step is
a value (what is around the arm, what it holds, and the load at its flange), and a part that falls
has landed at once.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import ConfigError, Refused, unknown
from understudy.motion.dynamics import GRAVITY
from understudy.ports.device import DeviceEvent
from understudy.ports.workpieces import (
    AttachesShapes,
    CarriesLoad,
    HasFlange,
    Load,
    PartState,
    WorkpieceReading,
)
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.config import (
    MOST_PARTS,
    Matrix,
    WorkpieceConfig,
    WorkpieceRules,
    WorkpieceValue,
    built_workpieces,
)
from understudy.space.flat import (
    Disc,
    Footprint,
    Polygon,
    carries,
    common_area,
    hull,
    middle,
    overlap,
)
from understudy.space.model.environment import Environment
from understudy.space.model.robot import Box, Cylinder
from understudy.space.model.shapes import (
    FARTHEST,
    CollisionObject,
    ObjectType,
    bounds_of,
    box_corners,
)
from understudy.space.pose import Pose
from understudy.space.transform import Array, inverse, matrix, pose, rotation_about
from understudy.units import DEG, MM, nanoseconds, seconds

UPRIGHT = 1e-6
"""Sine of the angle up to which an axis counts as upright."""
SAME_HEIGHT = 1e-9
FALLS_OVER = 10.0 * DEG
"""A part that is released with a larger tilt falls over."""
MOST_TIPS = 100
"""Times that one part may tip over before it is put down beside everything."""


@dataclass(frozen=True)
class Prism:
    """What a shape covers: its outline from above, and its heights."""

    name: str
    outline: Footprint
    bottom: float
    top: float

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Lowest x and y, highest x and y."""
        reach = self.outline.reach
        return -reach(-1.0, 0.0), -reach(0.0, -1.0), reach(1.0, 0.0), reach(0.0, 1.0)

    def covers(self, other: "Prism", slack: float) -> bool:
        """Whether two prisms overlap by more than ``slack``, seen from above."""
        a, b = self.bounds, other.bounds
        if a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]:
            return False
        return overlap(self.outline, other.outline) > max(slack, SAME_HEIGHT)


@dataclass(frozen=True)
class Landing:
    """The place where a released part comes to rest. `tipped`: it was not supported under its
    centre, or tilted, and fell over."""

    place: Array
    tipped: bool = False


def solid(part: WorkpieceValue, place: Array, margin: float = 0.0) -> CollisionObject:
    """A part as an object for collision checks, ``margin`` thinner on every side."""
    x, y, z = (max(side - 2.0 * margin, 0.1 * side) for side in part.size)
    if part.type == "cylinder":
        return CollisionObject(
            type=ObjectType.CYLINDER, name=part.name, transform=place, radius=x / 2.0, height=z
        )
    return CollisionObject(
        type=ObjectType.BOX, name=part.name, transform=place, dimensions=(x, y, z)
    )


def inertia(part: WorkpieceValue) -> Array:
    """The inertia tensor of a homogeneous part about its centre, along its own axes."""
    x, y, z = part.size
    if part.type == "cylinder":
        across = (0.75 * x * x + z * z) / 12.0
        return part.mass * np.diag([across, across, x * x / 8.0])
    return part.mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


# ── prisms ──────────────────────────────────────────────────────────────────────────────────────


def prism_of(thing: CollisionObject) -> Prism:
    """What an object covers."""
    at, shape = thing.place, thing.shape
    x, y, z = at[:3, 3].tolist()
    if isinstance(shape, Cylinder) and abs(at[2, 2]) >= 1.0 - UPRIGHT:
        half = shape.length / 2.0
        return Prism(thing.name, Disc(x, y, shape.radius), z - half, z + half)
    points = box_corners(*bounds_of(shape)) @ at[:3, :3].T + at[:3, 3]
    bottom, top = float(points[:, 2].min()), float(points[:, 2].max())
    if isinstance(shape, Box) and not np.any(np.abs(at[2, :3]) >= 1.0 - UPRIGHT):
        low, high = points.min(axis=0), points.max(axis=0)
        points = np.array([(a, b, 0.0) for a in (low[0], high[0]) for b in (low[1], high[1])])
    outline = Polygon(tuple(hull((float(a), float(b)) for a, b, _ in points.round(12))))
    return Prism(thing.name, outline, bottom, top)


# ── rest ────────────────────────────────────────────────────────────────────────────────────────


def flat(part: WorkpieceValue, place: Array) -> tuple[Array, bool]:
    """The place turned until the nearest axis is upright, and whether that was a fall."""
    turn = place[:3, :3]
    steepest = int(np.argmax(np.abs(turn[2])))
    if part.type == "cylinder" and steepest != 2:
        axis = turn[:, 2]
        level = np.array([axis[0], axis[1], 0.0])
        target, moved = level / np.linalg.norm(level), axis
    else:
        moved = turn[:, steepest]
        target = np.array([0.0, 0.0, math.copysign(1.0, moved[2])])
    about = np.cross(moved, target)
    sine = float(np.linalg.norm(about))
    if sine <= 1e-12:
        return place, False
    angle = math.atan2(sine, float(moved @ target))
    out = place.copy()
    out[:3, :3] = rotation_about(about / sine, angle) @ turn
    return out, angle > FALLS_OVER


def floor_of(obstacles: Iterable[Prism]) -> float:
    """The height on which everything rests that nothing supports: 0, or the lowest object."""
    return min((0.0, *(prism.top for prism in obstacles)))


def landing(
    part: WorkpieceValue,
    place: Array,
    obstacles: Sequence[Prism],
    rules: WorkpieceRules,
    floor: float,
) -> Landing:
    """Where a part comes to rest that is let go at ``place``. A part that overlaps another one
    sideways is lifted until it is free; overlaps up to the margin are ignored."""
    here, tipped = flat(part, place)
    for _ in range(MOST_TIPS):
        prism = prism_of(solid(part, here))
        here = here.copy()
        height = rest_height(prism, obstacles, rules, floor)
        here[2, 3] += height - prism.bottom
        push = _push(prism, here, _supporters(prism, height, obstacles, rules), height, floor)
        if push is None:
            return Landing(here, tipped)
        here[:2, 3] += push
        tipped = True
    beyond = max(prism.outline.reach(1.0, 0.0) for prism in obstacles)
    prism = prism_of(solid(part, here))
    here[0, 3] += beyond + prism.outline.reach(-1.0, 0.0)
    here[2, 3] += floor - prism.bottom
    return Landing(here, True)


def _below_or_beside(
    prism: Prism, obstacles: Sequence[Prism], rules: WorkpieceRules
) -> list[Prism]:
    """The obstacles on which a prism would come down."""
    slack = rules.margin_mm * MM
    return [other for other in obstacles if prism.covers(other, slack)]


def rest_height(
    prism: Prism, obstacles: Sequence[Prism], rules: WorkpieceRules, floor: float
) -> float:
    """The height of its bottom when it rests."""
    over = _below_or_beside(prism, obstacles, rules)
    reach = prism.bottom + rules.settle_mm * MM + SAME_HEIGHT
    height = max((floor, *(other.top for other in over if other.top <= reach)))
    tall = prism.top - prism.bottom
    while blocking := [
        other.top
        for other in over
        if other.top > height + SAME_HEIGHT and other.bottom < height + tall - SAME_HEIGHT
    ]:
        height = min(blocking)
    return height


def _supporters(
    prism: Prism, height: float, obstacles: Sequence[Prism], rules: WorkpieceRules
) -> list[Prism]:
    slack = rules.margin_mm * MM
    over = _below_or_beside(prism, obstacles, rules)
    return [other for other in over if abs(other.top - height) <= slack + SAME_HEIGHT]


def _push(
    prism: Prism, place: Array, under: Sequence[Prism], height: float, floor: float
) -> tuple[float, float] | None:
    """The shift by which an unsupported part falls off its support; None if it stands."""
    if height <= floor + SAME_HEIGHT:
        return None
    points = [point for other in under for point in common_area(prism.outline, other.outline)]
    centre = float(place[0, 3]), float(place[1, 3])
    if points and carries(points, centre):
        return None
    x, y = middle(points) if points else (centre[0] - 1.0, centre[1])
    dx, dy = centre[0] - x, centre[1] - y
    away = math.hypot(dx, dy)
    dx, dy = (dx / away, dy / away) if away > 1e-9 else (1.0, 0.0)
    edge = max((other.outline.reach(dx, dy) for other in under), default=0.0)
    shift = max(edge + prism.outline.reach(-dx, -dy), 1e-3)
    return dx * shift, dy * shift


def rests_on(prism: Prism, below: Prism, rules: WorkpieceRules) -> bool:
    """Whether one prism stands on another."""
    slack = rules.margin_mm * MM
    on_top = abs(below.top - prism.bottom) <= slack + SAME_HEIGHT
    return on_top and prism.covers(below, slack)


PartListener = Callable[[DeviceEvent], None]
NOTHING = Environment()


class WorkpieceRecord(Struct, frozen=True):
    """A part and where it is.

    `place`: in the cell; of a held part in the frame of the flange; of a falling one where the fall
    began at `since`. `target`: where it lands, at `lands`.
    """

    value: WorkpieceValue
    place: Matrix
    state: PartState = "resting"
    holder: str = ""
    target: Matrix | None = None
    since: int = 0
    lands: int = 0


class State(Struct):
    """The parts in a snapshot, and how many have dropped and tipped over."""

    records: list[WorkpieceRecord] = []
    dropped: int = 0
    tipped: int = 0


class Status(Struct, frozen=True):
    """The true state of all parts."""

    parts: tuple[WorkpieceReading, ...]
    dropped: int = 0
    tipped: int = 0


class Holder(Struct, frozen=True):
    """A robot that can hold a part."""

    flange: Callable[[int], Array]
    watch: AttachesShapes | None = None
    load: CarriesLoad | None = None


def holders(robots: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Holder]:
    """The robots with a flange, with their collision watches."""
    watches = {
        name.partition(".")[0]: part
        for name, part in parts.items()
        if isinstance(part, AttachesShapes)
    }
    found = {}
    for name, robot in robots.items():
        watch = watches.get(name)
        source = robot if isinstance(robot, HasFlange) else watch
        if source is not None:
            load = robot if isinstance(robot, CarriesLoad) else None
            found[name] = Holder(source.flange, watch, load)
    return found


class Workpieces:
    """What robots of the cell can pick. Build it, then `join` it to its cell."""

    def __init__(
        self, configs: Iterable[WorkpieceConfig] = (), rules: WorkpieceRules | None = None
    ) -> None:
        self.rules = rules or WorkpieceRules()
        self._configured = built_workpieces(configs)
        self._records: dict[str, WorkpieceRecord] = {}
        self._prisms: dict[str, Prism] = {}
        self._solids: dict[WorkpieceRecord, CollisionObject] = {}
        self._around: tuple[object, tuple[Prism, ...]] = (None, ())
        self._environment = CellEnvironment(NOTHING)
        self.holders: Mapping[str, Holder] = {}
        self._listeners: list[PartListener] = []
        self._dropped = self._tipped = 0
        self.version = 1
        """Changes whenever a part is taken, let go, moved, added, removed or restored: pages that
        draw the parts read them again. No state."""

    def join(self, environment: CellEnvironment, holders: Mapping[str, Holder]) -> None:
        """Puts the configured parts into their cell; raises a ConfigError if one cannot rest."""
        self._environment, self.holders = environment, holders
        taken = {thing.name for thing in environment.environment.everything()}
        found = {
            name: (value, at, prism_of(solid(value, at)))
            for name, (value, at) in self._configured.items()
        }
        records = {}
        for name, (value, at, _) in sorted(found.items(), key=lambda item: item[1][2].bottom):
            if name in taken:
                raise ConfigError("an object of the environment has this name", value=name)
            lands = landing(value, at, self._obstacles(), self.rules, self._floor())
            _check_start(name, lands, at[2, 3] + self.rules.settle_mm * MM + SAME_HEIGHT)
            self._rest(WorkpieceRecord(value, rows(at)), lands.place)
            records[name] = self._records[name]
        self._records = {name: records[name] for name in self._configured}
        self._lay(None)
        environment.changed = self._surroundings_changed

    # ── WorkpiecesInReach ──

    def near(self, tool: Pose, region: tuple[float, float, float], now: int) -> Sequence[str]:
        """Names of the resting parts that reach into a box around the tool point; of a cylinder,
        the box around it counts."""
        at, half = matrix(tool), np.array(region) / 2.0
        found = []
        reach = math.hypot(*half)
        for name, record in self._records.items():
            away = math.dist(tool[:3], [row[3] for row in record.place[:3]])
            if record.state != "resting" or away > reach + math.hypot(*record.value.size) / 2.0:
                continue
            size = np.array(record.value.size)
            if boxes_touch(at, half, np.array(record.place), size / 2.0):
                found.append((away, name))
        return [name for _, name in sorted(found)]

    def reading(self, name: str, now: int) -> WorkpieceReading:
        record = self._records[name]
        value = record.value
        return WorkpieceReading(
            name=name,
            class_name=value.class_name,
            pose=pose(self.place(name, now)),
            size=value.size,
            mass=value.mass,
            state=record.state,
            holder=record.holder,
            type=value.type,
            color=value.color,
        )

    def take(self, name: str, robot: str, now: int) -> None:
        record = self._records[name]
        if record.holder == robot:
            return
        if held := self.held_by(robot):
            raise ValueError(f"{robot} holds {held} and cannot take {name} too")
        place = self.place(name, now)
        if record.holder:
            self._detach(record, now)
        holder = self.holders[robot]
        within = inverse(holder.flange(now)) @ place
        self._records[name] = replace(record, place=rows(within), state="held", holder=robot)
        below = self._prisms.pop(name, None)
        self._lay(now)
        self._carry(holder, self._records[name])
        if holder.watch is not None:
            holder.watch.attach(solid(record.value, within, self.margin), now)
        if below is not None:
            self._undermine(below, now)

    def let_go(self, robot: str, now: int) -> None:
        name = self.held_by(robot)
        if name:
            place, record = self.place(name, now), self._records[name]
            self._detach(record, now)
            self._release(replace(record, holder=""), place, now)

    def held_by(self, robot: str) -> str:
        return next((name for name, r in self._records.items() if r.holder == robot), "")

    # ── changes by an operator or a test ──

    def add(self, config: WorkpieceConfig, now: int) -> Refused | None:
        """Adds new parts, which fall to what is below them."""
        try:
            new = built_workpieces([config])
        except ConfigError as problem:
            return Refused(str(problem))
        objects = {thing.name for thing in self._environment.environment.everything()}
        for name in new:
            if name in self._records or name in objects:
                return Refused(f"there is a part or an object {name!r} already")
        if len(self._records) + len(new) > MOST_PARTS:
            return Refused(f"a cell has at most {MOST_PARTS} parts")
        for value, at in new.values():
            self._release(WorkpieceRecord(value, rows(at)), at, now)
        return None

    def move(self, name: str, place: Array, now: int) -> Refused | None:
        """Puts a part somewhere else, as a person would; it falls to what is below it."""
        if refused := self._not_free(name):
            return refused
        below = self._prisms.pop(name, None)
        self._release(self._records[name], place, now)
        if below is not None:
            self._undermine(below, now)
        return None

    def remove(self, name: str, now: int) -> Refused | None:
        if refused := self._not_free(name):
            return refused
        del self._records[name]
        below = self._prisms.pop(name, None)
        self._lay(now)
        if below is not None:
            self._undermine(below, now)
        return None

    def _not_free(self, name: str) -> Refused | None:
        if name not in self._records:
            return Refused(str(unknown("part", name, self._records)))
        if holder := self._records[name].holder:
            return Refused(f"{holder} holds {name}: release it first")
        return None

    # ── readings ──

    @property
    def margin(self) -> float:
        return self.rules.margin_mm * MM

    def names(self) -> tuple[str, ...]:
        return tuple(self._records)

    def value(self, name: str) -> WorkpieceValue:
        """A part without its place."""
        return self._records[name].value

    def place(self, name: str, now: int) -> Array:
        """The centre of a part in the cell, 4×4."""
        record = self._records[name]
        place = np.array(record.place)
        if record.state == "held":
            return np.asarray(self.holders[record.holder].flange(now) @ place)
        if record.state == "falling":
            return _falling(record, now)
        return place

    def within_flange(self, name: str) -> Array | None:
        """The place of a held part in the frame of its flange; None if it is not held."""
        record = self._records[name]
        return np.array(record.place) if record.state == "held" else None

    def status(self, now: int) -> Status:
        parts = tuple(self.reading(name, now) for name in self._records)
        return Status(parts, self._dropped, self._tipped)

    def on_event(self, listener: PartListener) -> None:
        self._listeners.append(listener)

    def advice(self, message: str) -> str:
        return ""

    # ── time ──

    def next_wake(self) -> int | None:
        falling = (r.lands for r in self._records.values() if r.state == "falling")
        return min(falling, default=None)

    def wake(self, now: int) -> None:
        for name in list(self._records):
            record = self._records[name]
            if record.state == "falling" and record.lands <= now:
                assert record.target is not None
                place = np.array(record.target)
                height = record.place[2][3] - record.target[2][3]
                if height > self.rules.settle_mm * MM + SAME_HEIGHT:
                    self._dropped += 1
                    self._note(f"{name} has dropped {height / MM:.0f} mm", now)
                self._release(record, place, now)

    def busy(self) -> bool:
        return self.next_wake() is not None

    def save(self) -> State:
        return State(list(self._records.values()), self._dropped, self._tipped)

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, State)
        _check_records(saved.records, self.holders)
        self._records = {record.value.name: record for record in saved.records}
        self._dropped, self._tipped = saved.dropped, saved.tipped
        self._prisms = {
            name: prism_of(solid(r.value, np.array(r.place)))
            for name, r in self._records.items()
            if r.state == "resting"
        }
        self._lay(None)
        for robot, holder in self.holders.items():
            name = self.held_by(robot)
            self._carry(holder, self._records[name] if name else None)

    # ── inside ──

    def _obstacles(self) -> tuple[Prism, ...]:
        """Everything that a part can stand on: objects of the environment and resting parts."""
        return (*self._fixed(), *self._prisms.values())

    def _fixed(self) -> tuple[Prism, ...]:
        there = self._environment.environment
        if self._around[0] is not there:
            self._around = there, tuple(prism_of(thing) for thing in there.objects)
        return self._around[1]

    def _floor(self) -> float:
        return floor_of(self._fixed())

    def _release(self, record: WorkpieceRecord, place: Array, now: int) -> None:
        """Lets a part go at ``place``: it rests at once, or falls."""
        name = record.value.name
        lands = landing(record.value, place, self._obstacles(), self.rules, self._floor())
        drop = float(place[2, 3] - lands.place[2, 3])
        if lands.tipped:
            self._tipped += 1
            self._note(f"{name} is unstable and falls over", now)
        if drop <= self.rules.settle_mm * MM + SAME_HEIGHT and not (lands.tipped and drop > 0.0):
            self._rest(record, lands.place)
        else:
            self._records[name] = replace(
                record,
                state="falling",
                holder="",
                place=rows(place),
                target=rows(lands.place),
                since=now,
                lands=now + nanoseconds(math.sqrt(2.0 * drop / -GRAVITY[2])),
            )
        self._lay(now)

    def _rest(self, record: WorkpieceRecord, place: Array) -> None:
        name = record.value.name
        self._records[name] = WorkpieceRecord(record.value, rows(place))
        self._prisms[name] = prism_of(solid(record.value, place))

    def _undermine(self, gone: Prism, now: int) -> None:
        """Lets the parts go that stood on one that is not there any more."""
        above = [n for n, prism in self._prisms.items() if rests_on(prism, gone, self.rules)]
        for name in above:
            self._let_settle(name, now)

    def _let_settle(self, name: str, now: int) -> None:
        """Looks anew at what carries a resting part."""
        prism = self._prisms.pop(name, None)
        if prism is None:
            return
        record = self._records[name]
        before = np.array(record.place)
        self._release(record, before, now)
        if not np.array_equal(before, np.array(self._records[name].place)) or (
            self._records[name].state != "resting"
        ):
            self._undermine(prism, now)

    def _surroundings_changed(self, now: int) -> None:
        for name, _ in sorted(self._prisms.items(), key=lambda item: item[1].bottom):
            self._let_settle(name, now)

    def _detach(self, record: WorkpieceRecord, now: int) -> None:
        holder = self.holders[record.holder]
        if holder.watch is not None:
            holder.watch.detach(record.value.name, now)
        self._carry(holder, None)

    def _carry(self, holder: Holder, record: WorkpieceRecord | None) -> None:
        if holder.load is not None:
            holder.load.carry(None if record is None else load_of(record))

    def _lay(self, now: int | None) -> None:
        """Informs the robots of the parts that they can touch."""
        self.version += 1
        resting = [record for record in self._records.values() if record.state == "resting"]
        self._solids = {record: self._solid(record) for record in resting}
        self._environment.lay(self._solids.values(), now)

    def _solid(self, record: WorkpieceRecord) -> CollisionObject:
        """The shape of a resting part for collision checks; it is kept while the part rests."""
        known = self._solids.get(record)
        return known or solid(record.value, np.array(record.place), self.margin)

    def _note(self, text: str, now: int) -> None:
        for listener in self._listeners:
            listener(DeviceEvent(now, text))


def rows(place: Array) -> Matrix:
    a, b, c, d = (tuple(row) for row in place.tolist())
    return a, b, c, d


def load_of(record: WorkpieceRecord) -> Load:
    """What a held part adds to the load of its flange."""
    place = np.array(record.place)
    turn = place[:3, :3]
    x, y, z = place[:3, 3].tolist()
    tensor = turn @ inertia(record.value) @ turn.T
    return Load(record.value.mass, (x, y, z), tuple(tuple(row) for row in tensor.tolist()))


def _falling(record: WorkpieceRecord, now: int) -> Array:
    """The place of a falling part: free fall, turned as it will lie, sideways at a steady speed."""
    assert record.target is not None
    start, end = np.array(record.place), np.array(record.target)
    t = seconds(min(now, record.lands) - record.since)
    share = (min(now, record.lands) - record.since) / max(record.lands - record.since, 1)
    out = end.copy()
    out[:2, 3] = start[:2, 3] + share * (end[:2, 3] - start[:2, 3])
    out[2, 3] = max(float(start[2, 3]) + 0.5 * GRAVITY[2] * t * t, float(end[2, 3]))
    return out


def boxes_touch(a: Array, half_a: Array, b: Array, half_b: Array) -> bool:
    """Whether two boxes overlap: 4×4 places and half sizes; the test of the separating axes."""
    own, other, way = a[:3, :3], b[:3, :3], b[:3, 3] - a[:3, 3]
    crossed = np.cross(own.T[:, None, :], other.T[None, :, :]).reshape(-1, 3)
    axes = np.concatenate([own.T, other.T, crossed[np.linalg.norm(crossed, axis=1) > 1e-9]])
    reach = np.abs(axes @ own) @ half_a + np.abs(axes @ other) @ half_b
    return bool((np.abs(axes @ way) <= reach).all())


def _check_start(name: str, found: Landing, highest: float) -> None:
    """A part of a cell file lies below, or at, the place that the file gives."""
    if found.tipped:
        raise ConfigError("the part is tilted, or nothing supports it under its centre", value=name)
    if found.place[2, 3] > highest:
        raise ConfigError("the part overlaps an object or another part", value=name)


def _check_records(records: Sequence[WorkpieceRecord], known: Mapping[str, Holder]) -> None:
    """The parts of a snapshot fit this cell and each other."""
    if len(records) > MOST_PARTS:
        raise msgspec.ValidationError(f"more than {MOST_PARTS} parts")
    holders = [record.holder for record in records if record.holder]
    if len(set(holders)) < len(holders):
        raise msgspec.ValidationError("a robot holds more than one part")
    for record in records:
        _check_record(record, known)


def _check_record(record: WorkpieceRecord, known: Mapping[str, Holder]) -> None:
    """A part of a snapshot has a shape and places, and they fit its state."""
    for place in filter(None, (record.place, record.target)):
        thing = solid(record.value, np.array(place))
        assert thing.shape is not None
        if np.abs(thing.place[:3, 3]).max() > 2.0 * FARTHEST:  # tipping may move it a little
            raise msgspec.ValidationError(f"{record.value.name}: too far away")
    if record.since > record.lands:
        raise msgspec.ValidationError(f"{record.value.name}: it lands before it falls")
    held, falling = record.state == "held", record.state == "falling"
    if held != bool(record.holder) or (held and record.holder not in known):
        raise msgspec.ValidationError(f"{record.value.name}: no robot {record.holder!r} holds it")
    if falling != (record.target is not None):
        raise msgspec.ValidationError(f"{record.value.name}: only a falling part has a target")


ARM = "arm"


@dataclass(frozen=True)
class WorkpieceStage:
    """Between two steps. `environment`: objects, zones and resting parts. `held`: shapes in the
    frame of the flange. `load`: what the flange carries beside the tool. `events`: parts that
    dropped or tipped over in the step before."""

    environment: Environment
    held: tuple[CollisionObject, ...] = ()
    load: Load | None = None
    events: tuple[str, ...] = ()


def stage_of(
    parts: Workpieces, around: CellEnvironment, robot: str, events: tuple[str, ...] = ()
) -> WorkpieceStage:
    """What is around a robot and in its hand at present."""
    held = [r for r in parts.save().records if r.state == "held" and r.holder == robot]
    return WorkpieceStage(
        environment=around.with_parts(),
        held=tuple(solid(r.value, np.array(r.place), parts.margin) for r in held),
        load=load_of(held[0]) if held else None,
        events=events,
    )


class WorkpieceSequence:
    """The parts of a cell and the one arm that moves them."""

    def __init__(
        self, configs: Iterable[WorkpieceConfig], rules: WorkpieceRules, environment: Environment
    ) -> None:
        self._around = CellEnvironment(environment)
        self._parts = Workpieces(configs, rules)
        self._flange = np.eye(4)
        self._now = 0
        self._events: list[str] = []
        self._parts.join(self._around, {ARM: Holder(lambda now: self._flange)})
        self._parts.on_event(lambda event: self._events.append(event.text))

    def take(self, name: str, flange: Array) -> WorkpieceStage:
        """The arm takes a part; ``flange``: in the cell at that moment."""
        self._begin(flange)
        self._parts.take(name, ARM, self._now)
        return self._settled()

    def let_go(self, flange: Array) -> WorkpieceStage:
        """The arm puts its part down, or drops it."""
        self._begin(flange)
        self._parts.let_go(ARM, self._now)
        return self._settled()

    def near(self, tool: Pose, region: tuple[float, float, float]) -> tuple[str, ...]:
        """Names of the resting parts at the tool point; see `WorkpiecesInReach`."""
        return tuple(self._parts.near(tool, region, self._now))

    def readings(self) -> tuple[WorkpieceReading, ...]:
        return self._parts.status(self._now).parts

    def stage(self) -> WorkpieceStage:
        return stage_of(self._parts, self._around, ARM, tuple(self._events))

    def _begin(self, flange: Array) -> None:
        self._flange, self._events = flange, []

    def _settled(self) -> WorkpieceStage:
        """The stage after everything that falls has landed."""
        while (due := self._parts.next_wake()) is not None:
            self._now = due
            self._parts.wake(due)
        return self.stage()
