"""The text robot: a free Cartesian pose that is commanded by lines of text over TCP."""

from typing import TYPE_CHECKING, Any

from understudy.robots.text_robot.robot import Config

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions
    from understudy.robots.text_robot.robot import TextRobot

__all__ = ["Config", "build", "offline_robot", "operator_actions"]

# The simulated robot, its check and its actions are imported when they are asked for: they bring
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "TextRobot":
    from understudy.robots.text_robot.robot import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.text_robot.operator import TextRobotActions

    return TextRobotActions(robot)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.text_robot.offline import TextRobotOffline

    return TextRobotOffline(config, robot)
