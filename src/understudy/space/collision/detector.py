"""`CollisionDetector`: contacts of an arm and what it carries, with itself and the environment."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ConfigError, unknown
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.pair_store import Pair, SelfPairs
from understudy.space.collision.self_pairs import candidates, self_pairs
from understudy.space.collision.solids import KIND, Ints, Part
from understudy.space.collision.world import (
    NOT_FINITE,
    Packed,
    ShapeContact,
    World,
    arm_parts,
    assembled,
    bounding_box,
    carried_part,
    contact_in,
    contacts,
    least_distance,
    packed,
    placement,
    pose,
    shape_contact,
    standing_part,
)
from understudy.space.compiled import direct
from understudy.space.given import given_numbers, given_row
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Sphere
from understudy.space.model.shapes import (
    CollisionObject,
    Meshes,
    TriangleMesh,
    as_object,
    unique,
)
from understudy.space.transform import Array

SUNK = 1e-3
"""Depth (m) by which the foot may overlap the object it stands on without a collision."""
POINT_RADIUS = 1e-9
"""Of the sphere that stands for a point, in metres."""


@dataclass(frozen=True)
class CollisionResult:
    """One contact, or none. Point (world frame) and depth are in metres."""

    collision: bool = False
    object1_name: str = ""
    object2_name: str = ""
    contact_point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    penetration_depth: float = 0.0


FREE = CollisionResult()


class LeftOutReason(StrEnum):
    """Why two parts of an arm are not compared."""

    JOINED = "joined by a joint"
    FIXED = "fixed to each other"
    OVERLAP = "overlap in every configuration"
    APART = "cannot touch in any configuration"
    NOT_LISTED = "not in self_collision_pairs"
    SWITCHED_OFF = "check_self_collision is off"


class LeftOut(NamedTuple):
    """Two parts that are not compared with each other."""

    objects: tuple[str, str]
    reason: LeftOutReason


class CollisionDetector:
    """An arm in its environment. Lengths are in metres, angles in radians.

    ``foot``: frame of the arm's foot, 4×4 in the world frame of the objects.
    """

    def __init__(
        self,
        chain: Chain | None = None,
        objects: Iterable[CollisionObject] = (),
        *,
        meshes: Meshes | None = None,
        foot: Array | None = None,
        check_self_collision: bool = True,
        check_environment: bool = True,
    ) -> None:
        self._chain: Chain | None = None
        self._arm: tuple[Part, ...] = ()
        self._meshes: Meshes | None = None
        self._foot = np.eye(4) if foot is None else foot
        self._carried: dict[str, CollisionObject] = {}
        self._objects: dict[str, CollisionObject] = {}
        self._pairs: frozenset[Pair] | None = None
        self._found: SelfPairs | None = None
        self._self, self._environment = check_self_collision, check_environment
        self._built: _Built | None = None
        if chain is not None:
            self.set_robot_model(chain, meshes=meshes)
        for thing in unique(tuple(objects)):
            self.add_object(thing)

    def equip_like(self, other: "CollisionDetector") -> None:
        """Takes over the arm, objects, tools, pairs and switches of another detector."""
        self._foot, self._self, self._environment = other._foot, other._self, other._environment
        if other._chain is not None:
            self.set_robot_model(other._chain, meshes=other._meshes)
        self.clear_environment()
        for thing in other.objects:
            self.add_object(thing)
        for thing in other.carried:
            self.attach(thing)
        self._pairs = other._pairs

    # ── contents ────────────────────────────────────────────────────────────────────────────────

    def set_robot_model(self, chain: Chain, *, meshes: Meshes | None = None) -> None:
        """Sets the arm; ``meshes``: the mesh files of its URDF."""
        self._chain, self._arm = chain, arm_parts(chain, meshes or {})
        self._meshes = meshes
        self._built = self._found = None

    def add_object(self, thing: CollisionObject) -> None:
        """Adds an object to the environment; replaces one of the same name."""
        assert thing.shape is not None
        assert thing.place is not None
        self._objects[thing.name] = thing
        self._built = None

    def remove_object(self, name: str) -> CollisionObject:
        if name not in self._objects:
            raise unknown("object", name, self._objects)
        self._built = None
        return self._objects.pop(name)

    def clear_environment(self) -> None:
        self._objects.clear()
        self._built = None

    def attach(self, thing: CollisionObject) -> None:
        """Attaches a tool or a held part to the flange; its pose is in the flange frame."""
        if self._chain is None:
            raise ConfigError("there is no arm to attach it to", key=thing.name)
        carried_part(self._chain, thing)
        self._carried[thing.name] = thing
        self._built = self._found = None

    def detach(self, name: str) -> CollisionObject:
        """Detaches an object; it is not added to the environment."""
        if name not in self._carried:
            raise unknown("attached object", name, self._carried)
        self._built = self._found = None
        return self._carried.pop(name)

    @property
    def objects(self) -> tuple[CollisionObject, ...]:
        return tuple(self._objects.values())

    @property
    def carried(self) -> tuple[CollisionObject, ...]:
        return tuple(self._carried.values())

    # ── pairs ───────────────────────────────────────────────────────────────────────────────────

    def set_self_collision_pairs(self, pairs: Iterable[Pair] | Literal["auto"]) -> None:
        """Sets the pairs of link indices to check; ``auto``: all that can touch."""
        if pairs == "auto":
            self._pairs = None
        else:
            self._pairs = frozenset(_ordered(*map(int, pair)) for pair in pairs)
            known = {part.link for part in self._arm}
            for one in sorted({link for pair in self._pairs for link in pair} - known):
                raise ConfigError(
                    "no such link",
                    key="self_collision_pairs",
                    value=one,
                    allowed=" ".join(map(str, sorted(known))),
                )
        self._built = None

    @property
    def self_collision_pairs(self) -> tuple[Pair, ...]:
        """The pairs of link indices that are checked."""
        return self._links_of(self._built_now().packed.world.partners)

    def touchable_pairs(self) -> tuple[Pair, ...]:
        """The pairs of link indices that can touch in some configuration."""
        return self._links_of(self._analysis().touchable)

    def overlapping_pairs(self) -> tuple[Pair, ...]:
        """The pairs of link indices that ``auto`` leaves out because they overlap in every sampled
        configuration, other than links joined by a joint."""
        return self._links_of(self._analysis().overlapping)

    def unproven_pairs(self) -> tuple[Pair, ...]:
        """The pairs of link indices, not joined by a joint, that a given list leaves out. With
        ``auto`` there are none: pairs that it leaves out are proven apart or overlap by design."""
        if self._pairs is None:
            return ()
        apart = self._links_of(candidates(self.moving_parts()))
        return tuple(sorted(set(apart) - self._pairs))

    def left_out(self) -> tuple[LeftOut, ...]:
        """The pairs of moving parts that are not compared with each other, and why. Parts of one
        body of the arm are not listed."""
        parts = self.moving_parts()
        checked = {(int(i), int(j)) for i, j in self.world.partners}
        found = {
            (parts[i].name, parts[j].name): self._reason(i, j)
            for j in range(len(parts))
            for i in range(j)
            if (i, j) not in checked and (parts[i].body != parts[j].body or i < len(self._arm) <= j)
        }
        return tuple(LeftOut(pair, reason) for pair, reason in found.items())

    def _reason(self, i: int, j: int) -> LeftOutReason:
        one, other = self.moving_parts()[i], self.moving_parts()[j]
        if one.body == other.body:
            return LeftOutReason.FIXED
        if not self._self:
            return LeftOutReason.SWITCHED_OFF
        if self._pairs is not None:
            return LeftOutReason.NOT_LISTED
        if (i, j) in self._analysis().overlapping:
            return LeftOutReason.OVERLAP
        of_arm = j < len(self._arm)
        if of_arm and (i, j) not in candidates(self._arm):
            return LeftOutReason.JOINED
        return LeftOutReason.APART

    def _links_of(self, pairs: Iterable[Iterable[int]]) -> tuple[Pair, ...]:
        parts = self.moving_parts()
        return tuple(sorted({_ordered(parts[i].link, parts[j].link) for i, j in pairs}))

    def _analysis(self) -> SelfPairs:
        if self._found is None:
            parts = self.moving_parts()
            nothing = SelfPairs((), ())
            self._found = self_pairs(self._chain, self._arm, parts) if self._chain else nothing
        return self._found

    def _partners(self) -> Ints:
        parts = self.moving_parts()
        found: Iterable[Pair] = ()
        if self._self and self._pairs is None:
            found = self._analysis().touchable
        elif self._self:
            found = (
                (i, j)
                for j in range(len(parts))
                for i in range(j)
                if _ordered(parts[i].link, parts[j].link) in (self._pairs or ())
                and parts[i].link != parts[j].link
            )
        return np.array(list(found), dtype=np.int64).reshape(-1, 2)

    def moving_parts(self) -> tuple[Part, ...]:
        """The shapes of the arm, and of what it carries."""
        if self._chain is None:
            return ()
        return (*self._arm, *(carried_part(self._chain, c) for c in self._carried.values()))

    # ── checks ──────────────────────────────────────────────────────────────────────────────────

    def check_collision(self, q: ArrayLike) -> CollisionResult:
        """Some contact in configuration q, or a result without collision."""
        built = self._built or self._built_now()
        pair = built.touching(q)
        if built.foot.collision or pair < 0:
            return built.foot
        return self._result(built, *divmod(pair, len(built.parts)))

    def has_contact(self, q: ArrayLike) -> bool:
        """Whether there is a contact in configuration q: the fastest check of a single one."""
        built = self._built or self._built_now()
        return built.touching(q) >= 0 or built.foot.collision

    def check_trajectory(
        self, trajectory: ArrayLike, sample_rate: int = 10
    ) -> list[CollisionResult]:
        """Checks every sample_rate-th configuration, and the last. The motion between them is not
        checked; `sweep` proves whole paths."""
        Q = np.atleast_2d(self._joints(trajectory))
        if not len(Q):
            return []
        chosen = np.unique(np.append(np.arange(0, len(Q), max(sample_rate, 1)), len(Q) - 1))
        return [self.check_collision(q) for q in Q[chosen]]

    def collides(self, Q: ArrayLike) -> NDArray[np.bool_]:
        """(m, dof) → (m,): whether there is a contact, for many configurations at once."""
        built = self._built_now()
        rows = np.atleast_2d(self._joints(Q))
        out = np.empty(len(rows), dtype=np.bool_)
        contacts(built.packed.wholes, rows, out)
        return np.asarray(out | built.foot.collision)

    def get_min_distance(self, q: ArrayLike) -> float:
        """Smallest distance of all checked pairs; negative: depth; infinite: no pairs."""
        built = self._built_now()
        world, at = built.packed.world, built.packed.at
        pose(world, given_row(q, len(built.packed.q), "joints"), at)
        least, i, j = least_distance(world, at, np.inf, -np.inf, built.packed.scratch)
        return float(self._touch(built, i, j).distance if least <= 0.0 else least)

    def _joints(self, Q: ArrayLike) -> Array:
        """Configurations of a caller: one or many rows; none at all is an empty list."""
        columns = len(self._built_now().packed.q)
        return given_numbers(Q, columns, "joints") if np.size(Q) else np.zeros((0, columns))

    def check_objects(
        self, most: int | None = None, progress: Callable[[float], None] = lambda share: None
    ) -> list[CollisionResult]:
        """Overlaps between objects of the environment; at most ``most`` of them.

        ``progress`` is called with the share that is done."""
        parts = [standing_part(thing, self._foot) for thing in self._objects.values()]
        world = assembled(None, (), parts)
        at, aside = placement(world), scratch()
        found = []
        near = _overlapping(world.boxes)
        for number, (i, j) in enumerate(near):
            progress(number / len(near))
            touched = shape_contact(world.solids, at, i, j, aside)
            if touched.distance < 0.0:
                found.append(self._named(parts[i].name, parts[j].name, touched))
                if len(found) == most:
                    break
        return found

    # ── the arrays ──────────────────────────────────────────────────────────────────────────────

    @property
    def world(self) -> World:
        """The world as arrays, for kernels and `sweep`."""
        return self._built_now().packed.world

    @property
    def chain(self) -> Chain | None:
        return self._chain

    @property
    def foot_contact(self) -> CollisionResult:
        """The contact of the foot, which never moves, with an object."""
        return self._built_now().foot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the world's shapes."""
        return tuple(part.name for part in self._built_now().parts)

    @property
    def open_meshes(self) -> tuple[str, ...]:
        """Names of the shapes that are meshes with larger openings: they have no inside, and are
        checked at their surface only."""
        parts = self._built_now().parts
        meshes = ((part.name, part.shape) for part in parts if isinstance(part.shape, TriangleMesh))
        return tuple(dict.fromkeys(name for name, mesh in meshes if mesh.has_openings))

    def contact_between(self, q: ArrayLike, i: int, j: int) -> CollisionResult:
        """The contact of shapes i and j of the world in configuration q, if they touch."""
        built = self._built_now()
        pose(built.packed.world, _floats(q), built.packed.at)
        touched = self._touch(built, i, j)
        found = self._named(built.parts[i].name, built.parts[j].name, touched)
        return replace(found, collision=bool(touched.distance <= 0.0))

    def distance_between(self, q: ArrayLike, i: int, j: int) -> float:
        """Distance of shapes i and j of the world in configuration q; negative: depth."""
        built = self._built_now()
        pose(built.packed.world, _floats(q), built.packed.at)
        return float(self._touch(built, i, j).distance)

    def _built_now(self) -> "_Built":
        if self._built is None:
            self._built = self._build()
        return self._built

    def _build(self) -> "_Built":
        moving = self.moving_parts()
        standing = tuple(
            standing_part(thing, self._foot)
            for thing in (self._objects.values() if self._environment else ())
        )
        world = assembled(self._chain, moving, standing, self._partners())
        parts = (*moving, *standing)
        row = packed(world)
        built = _Built(row, parts, FREE, _touching(row))
        for i, j in _near_the_foot(world, parts):
            if self._touch(built, i, j).depth > SUNK:
                return replace(built, foot=self._result(built, i, j))
        return built

    def _touch(self, built: "_Built", i: int, j: int) -> ShapeContact:
        return shape_contact(built.packed.world.solids, built.packed.at, i, j, built.packed.scratch)

    def _result(self, built: "_Built", i: int, j: int) -> CollisionResult:
        return self._named(built.parts[i].name, built.parts[j].name, self._touch(built, i, j))

    def _named(self, one: str, other: str, touched: ShapeContact) -> CollisionResult:
        x, y, z = (self._foot[:3, :3] @ touched.point + self._foot[:3, 3]).tolist()
        return CollisionResult(True, one, other, (x, y, z), float(touched.depth))


