"""`understudy new`: writes a cell file of one's own that runs as it is."""

import json
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.config.files import find_cell, shipped_robots
from understudy.errors import ConfigError

ARM_CELL = """description: an arm of my own
hmi: {{port: 8080}}              # the page, in a browser
robots:
  arm:
    kind: arm
    model: {model}
    program: joint_tour        # loaded at the start; Play on the page runs it
    faces:
      grblhal: {{port: 2323}}    # a G-code sender connects here
environment:
  objects: []                  # tables, fixtures, walls; docs/config/cells.md
"""


MACHINE_CELL = "grblhal_6axis"
"""The shipped cell that a machine of one's own starts from."""
SERIAL_PORT = (
    "      # instead of the port: pty: /tmp/ttyGRBL, a serial port; banner: Grbl, for old senders\n"
)


def new(
    name: Annotated[str, typer.Argument(help="name of the cell; writes NAME.yaml")],
    robot: Annotated[
        str, typer.Option(help="name of a shipped arm, or path of a URDF; default: g60")
    ] = "",
    machine: Annotated[
        bool, typer.Option("--machine", help="a plain machine behind grblHAL instead of an arm")
    ] = False,
) -> None:
    """Write a cell file of your own that runs as it is."""
    if machine and robot:
        raise ConfigError("give --machine or --robot, not both: a machine has no arm", value=robot)
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    if not path.name.removesuffix(path.suffix or ".yaml").strip(". "):
        raise ConfigError("a cell needs a name", value=name, allowed="e.g. my_cell")
    text = _with_machine() if machine else _with_arm(robot or "g60", path)
    word = shlex.quote(str(path))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"# Run it:   understudy run {word}\n# Check it: understudy check {word}\n")
            file.write(text)
    except FileExistsError:
        raise ConfigError("the file exists; choose another name", file=str(path)) from None
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(path)) from None
    print(f"wrote {path}. Run it: understudy run {word}, open the page that it names, press Play")


def _with_machine() -> str:
    """Text of a cell file with the machine of the shipped cell."""
    _, text = find_cell(MACHINE_CELL)
    _, _, rest = text.partition("\n")
    return f"description: a machine of my own behind grblHAL\n{rest}{SERIAL_PORT}"


def _with_arm(robot: str, path: Path) -> str:
    """Text of a cell file with this arm behind grblHAL; checked by building the cell."""
    shipped = robot in shipped_robots()
    model = robot if shipped else os.path.relpath(robot, path.parent)
    text = ARM_CELL.format(model=json.dumps(model))
    build_cell(read_config(text, str(path)))
    return text
