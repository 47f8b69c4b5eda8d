"""What the house is composed of: one row a capability, and the tables that follow from the rows.

A capability is a folder. Its row says which names it adds to which table, each with its module:
kinds of robots and devices, jobs, faces, pages, commands of a running cell, commands of the command
line, sections of the cell file, and so on. A module is imported when its name is used for the first
time. Cells, robots and programs that a capability ships are in the `catalog` of its folder.
Removing a folder and its row removes the capability.

A package from outside adds to a table by an entry point of the group `understudy.<table>`:

    [project.entry-points."understudy.pages"]
    maintenance = "my_package.maintenance"

`register` adds a row to the tables of this process only.
"""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from understudy.errors import ConfigError, unknown

log = logging.getLogger(__name__)

Modules = Mapping[str, str]
"""Name → module, seen from the package of the row."""


class CliRow(NamedTuple):
    """A command of the command line: the function of its name, with _ for -, in the module."""

    module: str
    summary: str
    example: str


class OptionRow(NamedTuple):
    """An option of the commands that run a cell, `--name`; its function is in `OPTIONS` of the
    job's module."""

    choices: tuple[str, ...]
    help: str


class DoorRow(NamedTuple):
    """A door that `understudy run` opens on request, by the option `--name`; the option may stand
    without its value. The module has `open_door(live, value)`, an asynchronous context manager: the
    door is open inside it. Its value are the endpoints, name → address, for the ready file."""

    module: str
    help: str
    metavar: str = "[[HOST:]PORT]"


@dataclass(frozen=True)
class Capability:
    """The row of a capability. `sections`: keys at the top of a cell file; what a module of them
    may declare is in `ports.sections`. `commands`: modules with
    commands and queries of a running cell; their names are those of subjects. `logs`: endings of
    files that `run --log` writes; each is opened as a door whose value is the file. `packages`:
    optional ones, by the module that is imported: the name of the package, and what needs it."""

    package: str
    robots: Modules = field(default_factory=dict)
    devices: Modules = field(default_factory=dict)
    jobs: Modules = field(default_factory=dict)
    faces: Modules = field(default_factory=dict)
    wires: Modules = field(default_factory=dict)
    cameras: Modules = field(default_factory=dict)
    detectors: Modules = field(default_factory=dict)
    sections: Modules = field(default_factory=dict)
    commands: Modules = field(default_factory=dict)
    pages: Modules = field(default_factory=dict)
    panels: Modules = field(default_factory=dict)
    cli: Mapping[str, CliRow] = field(default_factory=dict)
    options: Mapping[str, OptionRow] = field(default_factory=dict)
    doors: Mapping[str, DoorRow] = field(default_factory=dict)
    logs: Modules = field(default_factory=dict)
    packages: Mapping[str, tuple[str, str]] = field(default_factory=dict)


