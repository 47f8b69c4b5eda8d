"""Tables of kinds, one for robots, one for devices, and so on: kind → module.

A module is imported when its kind is used for the first time. A package from outside adds a row to
a table by an entry point of the group `understudy.<table>`:

    [project.entry-points."understudy.pages"]
    maintenance = "my_package.maintenance"

`register` adds a row to the tables of this process only.
"""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from understudy.errors import ConfigError, unknown

log = logging.getLogger(__name__)

ROBOTS = {
    "arm": "understudy.robots.arm",
    "kuka": "understudy.robots.kuka",
    "machine": "understudy.robots.grblhal.machine",
    "mobile": "understudy.robots.mobile",
    "text_robot": "understudy.robots.text_robot",
}
DEVICES = {
    "camera": "understudy.devices.camera",
    "gripper": "understudy.devices.gripper",
    "io": "understudy.devices.io",
    "tool_changer": "understudy.devices.tool_changer",
    "welder": "understudy.devices.welder",
}
FACES = {
    "camera": "understudy.devices.camera.face",
    "fleet": "understudy.robots.mobile.face",
    "grblhal": "understudy.robots.grblhal.face",
    "gripper": "understudy.devices.gripper.modbus.face",
    "hmi_link": "understudy.operator.doors.hmi_link",
    "kuka_eki": "understudy.robots.kuka.face",
    "text_tcp": "understudy.robots.text_robot.face",
    "vda5050": "understudy.robots.mobile.vda5050.face",
}
WIRES = {
    "mqtt": "understudy.wire.mqtt",
    "nats": "understudy.wire.nats",
    "pty": "understudy.wire.pty",
    "tcp": "understudy.wire.tcp",
    "tcp_client": "understudy.wire.tcp_client",
    "udp": "understudy.wire.udp",
    "zmq_pub": "understudy.wire.zmq_pub",
    "zmq_router": "understudy.wire.zmq_router",
}
PAGES = {
    "cell": "understudy.hmi.pages.cell.page",
    "program": "understudy.hmi.pages.program.page",
    "plots": "understudy.hmi.pages.plots.page",
    "log": "understudy.hmi.pages.log.page",
    "pick_place": "understudy.jobs.pick_place.page.page",
    "fleet": "understudy.robots.mobile.page.page",
    "calibration": "understudy.jobs.hand_eye.page.page",
}
PANELS = {"camera": "understudy.vision.page.camera"}
CAMERAS = {
    "files": "understudy.vision.cameras.files",
    "opencv": "understudy.vision.cameras.driver",
    "understudy": "understudy.vision.cameras.cell",
}
DETECTORS = {
    "markers": "understudy.vision.detectors.markers",
    "onnx": "understudy.vision.detectors.onnx",
    "point_cloud": "understudy.vision.detectors.point_cloud",
    "shapes": "understudy.vision.detectors.shapes",
}
TABLES = {
    "robots": ROBOTS,
    "devices": DEVICES,
    "faces": FACES,
    "wires": WIRES,
    "pages": PAGES,
    "panels": PANELS,
    "cameras": CAMERAS,
    "detectors": DETECTORS,
}
REQUIRED = {
    "robots": ("Config", "build|build_group"),
    "devices": ("Config", "build"),
    "faces": ("Config", "ENDPOINTS"),
    "wires": ("Config",),
    "pages": ("PAGE",),
    "panels": ("PANEL",),
    "cameras": ("open_camera",),
    "detectors": ("Config", "build"),
}
"""Names that a module of each table must declare; `a|b`: one of them."""
_registered: dict[str, dict[str, str]] = {table: {} for table in TABLES}

RENAMED: Mapping[str, Mapping[str, str]] = {
    "dialect": {"seed": "arm"},
    "kind": {"point": "text_robot"},
}
"""Values in cell files that have another name now: key → value in the file → present name."""


def present_name(key: str, value: str) -> str:
    """The present name of a value in a cell file; logs a note if the file uses a former one."""
    name = RENAMED[key].get(value, value)
    if name != value:
        log.warning("%s: %s is now called %s", key, value, name)
    return name


def with_present_names(body: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of a cell file with the present name of every renamed value in it."""
    return {
        key: present_name(key, value) if key in RENAMED and isinstance(value, str) else value
        for key, value in body.items()
    }


def register(table: str, kind: str, module: str) -> None:
    """Adds a kind to a table for the rest of this process."""
    _registered[table][kind] = module


def kinds(table: str) -> dict[str, str]:
    """The rows of a table, kind → module: shipped ones first; none of them can be replaced."""
    return TABLES[table] | outside(table)


def outside(table: str) -> dict[str, str]:
    """The rows of entry points and of `register`."""
    rows = installed(table) | _registered[table]
    return {kind: module for kind, module in rows.items() if kind not in TABLES[table]}


def module_of(table: str, kind: str) -> ModuleType:
    """The module of a kind; a `ConfigError` with a suggestion if there is no such kind."""
    rows, noun = kinds(table), table.removesuffix("s")
    if kind not in rows:
        raise unknown(f"kind of {noun}", kind, rows)
    try:
        module = import_module(rows[kind])
    except Exception as problem:
        if kind in TABLES[table]:
            raise
        text = f"the {noun} {kind} cannot be imported: {type(problem).__name__}: {problem}"
        raise ConfigError(text, value=rows[kind]) from problem
    for name in REQUIRED.get(table, ()):
        if not any(hasattr(module, each) for each in name.split("|")):
            raise ConfigError(
                f"the module of the {noun} {kind} has no {name.replace('|', ' or ')}",
                value=rows[kind],
            )
    return module


def modules(*tables: str) -> Iterator[tuple[str, str, ModuleType]]:
    """Table, kind and module of every row: the shipped rows of all tables, then the others.

    A row from outside that cannot be used is logged and left out.
    """
    rows = [(table, kind) for table in tables for kind in TABLES[table]]
    rows += [(table, kind) for table in tables for kind in outside(table)]
    for table, kind in rows:
        try:
            yield table, kind, module_of(table, kind)
        except ConfigError as problem:
            log.warning("%s", problem)


@cache
def installed(table: str) -> dict[str, str]:
    """The rows that installed packages add; logs those that have the name of a shipped kind."""
    rows = {entry.name: entry.module for entry in entry_points(group=f"understudy.{table}")}
    for kind in rows.keys() & TABLES[table].keys():
        log.warning("%s: %s is ignored: %s is a shipped kind", table, rows[kind], kind)
    return rows
