"""What programs are reckoned on: a robot of a cell, or a machine, with nothing moving yet."""

from typing import TYPE_CHECKING, Any

from msgspec import structs
from msgspec.structs import replace

from understudy.app import robot_module, within
from understudy.cell import scenario
from understudy.cell.rules import Config as Rules
from understudy.cell.tempo import Tempo
from understudy.config import CellConfig
from understudy.errors import ConfigError, unknown
from understudy.ports import Deps

if TYPE_CHECKING:
    from understudy.drivers.grblhal import Config as GrblHalConfig
    from understudy.drivers.grblhal import GrblHalDriver
    from understudy.jobs.setup import Setup  # imported where needed: it brings compiled code


def machine_of(settings: str, file: str = "") -> "Setup":
    """The machine that `$n=v` lines describe: X Y Z in mm, A B C in deg, at zero."""
    from understudy.cell.machine.mover import MachineMover
    from understudy.cell.machine.settings import read_settings
    from understudy.gcode import GRBLHAL_MACHINE
    from understudy.jobs.setup import Setup

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
    from understudy.jobs.setup import Setup

    arm = arm_of(config, robot or programmable(config)[0], dialect)
    return Setup(
        mover=arm.mover(arm.habits.modal.tool),
        dialect=arm.habits.dialect,
        window=arm.window,
        profile=arm.profile,
        mount=arm.mover,
        hold_up=arm.hold_up,
        modal=arm.habits.modal,
        start=arm.start,
        dynamics=arm.dynamics[arm.habits.modal.tool],
    )


def driver_of(config: CellConfig, robot: str, settings: "GrblHalConfig") -> "GrblHalDriver":
    """A REAL grblHAL with the joints of an arm of the cell; of the first one if none is named."""
    from understudy.drivers.grblhal import build
    from understudy.jobs.joint_lines import JointLines

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
    deps = Deps(scenario.build(Rules(), 0), config.read_file, Tempo())
    return within(f"robots.{robot}", robot_module(kind).arm_of, own, deps)
