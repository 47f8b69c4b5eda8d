"""`python -m understudy.config.xacro_process SECONDS FILE [name:=value …]`: xacro to URDF.

A xacro file holds expressions and macros that can compute without end, so it is expanded in a
process of its own with limits of time and memory. The URDF goes to stdout; a problem goes there as
JSON, with exit code 1.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.config.limits import LARGEST_URDF, LONGEST_XACRO_SECONDS, MOST_XACRO_MEMORY
from understudy.errors import ConfigError

LONGEST_REASON = 300
"""Characters of a reason that xacro gives."""
FAILED = 1


def expanded(path: Path, arguments: list[str]) -> bytes:
    """The URDF that a xacro file describes; raises a ConfigError."""
    command = [sys.executable, "-m", __name__, str(LONGEST_XACRO_SECONDS), str(path), *arguments]
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


END = b"\n<!-- end -->\n"
"""Ends a whole URDF: a process that was killed has not written it."""


def main(seconds: str, file: str, *arguments: str) -> int:
    _limit(int(seconds))
    out = sys.stdout.buffer
    try:
        mappings = dict(argument.partition(":=")[::2] for argument in arguments)
        out.write(_urdf(Path(file), mappings) + END)
    except ConfigError as problem:
        out.write(json.dumps({"problem": problem.problem, "allowed": problem.allowed}).encode())
        return FAILED
    return 0


def _limit(seconds: int) -> None:
    """Limits processor time, which does not depend on the load of the machine, and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_XACRO_MEMORY, MOST_XACRO_MEMORY))


def _urdf(path: Path, mappings: dict[str, str]) -> bytes:
    import xacro

    with _packages_found_near(path.parent):
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


@contextmanager
def _packages_found_near(folder: Path) -> Iterator[None]:
    """xacro finds packages as meshes are found; its own way needs an installed ROS."""
    from xacro import substitution_args

    from understudy.config.model_files import find_package, package_missing

    def find(package: str) -> str:
        found = find_package(package, folder)
        if found is None:
            raise package_missing(f"package://{package}/", folder)
        return str(found)

    own: Any = substitution_args._eval_find
    substitution_args._eval_find = substitution_args._eval_dict["find"] = find
    try:
        yield
    finally:
        substitution_args._eval_find = substitution_args._eval_dict["find"] = own


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
