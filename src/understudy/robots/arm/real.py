"""The driver of a real arm: a grblHAL driver with the joints of the simulated arm."""

from understudy.config import CellConfig
from understudy.ports.operation import RealClient
from understudy.robots.arm.controller import VirtualController
from understudy.robots.arm.for_jobs import real_job_arm
from understudy.robots.arm.joint_lines import JointLines
from understudy.robots.arm.offline import motion_setup
from understudy.robots.arm.operator import ArmActions
from understudy.robots.grblhal.driver import Config as GrblHalConfig
from understudy.robots.grblhal.driver import GrblHalDriver, build
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.simulation.program.run import ProgramRun


def real_client(config: CellConfig, name: str, robot: VirtualController) -> RealClient:
    """The driver, with the model, dialect and pin names of the simulated arm."""
    arm, io = robot.arm, robot.io
    settings = GrblHalConfig(
        dialect=config.robots[name].config.dialect,
        digital_output_names={io.do.name(pin): pin for pin in range(io.do.count)},
        analog_output_names={io.ao.name(pin): pin for pin in range(io.ao.count)},
    )
    driver = driver_of(config, name, settings)
    dialect = arm.options.dialect if settings.dialect == "arm" else arm.options.wire
    actions = ArmActions(driver, arm, dialect=dialect)
    return RealClient(
        driver,
        actions,
        program=ProgramRun(driver, GcodeLanguage(dialect)),
        connect=driver.connect,
        disconnect=driver.disconnect,
        job_arm=real_job_arm(robot, driver, actions),
    )


def driver_of(config: CellConfig, robot: str, settings: GrblHalConfig) -> GrblHalDriver:
    """A driver with the joints of an arm of the cell; of the first arm if none is named."""
    setup = motion_setup(config, robot, settings.dialect)
    lines, chain = JointLines(setup), getattr(setup.mover, "chain", None)
    limits = (tuple(chain.lower.tolist()), tuple(chain.upper.tolist())) if chain else None
    writer = lines if settings.dialect == "arm" else None
    units = setup.dialect.units
    return build(settings, writer=writer, tool_pose=lines.tip, limits=limits, units=units)
