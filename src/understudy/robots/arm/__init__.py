"""A six-axis arm with the controller that a real grblHAL-driven one would have."""

from typing import TYPE_CHECKING, Any

from understudy.robots.arm.config import FAULTS, Config

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.jobs.program_run import ProgramRun
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions, RealClient, RobotModel, Sender
    from understudy.robots.arm.controller import VirtualController

__all__ = [
    "FACES",
    "FAULTS",
    "SIMULATION_SECTIONS",
    "Config",
    "build",
    "offline_robot",
    "operator_actions",
    "program_run",
    "real_client",
    "robot_model",
    "sender",
]

FACES = ("grblhal",)
SIMULATION_SECTIONS = ("simulation", "collision", "io")

# The simulated robot, its check and its actions are imported on first use: they bring
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "VirtualController":
    from understudy.robots.arm.assembly import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.arm.operator import ArmActions

    return ArmActions(robot, robot.arm, dialect=robot.arm.options.dialect, simulated=robot)


def robot_model(config: Config, robot: "VirtualController") -> "RobotModel":
    from understudy.robots.arm.operator import model_of

    return model_of(config, robot)


def program_run(robot: "VirtualController") -> "ProgramRun":
    from understudy.jobs.program_run import ProgramRun

    return ProgramRun(robot, robot.arm.options.dialect)


def real_client(config: "CellConfig", name: str, robot: "VirtualController") -> "RealClient":
    from understudy.robots.arm.real import real_client

    return real_client(config, name, robot)


def sender() -> "Sender":
    from understudy.robots.arm.send import SENDER

    return SENDER


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.arm.offline import ArmOffline

    return ArmOffline(config, robot)
