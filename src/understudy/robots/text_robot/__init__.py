"""The text robot: a free Cartesian pose that is commanded by lines of text over TCP."""

from understudy.robots.text_robot.robot import Config, TextRobot, build

__all__ = ["Config", "TextRobot", "build"]
