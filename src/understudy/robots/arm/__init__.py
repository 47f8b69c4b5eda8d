"""A six-axis arm with the controller that a real grblHAL-driven one would have."""

from typing import TYPE_CHECKING, Any

from understudy.robots.arm.config import Config

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions
    from understudy.robots.arm.controller import VirtualController

__all__ = ["Config", "build", "offline_robot", "operator_actions"]

# The simulated robot, its check and its actions are imported when they are asked for: they bring
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "VirtualController":
    from understudy.robots.arm.assembly import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.arm.operator import ArmActions

    return ArmActions(robot, robot.arm, dialect=robot.arm.options.dialect, simulated=robot)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.arm.offline import ArmOffline

    return ArmOffline(config, robot)
