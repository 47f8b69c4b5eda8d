"""The kinds of robots, devices, faces, wires and pages: one table each, name → module.

A package from outside adds a row by an entry point of the group `understudy.robots`,
`understudy.devices`, `understudy.faces`, `understudy.wires` or `understudy.pages`. A module is
imported when its kind is used for the first time.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from understudy.errors import unknown

ROBOTS = {
    "arm": "understudy.robots.arm",
    "kuka": "understudy.robots.kuka",
    "machine": "understudy.robots.grblhal.machine",
    "point": "understudy.robots.text_robot.robot",
}
FACES = {
    "grblhal": "understudy.robots.grblhal.face",
    "hmi_link": "understudy.operator.doors.hmi_link",
    "kuka_eki": "understudy.robots.kuka.face",
    "text_tcp": "understudy.robots.text_robot.face",
}


def kinds(group: str, table: Mapping[str, str]) -> dict[str, str]:
    """The table, extended by the entry points of installed packages."""
    return dict(table) | installed(group)


@cache
def installed(group: str) -> dict[str, str]:
    return {entry.name: entry.value for entry in entry_points(group=group)}


def robot_module(kind: str) -> ModuleType:
    return _module("robot", kind, kinds("understudy.robots", ROBOTS))


def face_module(kind: str) -> ModuleType:
    return _module("face", kind, kinds("understudy.faces", FACES))


def _module(noun: str, kind: str, table: Mapping[str, str]) -> ModuleType:
    if kind not in table:
        raise unknown(f"kind of {noun}", kind, table)
    return import_module(table[kind])
