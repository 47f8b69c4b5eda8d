"""The body of an arm: its links, its tool and the objects that it holds.

The compiled kernels are imported at the first query, not when the cell starts.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from understudy.errors import ConfigError
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.environment import (
    CollisionConfig,
    Environment,
    Figures,
    LimitsConfig,
    Read,
)
from understudy.space.model.robot import Joint, RobotModel
from understudy.space.model.shapes import CollisionObject, Meshes, unique
from understudy.space.model.urdf import read
from understudy.space.transform import Array
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.space.collision.arm_pair import PlacedArm
    from understudy.space.collision.detector import CollisionDetector
    from understudy.space.collision.sweep import Sweeper


NO_LIMITS = LimitsConfig()
JOINT_WORDS = 6
"""Joints that a program can name: A B C U V W, or A1 … A6."""
HEAVY_TRIANGLES = 20_000
"""Triangles of held meshes above which an arm's path is swept in short stretches."""


@lru_cache(maxsize=16)
def chain_of(
    model: bytes,
    file: str,
    tip: str = "",
    fixed: tuple[tuple[str, float], ...] = (),
    limits: LimitsConfig = NO_LIMITS,
) -> Chain:
    """The chain of a model up to ``tip``; joints of ``fixed`` stay at that value (rad).

    The same model returns the same object, so that its cached results are shared.
    """
    text = model.decode("utf-8", "replace")
    return chain(_limited(read(text, tip=tip, fixed=dict(fixed), file=file), limits))


def _limited(model: RobotModel, limits: LimitsConfig) -> RobotModel:
    """The model with the limits that the cell file gives."""
    moving = model.moving()
    speeds = _each(limits.velocity_deg_s, moving, "velocity_deg_s")
    ignored = limits.effort == "ignore"
    efforts = _each(math.inf if ignored else limits.effort, moving, "effort")  # type: ignore[arg-type]
    changed = dict[str, Joint]()
    for joint, speed, effort in zip(moving, speeds, efforts, strict=True):
        unit = MM if joint.kind == "prismatic" else DEG
        changed[joint.name] = replace(
            joint,
            velocity=joint.velocity if speed is None else speed * unit,
            effort=joint.effort if effort is None else effort,
        )
    given = {"velocity": limits.velocity_deg_s, "effort": limits.effort}
    return replace(
        model,
        joints=tuple(changed.get(each.name, each) for each in model.joints),
        doubts=tuple(each for each in model.doubts if given[each.partition(" ")[0]] is None),
    )


def _each(given: Figures | None, moving: Sequence[Joint], key: str) -> Sequence[float | None]:
    if not isinstance(given, tuple):
        return [given] * len(moving)
    if len(given) != len(moving):
        names = ", ".join(joint.name for joint in moving)
        allowed = f"a number, or {len(moving)} of them: {names}"
        raise ConfigError(
            "wrong number of values", key=f"limits.{key}", value=given, allowed=allowed
        )
    return given


class ModelKeys(Protocol):
    """The keys of a robot that name its description and the part of it that is the arm."""

    @property
    def model(self) -> str: ...
    @property
    def tip(self) -> str: ...
    @property
    def fixed_joints_deg(self) -> Mapping[str, float]: ...
    @property
    def limits(self) -> LimitsConfig: ...


def six_joint_chain(config: ModelKeys, read_file: Read) -> Chain:
    """The arm of a robot that is driven by six joint words; raises a ConfigError for another."""
    fixed = tuple((name, angle * DEG) for name, angle in config.fixed_joints_deg.items())
    found = chain_of(read_file(config.model), config.model, config.tip, fixed, config.limits)
    if found.dof == JOINT_WORDS:
        return found
    more = found.dof > JOINT_WORDS
    raise ConfigError(
        f"{found.dof} joints move ({', '.join(found.names)}), and this robot drives six"
        + (": fix the others with fixed_joints_deg, or name another tip" if more else ""),
        key="model",
        value=config.model,
        allowed="an arm with six joints; kinematics, collision checks and reach of other arms are "
        "in the Python API",
    )


@dataclass(frozen=True, eq=False)
class Body:
    """The configuration of an arm's body. ``foot``: its base, 4×4 in the world; ``tools``: shapes
    by tool number, in the frame of the flange.
    """

    chain: Chain
    foot: Array
    rules: CollisionConfig
    tools: Mapping[int, tuple[CollisionObject, ...]]
    meshes: Meshes
    fastest: Array
    """Highest speeds of the joints in rad/s."""
    held: tuple[CollisionObject, ...] = ()
    """Parts that the arm carries all the time, with every tool."""

    def carried(
        self, tool: int, held: Iterable[CollisionObject] = ()
    ) -> tuple[CollisionObject, ...]:
        """Everything on the flange: the tool, and what is held."""
        return unique((*self.tools.get(tool, ()), *self.held, *held))

    def figure(self, tool: int, held: Iterable[CollisionObject] = ()) -> "PlacedArm":
        """The arm with its tool and held objects, for the distance to another arm."""
        from understudy.space.collision.arm_pair import PlacedArm
        from understudy.space.collision.world import arm_parts, carried_part

        carried = (carried_part(self.chain, thing) for thing in self.carried(tool, held))
        parts = (*arm_parts(self.chain, self.meshes), *carried)
        return PlacedArm(self.chain, self.foot, parts, self.fastest)

    def detector(
        self, environment: Environment, tool: int, held: Iterable[CollisionObject] = ()
    ) -> "CollisionDetector":
        from understudy.space.collision.detector import CollisionDetector

        found = CollisionDetector(
            self.chain,
            environment.everything(),
            meshes=self.meshes,
            foot=self.foot,
            check_self_collision=self.rules.check_self_collision,
            check_environment=self.rules.check_environment,
        )
        if self.rules.self_collision_pairs != "auto":
            found.set_self_collision_pairs(self.rules.self_collision_pairs)
        for thing in self.carried(tool, held):
            found.attach(thing)
        return found


class Scene:
    """The body and the present environment, ready for sweeps."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self.environment = Environment()
        self._tool = 0
        self._held: tuple[CollisionObject, ...] = ()

    @cached_property
    def detector(self) -> "CollisionDetector":
        return self._body.detector(self.environment, self._tool, self._held)

    @cached_property
    def sweeper(self) -> "Sweeper":
        from understudy.space.collision.sweep import Sweeper

        return Sweeper(self.detector)

    @property
    def is_heavy(self) -> bool:
        """Whether a sweep of the held meshes beside other meshes takes long."""
        return sum(np.size(thing.indices) for thing in self._held) > 3 * HEAVY_TRIANGLES

    def is_zone(self, name: str) -> bool:
        return self.environment.is_zone(name)

    def surround(self, environment: Environment) -> None:
        """Replaces the environment."""
        self.environment = environment
        if "detector" in self.__dict__:
            self.detector.clear_environment()
            for thing in environment.everything():
                self.detector.add_object(thing)

    def carry(self, tool: int, held: tuple[CollisionObject, ...]) -> None:
        """Replaces the tool and the held objects."""
        if "detector" in self.__dict__:
            for thing in self.detector.carried:
                self.detector.detach(thing.name)
            for thing in self._body.carried(tool, held):
                self.detector.attach(thing)
        self._tool, self._held = tool, held
