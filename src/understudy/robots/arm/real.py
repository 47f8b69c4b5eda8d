"""The REAL sibling of an arm: a grblHAL driver with the joints of the simulated arm."""

from understudy.config import CellConfig
from understudy.jobs.joint_lines import JointLines
from understudy.robots.arm.offline import mover_of
from understudy.robots.grblhal.driver import Config as GrblHalConfig
from understudy.robots.grblhal.driver import GrblHalDriver, build


def driver_of(config: CellConfig, robot: str, settings: GrblHalConfig) -> GrblHalDriver:
    """A REAL grblHAL with the joints of an arm of the cell; of the first one if none is named."""
    setup = mover_of(config, robot, settings.dialect)
    lines, chain = JointLines(setup), getattr(setup.mover, "chain", None)
    limits = (tuple(chain.lower.tolist()), tuple(chain.upper.tolist())) if chain else None
    writer = lines if settings.dialect == "arm" else None
    return build(settings, writer=writer, tip=lines.tip, limits=limits)
