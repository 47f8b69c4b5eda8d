"""The text robot: a free Cartesian pose that is commanded by lines of text over TCP."""

from typing import TYPE_CHECKING, Any

from understudy.robots.text_robot.robot import FAULTS, Config, TextRobot, build

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.robot import OfflineRobot
    from understudy.ports.operation import OperatorActions, RealClient, Sender

__all__ = ["FAULTS", "Config", "TextRobot", "build"]

FACES = ("text_tcp",)

# The offline check loads compiled code; it is imported on first use.


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.text_robot.operator import TextRobotActions

    return TextRobotActions(robot)


def real_client(config: "CellConfig", name: str, robot: "TextRobot") -> "RealClient":
    from understudy.ports.operation import RealClient
    from understudy.robots.text_robot.driver import Config, build
    from understudy.robots.text_robot.operator import TextRobotActions

    driver = build(Config())
    return RealClient(driver, TextRobotActions(driver))


def sender() -> "Sender":
    from understudy.robots.text_robot.send import SENDER

    return SENDER


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.text_robot.offline import TextRobotOffline

    return TextRobotOffline(config, robot)
