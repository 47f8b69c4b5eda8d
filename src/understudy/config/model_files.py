"""Robot descriptions and meshes on disk: URDF, xacro, and names as ROS writes them.

A mesh in a URDF is named ``package://PACKAGE/path``, ``file:///path`` or by a path beside the URDF.
`urdf_text` replaces such names by paths from the folder of the cell file, so that the rooms below
read every file by one kind of name. A name that leads to no file stays as it is, and reading it
later reports where it was looked for.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from understudy.config.limits import LARGEST_URDF, LARGEST_YAML
from understudy.config.outside_files import regular_bytes
from understudy.config.xacro_process import expanded
from understudy.errors import ConfigError, needs

PACKAGE = re.compile(r"^(?:package|model)://([^/]+)/(.*)$")
MESH = re.compile(r"(<mesh\b[^<>]*?\bfilename\s*=\s*)([\"'])([^<>\"']*)\2")
"""It stops at the next tag, so that a text of many unfinished ones takes no long time."""
MOST_LEVELS = 4
"""Folders below a folder of the package path in which packages are looked for."""
NEAR_LEVELS = 6
"""Folders above a URDF in which packages are looked for."""
PATH_VARIABLE = "ROS_PACKAGE_PATH"


def is_xacro(name: str) -> bool:
    """Whether a model is a xacro file; arguments may follow: ``arm.xacro name:=value``."""
    return bool(name.split()) and name.split()[0].endswith(".xacro")


def read_urdf(name: str, folder: Path) -> bytes:
    """The text of a URDF or xacro file, by its name from ``folder``, with readable mesh names."""
    file, *arguments = name.split() if is_xacro(name) else [name]
    path = folder / (_package_file(file, folder) or file)
    if not is_xacro(name):
        return _with_mesh_paths(regular_bytes(path, LARGEST_URDF), path, folder)
    regular_bytes(path, LARGEST_URDF)  # refuses what is no file before xacro opens it
    return _with_mesh_paths(_expanded(path, arguments), path, folder)


def mesh_path(name: str, folder: Path) -> Path:
    """The file that a mesh name means; raises a ConfigError if its package is not found."""
    if name.startswith("file://"):
        return Path(unquote(name.removeprefix("file://")))
    if PACKAGE.match(name) is None:
        return folder / name
    found = _package_file(name, folder)
    if found is None:
        raise package_missing(name, folder)
    return found


def add_package_paths(paths: Iterable[Path]) -> None:
    """Puts folders in front of the package path of this process and of those it starts."""
    own = [str(path.resolve()) for path in paths]
    before = os.environ.get(PATH_VARIABLE, "")
    os.environ[PATH_VARIABLE] = os.pathsep.join([*own, *filter(None, [before])])


def _with_mesh_paths(data: bytes, urdf: Path, folder: Path) -> bytes:
    """The text with every mesh name that leads to a file as a path from ``folder``."""
    if b"<mesh" not in data:
        return data

    def resolved(match: re.Match[str]) -> str:
        before, quote, name = match.groups()
        path = _mesh_beside(name, urdf.parent)
        if path is None or not path.is_file():
            return match.group()
        return f"{before}{quote}{os.path.relpath(path, folder or '.')}{quote}"

    return MESH.sub(resolved, data.decode("utf-8", "replace")).encode()


def with_mesh_names(data: bytes, urdf: str) -> bytes:
    """The text of a URDF with its mesh names from the folder that ``urdf`` is a name in.

    Names of packages and absolute ones stay: they lead to no file of that folder.
    """
    above = posixpath.dirname(urdf)

    def joined(match: re.Match[str]) -> str:
        before, quote, name = match.groups()
        if "://" in name or posixpath.isabs(name):
            return match.group()
        return f"{before}{quote}{posixpath.normpath(posixpath.join(above, name))}{quote}"

    return MESH.sub(joined, data.decode("utf-8", "replace")).encode()


def _mesh_beside(name: str, folder: Path) -> Path | None:
    if name.startswith("file://"):
        return Path(unquote(name.removeprefix("file://")))
    return _package_file(name, folder) if PACKAGE.match(name) else folder / name


# ── packages ────────────────────────────────────────────────────────────────────────────────────


def _package_file(name: str, near: Path) -> Path | None:
    match = PACKAGE.match(name)
    found = find_package(match.group(1), near) if match else None
    return found / match.group(2) if found and match else None


def find_package(package: str, near: Path) -> Path | None:
    """The folder of a package: in the folders above ``near``, then on the package path."""
    return _found(package, str(near.resolve()), tuple(map(str, package_path())))


@lru_cache(maxsize=256)
def _found(package: str, near: str, path: tuple[str, ...]) -> Path | None:
    for folder in (Path(near), *Path(near).parents)[:NEAR_LEVELS]:
        for place in (folder, folder / package, *_packages_in(folder)):
            if _is_package(place, package):
                return place
    for top in path:
        for root, folders, _ in os.walk(top):
            if _is_package(Path(root), package):
                return Path(root)
            deep = len(Path(root).parts) - len(Path(top).parts) >= MOST_LEVELS
            folders[:] = [] if deep else sorted(f for f in folders if not f.startswith("."))
    return None


def package_path() -> list[Path]:
    """Folders with packages: ROS_PACKAGE_PATH (``--package-path``), share folders of ROS 2."""
    own = os.environ.get(PATH_VARIABLE, "").split(os.pathsep)
    ament = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [Path(one) for one in own if one] + [Path(one) / "share" for one in ament if one]


def _packages_in(folder: Path) -> Iterator[Path]:
    try:
        yield from (file.parent for file in sorted(folder.glob("*/package.xml")))
    except OSError:
        return


def _is_package(folder: Path, package: str) -> bool:
    """Whether a folder has the name of the package, or a package.xml with that name."""
    if folder.name == package:
        return folder.is_dir()
    try:
        text = regular_bytes(folder / "package.xml", LARGEST_YAML)
    except OSError:
        return False
    named = re.search(rb"<name>\s*(\S+?)\s*</name>", text)
    return named is not None and named.group(1) == package.encode()


def package_missing(name: str, folder: Path) -> ConfigError:
    match = PACKAGE.match(name)
    package = match.group(1) if match else name
    looked = ", ".join([f"{folder.resolve()} and the folders above", *map(str, package_path())])
    return ConfigError(
        f"the package '{package}' was not found in {looked}",
        key="mesh",
        value=name,
        allowed=f"--package-path FOLDER, or {PATH_VARIABLE}, with a folder that contains {package}",
    )


# ── xacro ───────────────────────────────────────────────────────────────────────────────────────


def _expanded(path: Path, arguments: list[str]) -> bytes:
    """The URDF that a xacro file describes."""
    if find_spec("xacro") is None:
        raise ConfigError(
            f"a xacro file {needs('xacro')}; or a URDF, made elsewhere by xacro {path.name}",
            file=str(path),
        )
    return expanded(path, arguments)
