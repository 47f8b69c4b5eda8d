"""`understudy new`: writes a cell file of one's own that runs as it is, or a folder with tests."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Annotated

from understudy.app.build import build_cell
from understudy.cli.options import JsonOption, put_json
from understudy.cli.parameters import Argument, Option
from understudy.config import read_config
from understudy.config.files import (
    Starter,
    find_cell,
    shipped_program,
    shipped_robots,
    starter_file,
    starters,
)
from understudy.errors import ConfigError, unknown

ARM_CELL = """description: an arm of my own
hmi: {{port: 8080}}              # the page, in a browser
robots:
  arm:
    kind: arm
    model: {model}
    program: joint_tour        # loaded at the start; Run programs on the page runs it
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


COMMON_FILES = {"AGENTS.md": "AGENTS.md", "robots.yml": ".github/workflows/robots.yml"}
"""Files that every folder gets, and where."""
PROGRAM_KEY = re.compile(r"^(\s+program: )(\w+)$", re.MULTILINE)


def _starter_names(incomplete: str) -> list[str]:
    return list(starters())


def new(
    name: Annotated[str, Argument(help="name of the cell; writes NAME.yaml")],
    robot: Annotated[
        str, Option(help="name of a shipped arm, or path of a URDF; default: g60")
    ] = "",
    machine: Annotated[
        bool, Option("--machine", help="a plain machine behind grblHAL instead of an arm")
    ] = False,
    for_: Annotated[
        str,
        Option(
            "--for",
            metavar="KIND",
            help=f"write a folder with cell, tests, CI workflow: {', '.join(starters())}",
            autocompletion=_starter_names,
        ),
    ] = "",
    as_json: JsonOption = None,
) -> None:
    """Write a cell file of your own that runs as it is, or a folder with its tests."""
    if for_:
        if machine or robot:
            raise ConfigError("give --for alone: it brings its own robot", value=for_)
        _write_folder(Path(name), for_, as_json)
        return
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
    if not put_json(as_json, {"cell": str(path), "files": [str(path)]}):
        print(
            f"wrote {path}. Run it: understudy run {word}, open the page that it names, press "
            "Run programs"
        )


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


# ── a folder with tests ─────────────────────────────────────────────────────────────────────────


def _write_folder(folder: Path, kind: str, as_json: str | None) -> None:
    found = starters()
    if kind not in found:
        raise unknown("--for", kind, found)
    files = _files_of(found[kind])
    try:
        folder.mkdir(parents=True)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise ConfigError("this exists; choose another name", file=str(folder)) from None
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(folder)) from None
    paths = [str(folder / name) for name in files]
    if put_json(as_json, {"cell": str(folder / "cell.yaml"), "files": paths}):
        return
    word = shlex.quote(str(folder))
    print(f"wrote {folder}: {', '.join(files)}")
    print(f"Test it: pytest {word}   Run it: understudy run {word}/cell.yaml")


def _files_of(starter: Starter) -> dict[str, str]:
    """The files of a folder by name. The program of the cell becomes a file of the folder."""
    _, cell = find_cell(starter.cell)
    files: dict[str, str] = {}
    if key := PROGRAM_KEY.search(cell):
        program = shipped_program(key[2])
        assert program is not None
        files[f"programs/{program.name}"] = program.read_text(encoding="utf-8")
        cell = f"{cell[: key.start(2)]}programs/{program.name}{cell[key.end(2) :]}"
    common = {place: starter_file(name) for name, place in COMMON_FILES.items()}
    return {"cell.yaml": cell, "test_cell.py": starter.tests, **files, **common}