class NearestObject:
    """The distance of points to the nearest of some objects."""

    def __init__(self, objects: Sequence[CollisionObject]) -> None:
        point = as_object("point", Sphere(POINT_RADIUS), np.eye(4))
        parts = [standing_part(thing, np.eye(4)) for thing in (*objects, point)]
        self._world = assembled(None, (), parts)
        self._at, self._aside = placement(self._world), scratch()
        self._point = len(objects)

    def distance(self, point: ArrayLike) -> float:
        """In metres; below 0 inside of an object, infinite without any."""
        self._at.placed[self._point, 9:] = point
        self._at.ends[self._point].reshape(2, 3)[:] = point
        return float(min(map(self._distance_to, range(self._point)), default=np.inf))

    def _distance_to(self, number: int) -> float:
        at, solids, point = self._at, self._world.solids, self._point
        first, second = sorted((number, point), key=lambda shape: solids.traits[shape, KIND])
        far, _ = distance(
            solids, at.placed, at.ends, first, second, np.inf, np.inf, -1, True, self._aside
        )
        return far if far > 0.0 else shape_contact(solids, at, number, point, self._aside).distance


@dataclass(frozen=True, eq=False, slots=True)
class _Built:
    """The world of a detector; `foot`: what its own foot touches, whatever the joints are."""

    packed: Packed
    parts: tuple[Part, ...]
    foot: CollisionResult
    touching: Callable[[ArrayLike], int]
    """Some pair that touches in a configuration, as i·shapes + j; or -1."""


