"""Cell, program and model files: by path, or shipped ones by name."""

import logging
import os.path
from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from understudy.config.document import parse
from understudy.config.limits import (
    LARGEST_LOG,
    LARGEST_MESH,
    LARGEST_PROGRAM,
    LARGEST_URDF,
    LARGEST_YAML,
)
from understudy.config.model_files import is_xacro, mesh_path, read_urdf, with_mesh_names
from understudy.config.outside_files import (
    FilesFolder,
    append_regular,
    read_regular,
    regular_bytes,
    why,
)
from understudy.errors import ConfigError, unknown
from understudy.registry import folders

log = logging.getLogger(__name__)

SHIPPED = ".yaml (shipped)"
YAML_FILES = (".yaml", ".yml")
PROGRAM_FILES = (".gcode", ".nc", ".ngc", ".tap", ".cnc", ".mission", ".txt")
NEVER_CELLS = (*PROGRAM_FILES[:-1], ".src", ".dat", ".krl")
"""Endings of programs, also of those for other controllers; a cell file may end in .txt."""
URDF_FILES = (".urdf", ".xml")
ROBOT_FILES = (".json",)
LARGEST_NETWORK = 1024**3
"""Bytes of a file of a detector."""
MODEL_FILES = (*URDF_FILES, ".stl", ".obj", ".ply", ".dae", ".glb")


def shipped_cells() -> dict[str, Traversable]:
    return shipped("cells", ".yaml")


def shipped_robots() -> dict[str, Traversable]:
    return shipped("robots", ".urdf")


def shipped_robot_files() -> dict[str, Traversable]:
    """The shipped robot_config.json files by name, without the ending."""
    return shipped("robots", ".json")


def path_from(file: str, path: Path) -> str:
    """A path as a file names it: seen from the folder of that file."""
    return os.path.relpath(path, Path(file).parent)


def find_robot_file(name: str, *, beside: str) -> tuple[str, str]:
    """The name and text of a robot_config.json that a cell file names: a file beside it, or a
    shipped one."""
    shipped = shipped_robot_files().get(name.removesuffix(".json"))
    path = Path(beside).parent / name
    own = not beside.endswith(SHIPPED) and os.path.exists(path)  # never raises
    if shipped is not None and not own:
        return f"{shipped.name} (shipped)", shipped.read_text(encoding="utf-8")
    if path.suffix.lower() not in ROBOT_FILES:
        kind = "robot file (neither shipped nor the path of a file that ends in .json)"
        raise unknown(kind, name, shipped_robot_files(), key="file")
    return str(path), read_text(path)


def find_calibration(name: str, *, beside: str) -> str | None:
    """The text of a file that a cell file names, in its folder or the one above; None if there is
    no such file."""
    path = next(filter(os.path.exists, _places(beside, name)), None)
    return None if path is None else read_text(path)


def read_beside(name: str, *, beside: str) -> bytes:
    """The bytes of a file that `path_beside` finds."""
    return read_regular(path_beside(name, beside=beside), LARGEST_NETWORK)


def path_beside(name: str, *, beside: str) -> Path:
    """A file that a configuration names (a network, a list of classes): an absolute path, or in the
    folder of the configuration or the one above."""
    for path in filter(os.path.exists, _places(beside, name)):
        return path
    allowed = f"a file in {Path(beside).parent}"
    raise ConfigError("there is no such file", value=name, allowed=allowed)


def shipped_programs() -> dict[str, Traversable]:
    """The shipped programs by name, without the ending."""
    files = _catalog("programs")
    return {Path(f.name).stem: f for f in files if Path(f.name).suffix in PROGRAM_FILES}


def program_indexes() -> list[Traversable]:
    """The files that say what the shipped programs are."""
    return [file for file in _catalog("programs") if file.name == "index.yaml"]


class Starter(NamedTuple):
    """What `understudy new --for` starts from: a shipped cell, and the text of its tests."""

    cell: str
    what: str
    tests: str


