"""A plain six-axis machine under grblHAL."""

from typing import TYPE_CHECKING, Any

from understudy.robots.grblhal.machine.machine import FAULTS, Config
from understudy.robots.grblhal.reactions import EXPLORED, REACTIONS

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.fit import Recorded
    from understudy.offline.robot import OfflineRobot
    from understudy.offline.setup import Setup
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions, RealClient, RobotModel, Sender
    from understudy.robots.grblhal.machine.machine import Machine
    from understudy.simulation.program.run import ProgramRun
    from understudy.wire.chat import Chat

__all__ = ["EXPLORED", "FAULTS", "REACTIONS", "Config"]

FACES = ("grblhal",)
KERNELS = ("motion",)

# The simulated robot, its check and its actions are imported on first use: they load
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "Machine":
    from understudy.robots.grblhal.machine.machine import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.grblhal.operator import MachineActions

    return MachineActions(robot)


def robot_model(config: Config, robot: "Machine") -> "RobotModel":
    from understudy.robots.grblhal.operator import model_of

    return model_of(robot)


def program_run(robot: "Machine") -> "ProgramRun":
    from understudy.robots.grblhal.operator import program_run

    return program_run(robot)


def real_client(config: "CellConfig", name: str, robot: "Machine") -> "RealClient":
    from understudy.robots.grblhal.operator import real_client

    return real_client(config, name, robot)


def sender() -> "Sender":
    from understudy.robots.grblhal.driver import SENDER

    return SENDER


def machine_of(settings: str, file: str = "") -> "Setup":
    from understudy.robots.grblhal.offline import machine_of

    return machine_of(settings, file)


def recorded(config: "CellConfig", robot: str, chat: "Chat") -> "Recorded":
    from understudy.robots.grblhal.fit import recorded_machine

    return recorded_machine(config, robot, chat)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.grblhal.offline import MachineOffline

    return MachineOffline(config, robot)