EVERY_CELL = Capability(
    "understudy",
    wires={
        "mqtt": "wire.mqtt",
        "nats": "wire.nats",
        "pty": "wire.pty",
        "tcp": "wire.tcp",
        "tcp_client": "wire.tcp_client",
        "udp": "wire.udp",
        "zmq_pub": "wire.zmq_pub",
        "zmq_router": "wire.zmq_router",
    },
    faces={"hmi_link": "operator.doors.hmi_link"},
    sections={"epoch": "simulation.epoch", "fit": "offline.fit.section"},
    commands={
        "time": "operator.clock",
        "robots": "operator.models",
        "scene": "operator.scene",
        "environment": "operator.environment",
        "workpieces": "operator.workpieces",
        "events": "operator.events",
        "history": "operator.history",
        "run_modes": "operator.run_modes",
        "motion": "operator.motion",
        "pins": "operator.pins",
        "points": "operator.points",
        "programs": "operator.programs",
        "library": "operator.library",
        "project": "operator.project",
        "lines": "operator.mdi",
    },
    pages={
        "cell": "hmi.pages.cell.page",
        "program": "hmi.pages.program.page",
        "plots": "hmi.pages.plots.page",
        "log": "hmi.pages.log.page",
    },
    cli={
        "run": CliRow("cli.run", "Run a live cell.", "run text_robot --rate 10 --ephemeral"),
        "validate": CliRow(
            "cli.validate",
            "Check programs: syntax, reach, limits, speed, torque, collisions, process, inputs.",
            "validate weld.gcode --cell g60_welding --html report.html",
        ),
        "reach": CliRow(
            "cli.reach",
            "Where an arm can bring its tool.",
            "reach --cell g60_welding --out reach.csv --html reach.html",
        ),
        "cycle-time": CliRow(
            "cli.validate",
            "Cycle time of a program, line by line, without running it.",
            "cycle-time part.nc --settings machine.txt --dialect grblhal",
        ),
        "project": CliRow(
            "cli.project",
            "Save and load programs, points, tools and frames of a running cell as a folder.",
            "project save my_project",
        ),
        "check": CliRow("cli.check", "Check a cell's configuration.", "check my_cell.yaml"),
        "new": CliRow("cli.new", "Write a cell file of your own.", "new my_mill --machine"),
        "cells": CliRow("cli.look", "List the shipped cells.", "cells"),
        "robots": CliRow("cli.look", "List the shipped arms.", "robots"),
        "faces": CliRow(
            "cli.look", "List the wire dialects, or what one of them emulates.", "faces"
        ),
        "faults": CliRow(
            "cli.faults",
            "List the faults; inject all of a cell, and look for the declared reactions.",
            "faults --run --cell g60_welding --html atlas.html",
        ),
        "doctor": CliRow("cli.look", "What works here, what is missing, how to get it.", "doctor"),
        "record": CliRow(
            "cli.record",
            "Record a client and a REAL controller as a transcript.",
            "record --listen :5000 --to 192.168.0.10:5000 --face text_tcp --out morning.chat",
        ),
        "replay": CliRow(
            "cli.replay",
            "Play a transcript against a simulated cell and compare.",
            "replay morning.chat --tolerance 0.2",
        ),
        "fit": CliRow(
            "cli.fit",
            "Estimate values of a cell file, with intervals, from the recording of a real robot.",
            "fit morning.chat --cell my_mill.yaml --out my_mill_fitted.yaml",
        ),
        "status": CliRow("cli.status", "Show the running cells.", "status"),
        "stop": CliRow("cli.status", "Stop the running cells.", "stop --ready-file ready.json"),
        "ctl": CliRow(
            "cli.ctl",
            "Send one command to a running cell.",
            "ctl advance seconds=3 --ready-file ready.json",
        ),
        "journal": CliRow(
            "cli.journal",
            "Show the last requests and answers on the wires of a running cell.",
            "journal bench.text_tcp --last 20",
        ),
        "send": CliRow(
            "cli.send",
            "Send a program to a virtual or real robot.",
            "send grblhal part.nc --to /dev/ttyACM0",
        ),
        "campaign": CliRow(
            "cli.campaign",
            "Run a cell with many seeds and values: pass rate, distributions, smallest failures.",
            "campaign weld.yaml --runs 200",
        ),
        "warm": CliRow("cli.warm", "Compile the kernels once, at set-up.", "warm"),
    },
    packages={
        "trimesh": ("trimesh", "meshes of robots and fixtures"),
        "collada": ("pycollada", "meshes in DAE files"),
        "xacro": ("xacro", "robot descriptions in xacro files"),
        "eaik": ("eaik", "inverse kinematics of arms without a spherical wrist"),
        "nicegui": ("nicegui", "the page"),
        "zmq": ("pyzmq", "page, clients on ZeroMQ"),
        "serial": ("pyserial", "serial lines of real controllers"),
        "pytest": ("pytest", "robots as fixtures of your tests"),
    },
)
CAPABILITIES = (
    Capability("understudy.robots.arm", robots={"arm": ""}),
    Capability("understudy.robots.kuka", robots={"kuka": ""}, faces={"kuka_eki": "face"}),
    Capability(
        "understudy.robots.grblhal", robots={"machine": "machine"}, faces={"grblhal": "face"}
    ),
    Capability(
        "understudy.robots.mobile",
        robots={"mobile": ""},
        faces={"fleet": "face", "vda5050": "vda5050.face"},
        sections={"fleet": "config.fleet_keys", "nats": "config.server"},
        commands={"fleet": "commands"},
        pages={"fleet": "page.page"},
        cli={
            "fleet": CliRow(
                "command_line",
                "Send commands and tasks to mobile robots, and watch them.",
                "fleet send robot-1 MOVE_TO_POSE x=2 y=1",
            )
        },
        packages={
            "pymodbus": ("pymodbus", "PLCs of REAL mobile robots"),
            "can": ("python-can", "CAN buses of REAL mobile robots"),
            "nats": ("nats-py", "mobile robots on NATS"),
            "nkeys": ("nkeys", "NATS servers that want an nkey or JWT"),
        },
    ),
    Capability(
        "understudy.robots.text_robot", robots={"text_robot": ""}, faces={"text_tcp": "face"}
    ),
    Capability(
        "understudy.devices.camera",
        devices={"camera": ""},
        faces={"camera": "face"},
        commands={"cameras": "commands"},
    ),
    Capability(
        "understudy.devices.gripper", devices={"gripper": ""}, faces={"gripper": "modbus.face"}
    ),
    Capability("understudy.devices.io", devices={"io": ""}),
    Capability("understudy.devices.tool_changer", devices={"tool_changer": ""}),
    Capability("understudy.devices.welder", devices={"welder": ""}),
    Capability(
        "understudy.vision",
        jobs={"vision": ""},
        cameras={
            "files": "cameras.files",
            "opencv": "cameras.driver",
            "understudy": "cameras.cell",
        },
        detectors={
            "markers": "detectors.markers",
            "onnx": "detectors.onnx",
            "point_cloud": "detectors.point_cloud",
            "shapes": "detectors.shapes",
        },
        panels={"camera": "page.camera"},
        commands={"vision": "commands"},
        cli={
            "vision": CliRow(
                "command_line",
                "Run the vision process: pictures in, detected objects out.",
                "vision --camera opencv:0 --hand-eye hand_eye_calib.yaml",
            )
        },
        options={
            "vision": OptionRow(
                ("ground_truth", "process"),
                "where detections come from: `process` looks at rendered pictures, `ground_truth` "
                "knows the parts; default: as in the cell file",
            )
        },
        packages={
            "cv2": ("opencv-python-headless", "vision: virtual camera, vision process, calibration")
        },
    ),
    Capability(
        "understudy.jobs.pick_place",
        jobs={"pick_place": ""},
        commands={"pick_place": "commands"},
        pages={"pick_place": "page.page"},
        cli={
            "pick-place": CliRow(
                "command_line",
                "Run, watch, stop and reset the pick & place job of a robot.",
                "pick-place run --cell pick_place --cycles 10",
            )
        },
    ),
    Capability(
        "understudy.jobs.hand_eye",
        jobs={"hand_eye": ""},
        commands={"hand_eye": "commands"},
        pages={"calibration": "page.page"},
        cli={
            "calibrate": CliRow(
                "command_line",
                "Calibrate a camera: its place on the robot (hand-eye), and its intrinsics.",
                "calibrate hand-eye --cell calibration --out hand_eye_calib.yaml "
                "--html report.html",
            )
        },
    ),
    Capability("understudy.jobs.weld", jobs={"weld": ""}, commands={"weld": "commands"}),
    Capability("understudy.jobs.tools", jobs={"tools": ""}, commands={"tools": "commands"}),
    Capability("understudy.jobs.modes", jobs={"modes": ""}, commands={"modes": "commands"}),
    Capability(
        "understudy.jobs.training",
        jobs={"training": ""},
        sections={"course": "section"},
        commands={"course": "commands"},
        pages={"training": "page.page"},
        cli={
            "course": CliRow(
                "command_line",
                "Open the operator training of a cell on the page, or list the exercises.",
                "course weld_first_steps",
            )
        },
    ),
    Capability(
        "understudy.jobs.demo",
        sections={"demo": "section"},
        commands={"demo": "commands"},
        panels={"demo": "page.panel"},
        cli={
            "demo": CliRow(
                "command_line",
                "Show a cell that works by itself, break it, talk to it, copy a client.",
                "demo",
            )
        },
    ),
    Capability(
        "understudy.doors.log",
        logs={"mcap": "recording"},
        commands={"recordings": "commands"},
        pages={"timeline": "page.page"},
        cli={
            "log": CliRow(
                "command_line",
                "Look into a log of `run --log FILE.mcap`, plot it, go back into it.",
                "log info run.mcap",
            ),
            "find": CliRow(
                "command_line",
                "Find the first collision (alarm, fault …) of a log: time, program line, seed.",
                "find run.mcap --first collision",
            ),
            "share": CliRow(
                "command_line",
                "Pack a log for another computer: cell, files, seed, journal, snapshots, hash.",
                "share run.zip --log run.mcap",
            ),
            "open": CliRow(
                "command_line",
                "Repeat a shared run here, compare its hash, and show it on the page.",
                "open run.zip",
            ),
        },
        packages={"mcap": ("mcap", "logs that Foxglove and others open")},
    ),
    Capability(
        "understudy.doors.rosbridge",
        doors={
            "rosbridge": DoorRow(
                "server",
                "open a door for ROS tools: rosbridge on a websocket, at 127.0.0.1:9090 if nothing "
                "else is given; no ROS is needed",
            )
        },
        packages={"websockets": ("websockets", "doors for ROS tools and Foxglove")},
    ),
    Capability(
        "understudy.doors.foxglove",
        doors={
            "foxglove": DoorRow(
                "server",
                "open a door for Foxglove and Lichtblick: the running cell in 3D, plots and "
                "pictures, at 127.0.0.1:8765 if nothing else is given",
            )
        },
        packages={"websockets": ("websockets", "doors for ROS tools and Foxglove")},
    ),
    Capability(
        "understudy.doors.mcp",
        cli={
            "mcp": CliRow(
                "command_line",
                "Serve simulated cells as tools to an agent (Model Context Protocol).",
                "mcp",
            )
        },
    ),
)
"""In this order the jobs of a robot are built, and commands, pages and help are listed."""

