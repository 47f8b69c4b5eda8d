"""Devices of a robot, one folder each."""
