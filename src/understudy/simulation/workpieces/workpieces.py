"""Workpieces: the parts of a cell on the time axis, resting, held or falling.

They are the ground truth for tests and for simulated vision. Resting parts are objects of the
environment for every robot; a held part moves with the flange of its robot, in collision checks and
in the torques of the joints.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from understudy.simulation.workpieces.layout import (
    SAME_HEIGHT,
    Landing,
    Prism,
    floor_of,
    inertia,
    landing,
    prism_of,
    rests_on,
    solid,
)
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import FARTHEST, CollisionObject
from understudy.space.pose import Pose
from understudy.space.transform import Array, inverse, matrix, pose
from understudy.units import MM, nanoseconds, seconds

PartListener = Callable[[DeviceEvent], None]
NOTHING = Environment()


class Record(Struct, frozen=True):
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

    records: list[Record] = []
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
        self._records: dict[str, Record] = {}
        self._prisms: dict[str, Prism] = {}
        self._solids: dict[Record, CollisionObject] = {}
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
            self._rest(Record(value, rows(at)), lands.place)
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
            self._release(Record(value, rows(at)), at, now)
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

    def _release(self, record: Record, place: Array, now: int) -> None:
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

    def _rest(self, record: Record, place: Array) -> None:
        name = record.value.name
        self._records[name] = Record(record.value, rows(place))
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

    def _detach(self, record: Record, now: int) -> None:
        holder = self.holders[record.holder]
        if holder.watch is not None:
            holder.watch.detach(record.value.name, now)
        self._carry(holder, None)

    def _carry(self, holder: Holder, record: Record | None) -> None:
        if holder.load is not None:
            holder.load.carry(None if record is None else load_of(record))

    def _lay(self, now: int | None) -> None:
        """Informs the robots of the parts that they can touch."""
        self.version += 1
        resting = [record for record in self._records.values() if record.state == "resting"]
        self._solids = {record: self._solid(record) for record in resting}
        self._environment.lay(self._solids.values(), now)

    def _solid(self, record: Record) -> CollisionObject:
        """The shape of a resting part for collision checks; it is kept while the part rests."""
        known = self._solids.get(record)
        return known or solid(record.value, np.array(record.place), self.margin)

    def _note(self, text: str, now: int) -> None:
        for listener in self._listeners:
            listener(DeviceEvent(now, text))


def rows(place: Array) -> Matrix:
    a, b, c, d = (tuple(row) for row in place.tolist())
    return a, b, c, d


def load_of(record: Record) -> Load:
    """What a held part adds to the load of its flange."""
    place = np.array(record.place)
    turn = place[:3, :3]
    x, y, z = place[:3, 3].tolist()
    tensor = turn @ inertia(record.value) @ turn.T
    return Load(record.value.mass, (x, y, z), tuple(tuple(row) for row in tensor.tolist()))


def _falling(record: Record, now: int) -> Array:
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


def _check_records(records: Sequence[Record], known: Mapping[str, Holder]) -> None:
    """The parts of a snapshot fit this cell and each other."""
    if len(records) > MOST_PARTS:
        raise msgspec.ValidationError(f"more than {MOST_PARTS} parts")
    holders = [record.holder for record in records if record.holder]
    if len(set(holders)) < len(holders):
        raise msgspec.ValidationError("a robot holds more than one part")
    for record in records:
        _check_record(record, known)


def _check_record(record: Record, known: Mapping[str, Holder]) -> None:
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