REQUIRED = {
    "robots": ("Config", "build|build_group"),
    "devices": ("Config", "build"),
    "jobs": ("SECTIONS", "build"),
    "faces": ("Config", "ENDPOINTS"),
    "wires": ("Config",),
    "sections": ("Config",),
    "commands": ("commands",),
    "pages": ("PAGE",),
    "panels": ("PANEL",),
    "cameras": ("open_camera",),
    "detectors": ("Config", "build"),
    "cli": ("SUMMARY", "EXAMPLE"),
    "doors": ("open_door",),
    "logs": ("open_door",),
}
"""Names that a module of each table must declare; `a|b`: one of them. Those of `cli` only if it is
from outside."""
IN_ORDER = ("jobs", "commands", "pages", "cli")
"""Tables whose names keep the order of the rows; the others are sorted."""


def _table(name: str) -> dict[str, str]:
    """The shipped names of a table, each with its module."""
    found = {
        kind: module_name(each.package, row.module if isinstance(row, CliRow | DoorRow) else row)
        for each in (EVERY_CELL, *CAPABILITIES)
        for kind, row in getattr(each, name).items()
    }
    return found if name in IN_ORDER else dict(sorted(found.items()))


def module_name(package: str, module: str) -> str:
    return f"{package}.{module}" if module else package


