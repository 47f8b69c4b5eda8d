"""A robot of a cell as programs are checked on it, without a running cell.

Each robot's package offers `offline_robot(config, name)`; the kinds are looked up in the registry.
"""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from understudy.config import CellConfig
from understudy.errors import ConfigError, unknown
from understudy.offline.setup import Setup
from understudy.offline.validate.subject import Arm, Subject
from understudy.offline.walk import Event
from understudy.registry import module_of
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.workpieces.sequence import WorkpieceStage
from understudy.space.collision.detector import CollisionDetector
from understudy.space.model.environment import CollisionConfig, Environment

NO_RULES = Rules()


class OfflineRobot(Protocol):
    """What `validate`, `cycle-time` and `reach` ask of a robot."""

    has_body: bool
    """It has links that reach somewhere and can touch something."""
    obeys_rules: bool
    """Scenario rules act on its programs."""

    def subject(self, program: str) -> Subject:
        """What programs are judged by: model, limits, environment, notes of the report."""
        ...

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        """What happens in a program, in order."""
        ...

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> Setup | None:
        """What G-code is walked on; None for a robot with a language of its own."""
        ...


@runtime_checkable
class MovesWorkpieces(Protocol):
    """A robot whose jobs move the parts of the cell."""

    def arm_at(self, stage: WorkpieceStage, tool: int) -> Arm:
        """What moves, with a tool and the held part, among the parts that rest around it."""
        ...


def offline_robot(config: CellConfig, robot: str) -> OfflineRobot:
    found: OfflineRobot = module_of("robots", config.robots[robot].kind).offline_robot(
        config, robot
    )
    return found


def can_be_checked(config: CellConfig, robot: str) -> bool:
    return hasattr(module_of("robots", config.robots[robot].kind), "offline_robot")


def chosen_robot(config: CellConfig, robot: str, *, with_body: bool = False) -> str:
    """The robot that is meant: the named one; else the first with a body, or else the first."""
    able = [name for name in config.robots if can_be_checked(config, name)]
    bodies = [name for name in able if offline_robot(config, name).has_body]
    if with_body:
        able = bodies
    if not able:
        what = "has a body" if with_body else "runs programs"
        raise ConfigError(f"no robot of the cell {config.name} {what}")
    if robot and robot not in able:
        raise unknown("robot that runs programs", robot, able)
    return robot or (bodies or able)[0]


def refuse_dialect(dialect: str, kind: str) -> None:
    """Raises a ConfigError if a dialect is asked of a robot with a language of its own."""
    if dialect:
        allowed = f"none: a robot of kind {kind} has a language of its own"
        raise ConfigError("--dialect", value=dialect, allowed=allowed)


def collision_notes(
    detector: CollisionDetector, rules: CollisionConfig, environment: Environment
) -> tuple[str, ...]:
    """Notes of a report: which collision checks this cell leaves out."""
    if not rules.enable:
        return ("collision checks are off in this cell: no clearance is proven",)
    notes = []
    links = () if detector.chain is None else detector.chain.bodies[1:]
    bare = [link.name for link in links if not link.collision]
    if len(bare) == len(links):
        notes.append("no link of this robot has a collision shape: no clearance is proven")
    elif bare:
        notes.append(f"links without a collision shape are not checked: {', '.join(bare)}")
    listed = rules.check_self_collision and rules.self_collision_pairs != "auto"
    if listed and (left := detector.unproven_pairs()):
        pairs = ", ".join(f"{a}-{b}" for a, b in left)
        notes.append(f"self_collision_pairs does not list, so these links are not checked: {pairs}")
    if not rules.check_self_collision:
        notes.append("check_self_collision is off in this cell: links may touch each other")
    if not rules.check_environment and environment.everything():
        notes.append("check_environment is off in this cell: what stands around is not looked at")
    return tuple(notes)
