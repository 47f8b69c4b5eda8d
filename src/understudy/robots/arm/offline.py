"""An arm of a cell as a subject: what its programs are walked on, and judged by."""

from dataclasses import replace
from functools import cache

import numpy as np

from understudy.config import CellConfig
from understudy.offline.setup import Setup
from understudy.offline.setups import arm_of, mover_of, programmable
from understudy.offline.validate import Arm, Subject
from understudy.robots.arm.body import body_of, detector_of
from understudy.robots.arm.config import Config
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.offline_stage import CellStage, Room
from understudy.simulation.rules import Config as Rules
from understudy.space.collision.collide import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.model.environment import CollisionConfig, Environment, place

NO_RULES = Rules()


def arm_setup(
    config: CellConfig, robot: str = "", dialect: str = "", rules: Rules = NO_RULES
) -> Setup:
    """What programs of an arm are walked on: its mover, and the pins and devices of the cell."""
    name = robot or programmable(config)[0]
    setup = mover_of(config, name, dialect)
    own: Config = config.robots[name].config
    stage = CellStage(name, own, rules, config.head.seed, _room(own, setup, config))
    return replace(setup, stage=stage)


def _room(own: Config, setup: Setup, config: CellConfig) -> Room | None:
    """What a probe can meet; as in the running cell, nothing where collisions are not looked at."""
    if not own.collision.enable or not isinstance(setup.mover, ArmMover):
        return None
    return Room(body_of(own, setup.mover.chain, config.read_file), config.environment())


def arm_subject(program: str, config: CellConfig, robot: str) -> Subject:
    """The arm among what stands around it."""
    own: Config = config.robots[robot].config
    driven = arm_of(config, robot)
    environment = config.environment()
    checked = own.collision.enable

    @cache
    def with_tool(tool: int) -> Arm:
        mover = driven.movers.get(tool, driven.movers[0])
        detector = detector_of(own, mover.chain, environment, tool, config.read_file)
        return Arm(
            chain=mover.chain,
            limits=mover.limits,
            frames=mover.frames,
            foot=foot_of(own),
            detector=detector,
            dynamics=driven.dynamics.get(tool, driven.dynamics[0]),
            sweeper=Sweeper(detector) if checked else None,
        )

    bare = detector_of(own, driven.movers[0].chain, Environment(), 0, config.read_file)
    notes = notes_of(bare, own.collision, environment)
    return Subject(program, config.name, robot, with_tool, environment, notes)


def foot_of(config: Config) -> np.ndarray:
    x, y, z, rx, ry, rz = config.base_mm_deg
    return place((x, y, z), (rx, ry, rz))


def notes_of(
    detector: CollisionDetector, rules: CollisionConfig, environment: Environment
) -> tuple[str, ...]:
    """What is not looked at, in this cell."""
    if not rules.enable:
        return ("collision checks are off in this cell: no clearance is proven",)
    notes = []
    listed = rules.check_self_collision and rules.self_collision_pairs != "auto"
    if listed and (left := detector.unproven_pairs()):
        pairs = ", ".join(f"{a}-{b}" for a, b in left)
        notes.append(f"self_collision_pairs leaves links that can touch unproven: {pairs}")
    if not rules.check_self_collision:
        notes.append("check_self_collision is off in this cell: links may touch each other")
    if not rules.check_environment and environment.everything():
        notes.append("check_environment is off in this cell: what stands around is not looked at")
    return tuple(notes)
