"""Cell, program and model files: by path, or shipped ones by name."""

import logging
import os.path
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from understudy.errors import ConfigError, unknown

log = logging.getLogger(__name__)

SHIPPED = ".yaml (shipped)"
MODEL_FILES = (".urdf", ".xml", ".stl", ".obj", ".dae", ".glb")


def shipped_cells() -> dict[str, Traversable]:
    return _shipped("cells", ".yaml")


def shipped_robots() -> dict[str, Traversable]:
    return _shipped("robots", ".urdf")


def shipped_programs() -> dict[str, Traversable]:
    return _shipped("programs", ".gcode")


def read_program(path: Path) -> bytes:
    """The bytes of a program: a file, or a shipped program by name."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        shipped = shipped_programs().get(str(path).removesuffix(".gcode"))
        if shipped is not None and isinstance(problem, FileNotFoundError):
            return shipped.read_bytes()
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(f"cannot be read: {reason}", file=str(path)) from None


def read_model(name: str, *, beside: str) -> bytes:
    """The description of a robot: a shipped one by name, or a file beside the cell file."""
    shipped = shipped_robots()
    if name in shipped:
        return shipped[name].read_bytes()
    path = Path(beside).parent / name
    if path.suffix not in MODEL_FILES and not os.path.exists(path):  # never raises
        raise unknown("robot (neither shipped nor the path of a file)", name, shipped, key="model")
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(f"cannot be read: {reason}", key="model", value=str(path)) from None


def _shipped(folder: str, ending: str) -> dict[str, Traversable]:
    files = resources.files("understudy").joinpath("catalog", folder).iterdir()
    ordered = sorted(files, key=lambda file: file.name)
    return {f.name.removesuffix(ending): f for f in ordered if f.name.endswith(ending)}


def append_line(name: str, line: str) -> None:
    """Appends a line to a file; a failure is logged."""
    try:
        with open(name, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        log.warning("%s cannot be written: %s", name, reason)


def find_cell(name: str) -> tuple[str, str]:
    """The file's name and its text, for a path or the name of a shipped cell."""
    shipped = shipped_cells()
    if name in shipped:
        return f"{name}{SHIPPED}", shipped[name].read_text(encoding="utf-8")
    path = Path(name)
    if path.suffix not in (".yaml", ".yml") and not os.path.exists(path):  # never raises
        raise unknown("cell (neither shipped nor the path of a file)", name, shipped)
    return name, read_text(path)


def found_beside(cell_file: str, name: str, *elsewhere: Path) -> Path:
    """A file by a relative name: beside the cell file, in the folder above, then elsewhere."""
    folders = (Path(cell_file).parent, Path(cell_file).parent.parent, *elsewhere)
    tried = list(dict.fromkeys(folder / name for folder in folders))
    for place in tried:
        if os.path.exists(place):  # never raises
            return place
    looked = ", ".join(str(place) for place in tried)
    raise ConfigError(f"cannot be read: no such file; looked for {looked}", file=name)


def name_of_cell(file: str) -> str:
    """The name under which `find_cell` finds this file again."""
    return file.removesuffix(SHIPPED)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise ConfigError(f"cannot be read: {reason}", file=str(path)) from None