def _touching(packed: Packed) -> Callable[[ArrayLike], int]:
    own, shape = packed.q, packed.q.shape
    contact: Callable[[], int] | None = None

    def touching(q: ArrayLike) -> int:
        nonlocal contact
        if contact is None:  # The kernel is loaded here, and not when a world is built.
            contact = direct(contact_in, packed.wholes)
        if type(q) is not np.ndarray or q.shape != shape:
            q = given_row(q, len(own), "joints")
        own[...] = q
        pair = contact()
        if pair == NOT_FINITE:
            given_row(q, len(own), "joints")
        return pair

    return touching


def _near_the_foot(world: World, parts: Sequence[Part]) -> Iterator[Pair]:
    """The shapes of the foot, and the objects whose bounding boxes overlap theirs."""
    for i in range(world.foot):
        own = bounding_box(parts[i])
        apart = np.abs(world.boxes[:, :3] - own[:3]) - world.boxes[:, 3:] - own[3:]
        for o in np.flatnonzero((apart <= 0.0).all(axis=1)):
            yield i, world.moving + int(o)


def _overlapping(boxes: Array) -> list[Pair]:
    """The pairs of boxes (middle, half extents) that overlap."""
    middles, halves = boxes[:, :3], boxes[:, 3:]
    pairs: list[Pair] = []
    for j in range(1, len(boxes)):
        near = np.abs(middles[:j] - middles[j]) <= halves[:j] + halves[j]
        pairs += [(int(i), j) for i in np.flatnonzero(near.all(axis=1))]
    return pairs


def _ordered(a: int, b: int) -> Pair:
    return (a, b) if a <= b else (b, a)


def _floats(values: ArrayLike) -> Array:
    return np.require(values, np.float64, ["C", "W"])
