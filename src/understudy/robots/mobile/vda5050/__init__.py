"""VDA 5050 2.1: orders of a master control for one mobile robot, and what the robot reports."""
