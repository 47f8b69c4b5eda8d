"""`understudy check` and `understudy new`: cells of one's own."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from understudy.app.build import build_cell
from understudy.config import CellConfig, Hmi, Wire, load_config, read_config
from understudy.config.files import find_cell, shipped_robots
from understudy.errors import ConfigError
from understudy.wire.tcp import Address
from understudy.wire.zmq import Bound

EVERYWHERE = {"", "0.0.0.0", "::"}
ARM_CELL = """description: an arm of one's own
robots:
  arm:
    kind: arm
    model: {model}
    faces:
      grblhal: {{port: 2323}}
"""


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy check my_cell.yaml")(check)
    app.command(epilog="Example: understudy new my_cell --robot g60")(new)


def check(cell: Annotated[str, typer.Argument(help="a YAML file or a shipped cell")]) -> None:
    """Read a cell's configuration and put it together, without running it."""
    config = load_config(cell)
    build_cell(config)
    _check_ports(config)
    faces = sum(len(robot.faces) for robot in config.robots.values())
    print(f"{cell}: all right (robots: {len(config.robots)}, faces: {faces})")


def _check_ports(config: CellConfig) -> None:
    """No two endpoints may listen at the same place; port 0 is a place of one's own."""
    head = config.head
    page: dict[str, Wire | Hmi] = {"state": head.state, "hmi": head.hmi} if head.hmi else {}
    wires: dict[str, Wire | Hmi] = {"control": head.control, **page, **config.endpoints()}
    places: dict[str, tuple[str, int]] = {}
    for endpoint, wire in wires.items():
        if not isinstance(wire, Address | Bound | Hmi) or wire.port == 0:
            continue
        if isinstance(wire, Address) and wire.pty:
            continue
        host = "127.0.0.1" if wire.host == "localhost" else wire.host
        for other, (taken, port) in places.items():
            if port == wire.port and (host == taken or {host, taken} & EVERYWHERE):
                problem = ConfigError(f"{other} and {endpoint} listen on the same port", value=port)
                raise config.document.error(_keys(endpoint), problem)
        places[endpoint] = host, wire.port


def _keys(endpoint: str) -> tuple[str, ...]:
    if "." not in endpoint:
        return (endpoint, "port")
    robot, face, *suffix = endpoint.split(".")
    return ("robots", robot, "faces", face, *suffix, "port")


def new(
    name: Annotated[str, typer.Argument(help="the cell's name; NAME.yaml is written")],
    robot: Annotated[
        str | None, typer.Option(help="an arm: a shipped one by name, or the path of a URDF")
    ] = None,
) -> None:
    """Write a cell of your own that runs as it stands."""
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    if not path.name.removesuffix(path.suffix or ".yaml").strip(". "):
        raise ConfigError("a cell needs a name", value=name, allowed="e.g. my_cell")
    text = find_cell("text_robot")[1] if robot is None else _with_arm(robot, path)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"# Run it:   understudy run {path}\n# Check it: understudy check {path}\n")
            file.write(text)
    except FileExistsError:
        raise ConfigError("is there already; choose another name", file=str(path)) from None
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(path)) from None
    print(f"{path} is written. Run it: understudy run {path}")


def _with_arm(robot: str, path: Path) -> str:
    """A cell with this arm behind a grblHAL wire; only one that can be put together is written."""
    shipped = robot in shipped_robots()
    model = robot if shipped else os.path.relpath(robot, path.parent)
    text = ARM_CELL.format(model=json.dumps(model))
    build_cell(read_config(text, str(path)))
    return text