def starters() -> dict[str, Starter]:
    """The starters of all capabilities by name."""
    files = _catalog("starters")
    tests = {file.name.removesuffix(".py"): file for file in files if file.name.endswith(".py")}
    rows = {
        name: row
        for index in files
        if index.name == "index.yaml"
        for name, row in parse(index.read_text(encoding="utf-8"), index.name).value.items()
    }
    return {
        name: Starter(row["cell"], row["what"], tests[name].read_text(encoding="utf-8"))
        for name, row in sorted(rows.items())
    }


def starter_file(name: str) -> str:
    """A file that every starter gets."""
    (file,) = (each for each in _catalog("starter_files") if each.name == name)
    return file.read_text(encoding="utf-8")


class ShippedClients(NamedTuple):
    """The small clients of a wire, by the ending of their files. `place`, `robot`: in their text.
    How lines are typed is in the others, see `index.yaml` beside them."""

    place: str
    form: str
    lines: tuple[str, ...]
    texts: dict[str, str]
    robot: str = ""
    status: tuple[str, ...] = ()
    ends: str = ""
    meaning: tuple[str, ...] = ()
    hear: tuple[str, ...] = ()


def shipped_clients() -> dict[str, ShippedClients]:
    """The clients that capabilities ship, by the kind of face with its endpoint, or by the endpoint
    of a broker."""
    files = _catalog("clients")
    found = {}
    for index in (file for file in files if file.name == "index.yaml"):
        for name, row in parse(index.read_text(encoding="utf-8"), index.name).value.items():
            texts = {
                file.name.removeprefix(f"{name}."): file.read_text(encoding="utf-8")
                for file in files
                if file.name.startswith(f"{name}.") and file.name != index.name
            }
            tuples = {key: tuple(each) for key, each in row.items() if isinstance(each, list)}
            found[name] = ShippedClients(**{**row, **tuples}, texts=texts)
    return found


def shipped_program(name: str) -> Traversable | None:
    """A shipped program by its name, with or without the ending."""
    file = shipped_programs().get(name.partition(".")[0])
    return file if file is not None and name in (file.name, Path(file.name).stem) else None


def read_program(path: Path) -> bytes:
    """The bytes of a program: a file, or a shipped program by name."""
    shipped = shipped_program(str(path))
    if shipped is not None and not os.path.exists(path):  # never raises
        return shipped.read_bytes()
    return read_regular(path, LARGEST_PROGRAM)


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
    if path.suffix not in PROGRAM_FILES:
        endings = ", ".join(PROGRAM_FILES)
        kind = f"program (neither shipped nor the path of a file that ends in {endings})"
        raise unknown(kind, name, shipped_programs())
    return ProgramFile(path.name, read_text(path, LARGEST_PROGRAM))


def read_model(name: str, *, beside: str) -> bytes:
    """The description of a robot (a shipped one by name, or a file beside the cell file) or a mesh;
    also a robot_config.json.

    xacro files are expanded; the meshes of a URDF get names that this function reads.
    """
    shipped = shipped_robots()
    if name in shipped:
        return shipped[name].read_bytes()
    if Path(name).suffix.lower() in ROBOT_FILES:
        return find_robot_file(name, beside=beside)[1].encode()
    folder = Path(beside).parent
    path = folder / name
    if not is_xacro(name) and path.suffix.lower() not in MODEL_FILES:
        raise _no_model(name)
    try:
        if is_xacro(name) or path.suffix.lower() in URDF_FILES:
            return read_urdf(name, folder)
        return regular_bytes(mesh_path(name, folder), LARGEST_MESH)
    except (OSError, ValueError) as problem:
        reason = f"cannot be read: {why(problem)}"
        allowed = "a shipped robot, or a file beside the cell file"
        raise ConfigError(reason, key="model", value=str(path), allowed=allowed) from None


