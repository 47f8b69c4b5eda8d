"""What programs are reckoned on: a robot of a cell, or a machine, with nothing moving yet."""

from typing import TYPE_CHECKING, Any

from msgspec import structs
from msgspec.structs import replace

from understudy.app.build import within
from understudy.config import CellConfig
from understudy.errors import ConfigError, unknown
from understudy.ports import Deps
from understudy.registry import module_of
from understudy.simulation import scenario
from understudy.simulation.clock_state import ClockState
from understudy.simulation.rules import Config as Rules

if TYPE_CHECKING:
    from understudy.offline.setup import Setup  # imported where needed: it brings compiled code
    from understudy.robots.grblhal.driver import Config as GrblHalConfig
    from understudy.robots.grblhal.driver import GrblHalDriver


def machine_of(settings: str, file: str = "") -> "Setup":
    """The machine that `$n=v` lines describe: X Y Z in mm, A B C in deg, at zero."""
    from understudy.gcode import GRBLHAL_MACHINE
    from understudy.offline.setup import Setup
    from understudy.robots.grblhal.machine.mover import MachineMover
    from understudy.robots.grblhal.machine.settings import read_settings

    values = read_settings(settings, file)
    mover = MachineMover.of(values)
    return Setup(
        mover,
        replace(GRBLHAL_MACHINE, rotary=values.rotary),
        window=values.planner_blocks,
        hold_up=mover.hold_up,
        rests_at_offsets=values.rests_at_offsets,
    )


def mover_of(config: CellConfig, robot: str = "", dialect: str = "") -> "Setup":
    """What a robot's programs are reckoned on; the first that runs programs if none is named."""
    from understudy.offline.setup import Setup

    arm = arm_of(config, robot or programmable(config)[0], dialect)
    return Setup(
        mover=arm.mover(arm.options.modal.tool),
        dialect=arm.options.dialect,
        window=arm.window,
        profile=arm.profile,
        mount=arm.mover,
        hold_up=arm.hold_up,
        modal=arm.options.modal,
        start=arm.start,
        dynamics=arm.dynamics[arm.options.modal.tool],
    )


def driver_of(config: CellConfig, robot: str, settings: "GrblHalConfig") -> "GrblHalDriver":
    """A REAL grblHAL with the joints of an arm of the cell; of the first one if none is named."""
    from understudy.jobs.joint_lines import JointLines
    from understudy.robots.grblhal.driver import build

    setup = mover_of(config, robot, settings.dialect)
    lines, chain = JointLines(setup), getattr(setup.mover, "chain", None)
    limits = (tuple(chain.lower.tolist()), tuple(chain.upper.tolist())) if chain else None
    writer = lines if settings.dialect == "seed" else None
    return build(settings, writer=writer, tip=lines.tip, limits=limits)


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
    kind, given = config.robots[robot].kind, config.robots[robot].config
    own = structs.replace(given, dialect=dialect or given.dialect)
    deps = Deps(scenario.build(Rules(), 0), config.read_file, ClockState())
    return within(f"robots.{robot}", module_of("robots", kind).arm_of, own, deps)