TABLES = {
    each.name: _table(each.name)
    for each in fields(Capability)
    if each.name not in ("package", "options", "packages")
}
OPTIONS = {name: row for each in CAPABILITIES for name, row in each.options.items()}
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
    needed = () if table == "cli" and kind in TABLES[table] else REQUIRED[table]
    for name in needed:
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
    for rows_of in (TABLES.__getitem__, outside):
        for table in tables:
            for kind, module in _usable(table, rows_of(table)):
                yield table, kind, module


def loaded_modules(*tables: str) -> Iterator[ModuleType]:
    """The modules of these tables that something has imported already, the shipped rows only."""
    for table in tables:
        for name in TABLES[table].values():
            if (module := sys.modules.get(name)) is not None:
                yield module


def _usable(table: str, names: Iterable[str]) -> Iterator[tuple[str, ModuleType]]:
    for kind in names:
        try:
            yield kind, module_of(table, kind)
        except ConfigError as problem:
            log.warning("%s", problem)


def folders() -> Iterator[str]:
    """The folder of every row, seen from this package: what a row ships is in its `catalog`."""
    for each in (EVERY_CELL, *CAPABILITIES):
        yield each.package.replace(".", "/").removeprefix("understudy").removeprefix("/")


def packages() -> dict[str, tuple[str, str]]:
    """The optional packages, as in the rows."""
    rows = (each.packages for each in (EVERY_CELL, *CAPABILITIES))
    return {module: row for packages_of in rows for module, row in packages_of.items()}


