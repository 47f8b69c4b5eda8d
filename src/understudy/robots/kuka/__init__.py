"""A KUKA that runs a G-code server behind Ethernet KRL."""

from typing import TYPE_CHECKING, Any

from understudy.ports.faults import EMERGENCY_STOP as FAULTS
from understudy.robots.kuka.config import Config

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions, RobotModel, Sender
    from understudy.robots.kuka.robot import KukaGcodeServer

__all__ = [
    "FACES",
    "FAULTS",
    "SIMULATION_SECTIONS",
    "Config",
    "build",
    "offline_robot",
    "operator_actions",
    "robot_model",
    "sender",
]

FACES = ("kuka_eki",)
SIMULATION_SECTIONS = ("collision",)

# The simulated robot, its check and its actions are imported when they are asked for: they bring
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "KukaGcodeServer":
    from understudy.robots.kuka.assembly import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.kuka.operator import KukaActions

    return KukaActions(robot)


def robot_model(config: Config, robot: "KukaGcodeServer") -> "RobotModel":
    from understudy.robots.kuka.operator import model_of

    return model_of(config, robot)


def sender() -> "Sender":
    from understudy.robots.kuka.send import SENDER

    return SENDER


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.kuka.offline import KukaOffline

    return KukaOffline(config, robot)
