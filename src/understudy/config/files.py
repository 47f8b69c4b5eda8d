"""Cell, program and model files: by path, or shipped ones by name."""

import logging
import os.path
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from understudy.config.model_files import is_xacro, mesh_path, read_urdf
from understudy.errors import ConfigError, unknown

log = logging.getLogger(__name__)

SHIPPED = ".yaml (shipped)"
PROGRAM_FILES = (".gcode", ".nc", ".ngc", ".tap", ".cnc", ".txt")
URDF_FILES = (".urdf", ".xml")
MODEL_FILES = (*URDF_FILES, ".stl", ".obj", ".ply", ".dae", ".glb")


def shipped_cells() -> dict[str, Traversable]:
    return _shipped("cells", ".yaml")


def shipped_robots() -> dict[str, Traversable]:
    return _shipped("robots", ".urdf")


def shipped_programs() -> dict[str, Traversable]:
    """The shipped programs by name, without the ending."""
    files = resources.files("understudy").joinpath("catalog", "programs").iterdir()
    ordered = sorted(files, key=lambda file: file.name)
    return {Path(f.name).stem: f for f in ordered if Path(f.name).suffix in PROGRAM_FILES}


def shipped_program(name: str) -> Traversable | None:
    """A shipped program by its name, with or without the ending."""
    file = shipped_programs().get(name.partition(".")[0])
    return file if file is not None and name in (file.name, Path(file.name).stem) else None


def read_program(path: Path) -> bytes:
    """The bytes of a program: a file, or a shipped program by name."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        shipped = shipped_program(str(path))
        if shipped is not None and isinstance(problem, FileNotFoundError):
            return shipped.read_bytes()
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(f"cannot be read: {reason}", file=str(path)) from None


class ProgramFile(NamedTuple):
    """A program: the name of its file, and its text."""

    name: str
    text: str


def find_program(name: str, *, beside: str) -> ProgramFile:
    """A program that a cell file names: a file beside it, or a shipped program."""
    path = Path(beside).parent / name
    shipped = shipped_program(name)
    if shipped is not None and not os.path.exists(path):  # never raises
        return ProgramFile(shipped.name, shipped.read_text(encoding="utf-8"))
    if path.suffix not in PROGRAM_FILES and not os.path.exists(path):
        raise unknown("program (neither shipped nor the path of a file)", name, shipped_programs())
    return ProgramFile(path.name, read_text(path))


def read_model(name: str, *, beside: str) -> bytes:
    """The description of a robot (a shipped one by name, or a file beside the cell file) or a mesh.

    xacro files are expanded; the meshes of a URDF get names that this function reads.
    """
    shipped = shipped_robots()
    if name in shipped:
        return shipped[name].read_bytes()
    folder = Path(beside).parent
    path = folder / name
    known = is_xacro(name) or "://" in name or path.suffix.lower() in MODEL_FILES
    if not known and not os.path.exists(path):  # never raises
        raise unknown("robot (neither shipped nor the path of a file)", name, shipped, key="model")
    try:
        if is_xacro(name) or path.suffix.lower() in URDF_FILES:
            return read_urdf(name, folder)
        return mesh_path(name, folder).read_bytes()
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