def cli_rows() -> dict[str, CliRow]:
    """The commands of the command line. Those from outside are imported for their help; one that
    cannot be used is logged and left out."""
    shipped = {
        name: row._replace(module=TABLES["cli"][name])
        for each in (EVERY_CELL, *CAPABILITIES)
        for name, row in each.cli.items()
    }
    others = {
        name: CliRow(rows_module.__name__, rows_module.SUMMARY, rows_module.EXAMPLE)
        for name, rows_module in _usable("cli", outside("cli"))
    }
    return shipped | others


def door_rows() -> dict[str, DoorRow]:
    """The doors that `understudy run` can open. Those from outside may declare `HELP`."""
    shipped = {
        name: row for each in (EVERY_CELL, *CAPABILITIES) for name, row in each.doors.items()
    }
    others = {
        name: DoorRow(rows_module.__name__, getattr(rows_module, "HELP", ""))
        for name, rows_module in _usable("doors", outside("doors"))
    }
    return shipped | others


@cache
def installed(table: str) -> dict[str, str]:
    """The rows that installed packages add; logs those that have the name of a shipped kind."""
    if not _declare_rows(tuple(sys.path)):
        return {}
    from importlib.metadata import entry_points

    rows = {entry.name: entry.module for entry in entry_points(group=f"understudy.{table}")}
    for kind in rows.keys() & TABLES[table].keys():
        log.warning("%s: %s is ignored: %s is a shipped kind", table, rows[kind], kind)
    return rows


@cache
def _declare_rows(path: tuple[str, ...]) -> bool:
    """Whether a package on the path may add rows. Mostly none does: then `importlib.metadata` is
    not loaded, which would read all packages for every table."""
    others = (each for each in sys.meta_path if each is not PathFinder)
    if any(hasattr(each, "find_distributions") for each in others):
        return True
    return any(_may_declare(Path(each)) for each in path)


def _may_declare(place: Path) -> bool:
    """Whether a package in this folder may have entry points for our tables. What is no plain
    folder of packages, such as a zip file, may."""
    if not place.is_dir():
        return place.is_file()
    for name in os.listdir(place):
        if name.endswith(".egg"):
            return True
        if name.endswith((".dist-info", ".egg-info")):
            with suppress(OSError), open(f"{place}/{name}/entry_points.txt", "rb") as text:
                if b"[understudy." in text.read():
                    return True
    return False
