"""Robot descriptions and meshes on disk: URDF, xacro, and names as ROS writes them.

A mesh in a URDF is named ``package://PACKAGE/path``, ``file:///path`` or by a path beside the URDF.
`read_urdf` replaces such names by paths from the folder of the cell file, so that the rooms below
read every file by one kind of name. A name that leads to no file stays as it is, and reading it
later reports where it was looked for.

`python -m understudy.config.model_files SECONDS FILE [name:=value …]` is xacro to URDF: a xacro
file holds expressions and macros that can compute without end, so it is expanded in a process of
its own with limits of time and memory. The URDF goes to stdout; a problem goes there as JSON, with
exit code 1.
"""

import json
import os
import posixpath
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from understudy.config.limits import (
    LARGEST_URDF,
    LARGEST_YAML,
    LONGEST_XACRO_SECONDS,
    MOST_XACRO_MEMORY,
)
from understudy.config.outside_files import regular_bytes
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


LONGEST_REASON = 300
"""Characters of a reason that xacro gives."""
FAILED = 1
END = b"\n<!-- end -->\n"
"""Ends a whole URDF: a process that was killed has not written it."""


def _expanded(path: Path, arguments: list[str]) -> bytes:
    """The URDF that a xacro file describes."""
    if find_spec("xacro") is None:
        raise ConfigError(
            f"a xacro file {needs('xacro')}; or a URDF, made elsewhere by xacro {path.name}",
            file=str(path),
        )
    command = [sys.executable, "-m", "understudy.config.model_files"]
    command += [str(LONGEST_XACRO_SECONDS), str(path), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            output = process.stdout.read(LARGEST_URDF + 1)
        finally:
            process.kill()
    if len(output) > LARGEST_URDF:
        problem = f"xacro makes more than {LARGEST_URDF} bytes of this file"
        raise ConfigError(problem, file=str(path))
    if process.returncode == FAILED and output.startswith(b"{"):
        raise ConfigError(**json.loads(output), file=str(path))
    if not output.endswith(END):
        raise ConfigError(
            "xacro does not come to an end with this file",
            file=str(path),
            allowed=f"{LONGEST_XACRO_SECONDS} s of processor time",
        )
    return output.removesuffix(END)


def main(seconds: str, file: str, *arguments: str) -> int:
    # Processor time does not depend on the load of the machine.
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_XACRO_MEMORY, MOST_XACRO_MEMORY))
    out = sys.stdout.buffer
    try:
        mappings = dict(argument.partition(":=")[::2] for argument in arguments)
        out.write(_urdf(Path(file), mappings) + END)
    except ConfigError as problem:
        out.write(json.dumps({"problem": problem.problem, "allowed": problem.allowed}).encode())
        return FAILED
    return 0


def _urdf(path: Path, mappings: dict[str, str]) -> bytes:
    import xacro
    from xacro import substitution_args

    def find(package: str) -> str:
        found = find_package(package, path.parent)
        if found is None:
            raise package_missing(f"package://{package}/", path.parent)
        return str(found)

    # Packages are found as meshes are: xacro's own way needs an installed ROS.
    own: Any = substitution_args
    own._eval_find = own._eval_dict["find"] = find
    try:
        text: str = xacro.process_file(str(path), mappings=mappings).toxml()
    except RecursionError:
        reason = "macros or files that include themselves"
    except Exception as problem:  # noqa: BLE001 - macros may raise anything
        reason = (str(problem) or type(problem).__name__)[:LONGEST_REASON]
        if isinstance(getattr(problem, "exc", problem), MemoryError):  # xacro wraps it
            reason = f"it takes more than {MOST_XACRO_MEMORY // 2**20} MB"
    else:
        return text.encode()
    raise ConfigError(f"xacro cannot expand this file: {reason}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
