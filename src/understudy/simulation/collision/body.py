"""The body of an arm: its links, its tool and the objects that it holds.

The compiled kernels are imported at the first query, not when the cell starts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from understudy.errors import ConfigError
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.environment import CollisionConfig, Environment, Read
from understudy.space.model.shapes import CollisionObject, Meshes, unique
from understudy.space.model.urdf import read
from understudy.space.transform import Array
from understudy.units import DEG

if TYPE_CHECKING:
    from understudy.space.collision.arm_pair import PlacedArm
    from understudy.space.collision.detector import CollisionDetector
    from understudy.space.collision.sweep import Sweeper


JOINT_WORDS = 6
"""Joints that a program can name: A B C U V W, or A1 … A6."""
HEAVY_TRIANGLES = 20_000
"""Triangles of held meshes above which an arm's path is swept in short stretches."""


@lru_cache(maxsize=16)
def chain_of(
    model: bytes, file: str, tip: str = "", fixed: tuple[tuple[str, float], ...] = ()
) -> Chain:
    """The chain of a model up to ``tip``; joints of ``fixed`` stay at that value (rad).

    The same model returns the same object, so that its cached results are shared.
    """
    text = model.decode("utf-8", "replace")
    return chain(read(text, tip=tip, fixed=dict(fixed), file=file))


class ModelKeys(Protocol):
    """The keys of a robot that name its description and the part of it that is the arm."""

    @property
    def model(self) -> str: ...
    @property
    def tip(self) -> str: ...
    @property
    def fixed_joints_deg(self) -> Mapping[str, float]: ...


def six_joint_chain(config: ModelKeys, read_file: Read) -> Chain:
    """The arm of a robot that is driven by six joint words; raises a ConfigError for another."""
    fixed = tuple((name, angle * DEG) for name, angle in config.fixed_joints_deg.items())
    found = chain_of(read_file(config.model), config.model, config.tip, fixed)
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
