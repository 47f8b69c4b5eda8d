"""The text robot: a free Cartesian pose that is commanded by lines of text over TCP."""

import re
from typing import TYPE_CHECKING, Any

from understudy.robots.text_robot.reactions import EXPLORED, REACTIONS
from understudy.robots.text_robot.robot import FAULTS, Config, TextRobot, build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.config import CellConfig
    from understudy.offline.fit import Recorded
    from understudy.offline.robot import OfflineRobot
    from understudy.ports.operation import (
        AxisReading,
        OperatorActions,
        RealClient,
        RobotModel,
        Sender,
    )
    from understudy.simulation.program.run import ProgramRun
    from understudy.wire.chat import Chat

__all__ = ["EXPLORED", "FAULTS", "REACTIONS", "Config", "TextRobot", "build"]

FACES = ("text_tcp",)
KERNELS = ()
"""A free pose moves without compiled code."""

COMMAND = re.compile(r"^\s*MOVE_(?:ABS|REL)\b", re.MULTILINE)


def program_hint(text: str) -> str:
    """The hint that a program for another robot is one for this kind; empty if it is not."""
    if not COMMAND.search(text):
        return ""
    return "these are moves of a text robot: --cell text_robot, or --robot NAME of one in the cell"


# The offline check loads compiled code; it is imported on first use.


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.text_robot.operator import TextRobotActions

    return TextRobotActions(robot)


def robot_model(config: Config, robot: "TextRobot") -> "RobotModel":
    from understudy.ports.operation import RobotModel

    def program_events(text: str, reading: "AxisReading") -> "Iterator[Any]":
        from understudy.robots.text_robot.offline import walk_program

        return walk_program(text, config, reading.pose)

    return RobotModel(program_events=program_events)


def program_run(robot: Any) -> "ProgramRun":
    from understudy.robots.text_robot.operator import program_run

    return program_run(robot)


def real_client(config: "CellConfig", name: str, robot: "TextRobot") -> "RealClient":
    from understudy.ports.operation import RealClient
    from understudy.robots.text_robot.driver import Config, build
    from understudy.robots.text_robot.operator import TextRobotActions, program_run

    driver = build(Config())
    return RealClient(driver, TextRobotActions(driver), program=program_run(driver))


def sender() -> "Sender":
    from understudy.robots.text_robot.driver import SENDER

    return SENDER


def recorded(config: "CellConfig", robot: str, chat: "Chat") -> "Recorded":
    from understudy.robots.text_robot.offline import recorded_robot

    return recorded_robot(config, robot, chat)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.text_robot.offline import TextRobotOffline

    return TextRobotOffline(config, robot)
