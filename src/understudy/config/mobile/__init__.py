"""robot_config.json, the file of a mobile robot."""

from understudy.config.mobile.robot_file import RobotFile, is_robot_file, read_robot_file

__all__ = ["RobotFile", "is_robot_file", "read_robot_file"]