def read_client_model(name: str, files: FilesFolder) -> bytes:
    """A shipped robot, or a URDF or mesh in the folder for files, that a client names.

    The meshes of a URDF get names from that folder. xacro files can hold expressions and are
    expanded for the user only.
    """
    shipped = shipped_robots()
    if name in shipped:
        return shipped[name].read_bytes()
    suffix = Path(name).suffix.lower()
    if suffix not in MODEL_FILES:
        raise _no_model(name, MODEL_FILES)
    if suffix in URDF_FILES:
        return with_mesh_names(files.read(name, LARGEST_URDF), name)
    return files.read(name, LARGEST_MESH)


def _no_model(name: str, endings: Iterable[str] = (*MODEL_FILES, ".xacro")) -> ConfigError:
    kind = f"robot (neither shipped nor the path of a file that ends in {', '.join(endings)})"
    return unknown(kind, name, shipped_robots(), key="model")


def shipped(folder: str, ending: str) -> dict[str, Traversable]:
    """The files of a folder in the catalogs, by name, without their ending."""
    files = _catalog(folder)
    return {f.name.removesuffix(ending): f for f in files if f.name.endswith(ending)}


@cache
def _catalog(folder: str) -> list[Traversable]:
    """The files of a folder in the catalogs of all capabilities, by name. The catalog of the
    package has what joins several of them."""
    package = resources.files("understudy")
    places = (package.joinpath(own, "catalog", folder) for own in folders())
    found = (file for place in places if place.is_dir() for file in place.iterdir())
    return sorted(found, key=lambda file: file.name)


def append_line(name: str, line: str) -> None:
    """Appends a line to a file; a failure is logged."""
    try:
        append_regular(Path(name), line, LARGEST_LOG)
    except (OSError, ValueError) as problem:
        log.warning("%s cannot be written: %s", name, why(problem))


def find_cell(name: str) -> tuple[str, str]:
    """The file's name and its text, for a path or the name of a shipped cell."""
    shipped = shipped_cells()
    if name in shipped:
        return f"{name}{SHIPPED}", shipped[name].read_text(encoding="utf-8")
    path = Path(name)
    is_there = os.path.exists(path)  # never raises
    is_program = path.suffix.lower() in NEVER_CELLS and (not is_there or path.is_file())
    if is_program or shipped_program(name) is not None:
        check = f"`understudy validate {name}`, or `understudy run CELL --program {name}`"
        raise ConfigError("this is a program, not a cell", value=name, allowed=check)
    if path.suffix not in YAML_FILES and not is_there:
        raise _no_cell(name, shipped)
    return name, read_text(path)


def _no_cell(name: str, shipped: Iterable[str]) -> ConfigError:
    """The error of a name that is no cell; `c1` beside a file `c1.yaml` means that file."""
    files = [f"{name}{ending}" for ending in YAML_FILES if os.path.isfile(f"{name}{ending}")]
    problem = unknown("cell (neither shipped nor the path of a file)", name, shipped)
    if not files:
        return problem
    return ConfigError(problem.problem, value=name, allowed=problem.allowed, nearest=files[0])


def found_beside(cell_file: str, name: str) -> Path:
    """A file by a relative name: beside the cell file, or in the folder above."""
    tried = _places(cell_file, name)
    for place in filter(os.path.exists, tried):
        return place
    looked = ", ".join(map(str, tried))
    raise ConfigError(f"cannot be read: no such file; looked for {looked}", file=name)


def _places(file: str, name: str) -> list[Path]:
    """Where a file that another one names may be: beside it, or in the folder above. To ask
    `os.path.exists` of a place never raises."""
    folder = Path(file).parent
    return list(dict.fromkeys((folder / name, folder.parent / name)))


def name_of_cell(file: str) -> str:
    """The name under which `find_cell` finds this file again."""
    return file.removesuffix(SHIPPED)


def read_text(path: Path, limit: int = LARGEST_YAML) -> str:
    """The text of a regular file of at most ``limit`` bytes; raises a ConfigError."""
    try:
        return _newlines(read_regular(path, limit).decode())
    except UnicodeDecodeError:
        raise ConfigError("cannot be read: not UTF-8 text", file=str(path)) from None


def _newlines(text: str) -> str:
    """The text with the line ends of all systems as \\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
