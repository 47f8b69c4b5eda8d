"""`understudy cells`, `robots`, `faces`, `faults`, `doctor`: lists of what is installed."""

import platform
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy import __version__
from understudy.cli.warm import is_warm
from understudy.config import load_config, shipped_cells
from understudy.config.files import shipped_robots
from understudy.registry import kinds, module_of
from understudy.simulation.scenario import declared_faults
from understudy.units import DEG

PACKAGES = ("msgspec", "PyYAML", "typer", "rich", "numpy", "numba", "ruckig")
EXTRAS = {
    "mesh": ("trimesh", "meshes of robots and fixtures"),
    "ik": ("eaik", "inverse kinematics of arms without a spherical wrist"),
}


def cells() -> None:
    """The shipped cells."""
    table = _table("cell", "robots", "what it is")
    for name in shipped_cells():
        config = load_config(name)
        table.add_row(name, ", ".join(config.robots), config.head.description)
    Console().print(table)


def robots() -> None:
    """The shipped arms."""
    from understudy.space.kinematics.chain import chain
    from understudy.space.model.urdf import read

    table = _table("robot", "axes", "range (deg)", "fastest (deg/s)")
    for name, file in shipped_robots().items():
        arm = chain(read(file.read_text(encoding="utf-8"), file=name))
        bounds = zip(arm.lower / DEG, arm.upper / DEG, strict=True)
        ranges = ", ".join(f"{low:g}…{high:g}" for low, high in bounds)
        speeds = ", ".join(f"{speed:g}" for speed in arm.velocity / DEG)
        table.add_row(name, " ".join(arm.names), ranges, speeds)
    Console().print(table)


def faces() -> None:
    """The wire dialects."""
    table = _table("face", "what it speaks")
    for name in kinds("faces"):
        table.add_row(name, _first_sentence(module_of("faces", name).__doc__))
    Console().print(table)


def faults() -> None:
    """The faults of scenario rules and of the command `inject`."""
    table = _table("fault", "acts on", "how", "parameters", "what happens")
    for name, (fault, acts_on) in declared_faults().items():
        figures = ", ".join(f"{key} {figure.default:g}" for key, figure in fault.figures.items())
        table.add_row(name, ", ".join(acts_on), fault.how, figures, fault.doc)
    Console().print(table)


def doctor() -> None:
    """What is installed here, what is missing, and how to install it."""
    table = _table("", "what", "state", "how to get it")
    for ok, what, state, cure in _findings():
        mark = "[green]ok[/green]" if ok else "[yellow]--[/yellow]"
        table.add_row(mark, escape(what), escape(state), "" if ok else escape(cure))
    Console().print(table)


def _findings() -> list[tuple[bool, str, str, str]]:
    fits = sys.version_info >= (3, 11)
    found = [
        (fits, "python", platform.python_version(), "Python 3.11 or newer"),
        (True, "understudy", __version__, ""),
    ]
    found += [_package(name) for name in PACKAGES]
    if find_spec("numba") is not None:
        found.append(_kernels())
    for extra, (module, purpose) in EXTRAS.items():
        there = find_spec(module) is not None
        state = "installed" if there else "not installed"
        found.append((there, f"{purpose} ({module})", state, f"pip install 'understudy[{extra}]'"))
    config = load_config("default")
    for endpoint, wire in {"control": config.head.control, **config.endpoints()}.items():
        if (place := wire.listens_on()) is not None:
            free = _is_free(*place)
            state = "free" if free else "taken"
            what = f"port {place[1]} ({endpoint})"
            found.append((free, what, state, "end what listens there, or run with --ephemeral"))
    return found


def _kernels() -> tuple[bool, str, str, str]:
    filled = is_warm()
    return filled, "kernel cache", "filled" if filled else "empty", "understudy warm"


def _package(name: str) -> tuple[bool, str, str, str]:
    try:
        return True, name, version(name), ""
    except PackageNotFoundError:
        return False, name, "not installed", "pip install understudy"


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _table(*columns: str) -> Table:
    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    return table


def _first_sentence(doc: str | None) -> str:
    return (doc or "").partition("\n")[0]
