"""`understudy check` and `understudy new`: cells of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.app import build_cell, load_config
from understudy.config import find_cell
from understudy.errors import ConfigError


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy check my_cell.yaml")(check)
    app.command(epilog="Example: understudy new my_cell")(new)


def check(cell: Annotated[str, typer.Argument(help="a YAML file or a shipped cell")]) -> None:
    """Read a cell's configuration and put it together, without running it."""
    config = load_config(cell)
    build_cell(config)
    faces = sum(len(robot.faces) for robot in config.robots.values())
    print(f"{cell}: all right (robots: {len(config.robots)}, faces: {faces})")


def new(
    name: Annotated[str, typer.Argument(help="the cell's name; NAME.yaml is written")],
) -> None:
    """Write a cell of your own that runs as it stands."""
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    _, text = find_cell("text_robot")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"# Run it:   understudy run {path}\n# Check it: understudy check {path}\n")
            file.write(text)
    except FileExistsError:
        raise ConfigError("is there already; choose another name", file=str(path)) from None
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(path)) from None
    load_config(str(path))
    print(f"{path} is written. Run it: understudy run {path}")
