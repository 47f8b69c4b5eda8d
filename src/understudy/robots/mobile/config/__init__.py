"""robot_config.json, the file of a mobile robot."""

from understudy.robots.mobile.config.robot_file import RobotFile, is_robot_file, read_robot_file

__all__ = ["RobotFile", "is_robot_file", "read_robot_file"]
