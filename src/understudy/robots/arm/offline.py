"""An arm of a cell as a subject: what its programs are walked on, and judged by."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from msgspec import structs

from understudy.config import CellConfig
from understudy.devices.mount import program_wait_s
from understudy.errors import ConfigError, located_at, unknown
from understudy.gcode.requests import Request, Spindle
from understudy.offline.robot import NO_RULES, collision_notes
from understudy.offline.setup import Setup
from understudy.offline.validate import Arm, Subject
from understudy.offline.walk import Event, walk
from understudy.ports import Deps
from understudy.robots.arm.assembly import arm_of as drives_of
from understudy.robots.arm.body import body_of, detector_of
from understudy.robots.arm.config import Config
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.offline_stage import CellStage, Room
from understudy.simulation import scenario
from understudy.simulation.clock_state import ClockState
from understudy.simulation.scenario import Config as Rules
from understudy.space.collision.sweep import Sweeper
from understudy.space.model.environment import Environment, place


def arm_setup(
    config: CellConfig, robot: str = "", dialect: str = "", rules: Rules = NO_RULES
) -> Setup:
    """What programs of an arm are walked on: its mover, and the pins and devices of the cell."""
    name = robot or programmable(config)[0]
    setup = mover_of(config, name, dialect)
    own: Config = config.robots[name].config
    devices, room = config.robots[name].devices, _room(own, setup, config)
    stage = CellStage(name, own, devices, rules, config.head.seed, room)
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
    notes = collision_notes(bare, own.collision, environment)
    return Subject(program, config.name, robot, with_tool, environment, notes)


def foot_of(config: Config) -> np.ndarray:
    x, y, z, rx, ry, rz = config.base_mm_deg
    return place((x, y, z), (rx, ry, rz))


def mover_of(config: CellConfig, robot: str = "", dialect: str = "") -> Setup:
    """What a robot's programs are reckoned on; the first that runs programs if none is named."""
    name = robot or programmable(config)[0]
    arm = arm_of(config, name, dialect)
    return Setup(
        mover=arm.mover(arm.options.modal.tool),
        dialect=arm.options.dialect,
        window=arm.window,
        profile=arm.profile,
        mount=arm.mover,
        hold_up=_waits(config.robots[name].devices),
        modal=arm.options.modal,
        start=arm.start,
        dynamics=arm.dynamics[arm.options.modal.tool],
    )


def _waits(devices: Mapping[str, Any]) -> Callable[[Request], float]:
    """Seconds for which the devices of an arm hold up M3 and M5."""

    def hold_up(request: Request) -> float:
        if not isinstance(request, Spindle):
            return 0.0
        return program_wait_s(devices, request.direction != "M5")

    return hold_up


def programmable(config: CellConfig) -> list[str]:
    """The robots that run programs, in the order of the cell file; there is at least one."""
    able = [name for name, each in config.robots.items() if hasattr(each.config, "dialect")]
    if not able:
        raise ConfigError(f"no robot of the cell {config.name} runs programs")
    return able


def arm_of(config: CellConfig, robot: str, dialect: str = "") -> Any:
    """A robot that runs programs, as its drives see it: everything configured, nothing moving."""
    if robot not in (able := programmable(config)):
        raise unknown("robot that runs programs", robot, able)
    given = config.robots[robot].config
    own = structs.replace(given, dialect=dialect or given.dialect)
    deps = Deps(scenario.build(Rules(), 0), config.read_file, ClockState())
    with located_at(f"robots.{robot}"):
        return drives_of(own, deps)


class ArmOffline:
    """`OfflineRobot` of an arm."""

    has_body = True
    obeys_rules = True

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._config = config
        self._robot = robot

    def subject(self, program: str) -> Subject:
        return arm_subject(program, self._config, self._robot)

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        return walk(text, self.setup(dialect, rules))

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> Setup:
        return arm_setup(self._config, self._robot, dialect, rules)
