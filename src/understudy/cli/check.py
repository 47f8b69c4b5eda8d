"""`understudy check`: the configuration of a cell, without running it."""

import asyncio
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from understudy.app.live import Live, Options
from understudy.cli.hmi import Keys, missing_extra
from understudy.config import CellConfig, Hmi, Wire, load_config
from understudy.config.files import read_text
from understudy.config.include import read_included
from understudy.errors import ConfigError
from understudy.registry import modules

EVERYWHERE = {"", "0.0.0.0", "::"}


def check(
    cell: Annotated[
        str,
        typer.Argument(
            help="path of a cell file, of a file it includes, of a robot_config.json or of a "
            "hand_eye_calib.yaml, or name of a shipped cell"
        ),
    ],
) -> None:
    """Check the configuration of a cell: read it and build the cell, without running it."""
    if _check_named_file(Path(cell)) or _check_included(Path(cell)):
        return
    config = load_config(cell)
    asyncio.run(_build_as_run(config))
    _check_ports(config)
    faces = sum(len(robot.faces) for robot in config.robots.values()) + len(config.group_wires)
    print(f"{cell}: valid (robots: {len(config.robots)}, faces: {faces})")


def _check_named_file(file: Path) -> bool:
    """Checks a file that a robot or a job of a cell names; False if none of them knows it."""
    if not file.is_file():
        return False
    text = read_text(file)
    for _, _, module in chain(modules("robots"), modules("jobs")):
        if hasattr(module, "check_file") and (found := module.check_file(text, str(file))):
            print(f"{file}: valid as {found}")
            return True
    return False


def _check_included(file: Path) -> bool:
    """Checks a file that cell files include; False if it is none."""
    if not file.is_file() or (found := read_included(read_text(file), str(file))) is None:
        return False
    kind, _ = found
    print(f"{file}: valid as a {kind} file; a cell file uses it by `include: {{{kind}: {file}}}`")
    return True


async def _build_as_run(config: CellConfig) -> None:
    """Builds the cell and its endpoints as `run` does, but opens none."""
    page = config.head.hmi
    options = Options(hmi=page is not None and missing_extra() is None, real=True)
    Keys(options.secret, config.head.token).access(page or Hmi())
    Live(config, options)


def _check_ports(config: CellConfig) -> None:
    """Raises a ConfigError if two endpoints listen on the same address; port 0 is a free port."""
    head = config.head
    page: dict[str, Wire | Hmi] = {"state": head.state, "hmi": head.hmi} if head.hmi else {}
    wires: dict[str, Wire | Hmi] = {"control": head.control, **page, **config.endpoints()}
    places: dict[str, tuple[str, int]] = {}
    for endpoint, wire in wires.items():
        host, port = wire.listens_on() or ("", 0)
        if port == 0:
            continue
        host = "127.0.0.1" if host == "localhost" else host
        for other, place in places.items():
            if port == place[1] and (host == place[0] or {host, place[0]} & EVERYWHERE):
                problem = ConfigError(f"{other} and {endpoint} listen on the same port", value=port)
                raise config.document.error(_keys(endpoint), problem)
        places[endpoint] = host, port


def _keys(endpoint: str) -> tuple[str, ...]:
    if "." not in endpoint:
        return (endpoint, "port")
    robot, face, *suffix = endpoint.split(".")
    return ("robots", robot, "faces", face, *suffix, "port")
