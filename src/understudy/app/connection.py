"""A cell that runs, as a Python object of another process.

    with understudy.connect() as cell:    # the only one that runs, or its name
        cell.do("send_gcode", robot="g60", line="G1 X400 F1000")
        cell.forward(seconds=3)
        print(cell.now, cell.robots()["g60"].state)

The names are those of `StandIn`, which the fixtures of the pytest plugin give. `AsyncConnection`
has the same ones as coroutines.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, convert

from understudy.agenda import Rate
from understudy.app.control_client import request
from understudy.app.ready_file import Ready, cell_elsewhere, one_cell
from understudy.errors import ConfigError, unknown
from understudy.wire.interface import host_and_port

if TYPE_CHECKING:
    from understudy.operator.events import Event

T = TypeVar("T")
TIMEOUT_SECONDS = 60.0


class RobotReading(Struct, frozen=True):
    """A robot in short. `mode`: SIMULATION or REAL. `error`: what its controller reports."""

    name: str
    kind: str
    mode: str
    state: str
    enabled: bool
    moving: bool
    error: str = ""
    addresses: dict[str, str] = {}


class PartReading(Struct, frozen=True, rename={"class_name": "class"}):
    """A part as it truly is, in the cell. `holder`: the robot that holds it, or empty."""

    name: str
    class_name: str
    state: str
    holder: str
    position_mm: tuple[float, float, float]
    rotation_deg: tuple[float, float, float]
    size_mm: tuple[float, float, float]
    mass_kg: float


class CellTime(Struct, frozen=True):
    """Simulated time, and how fast it runs: times real time, `max` or `step`."""

    now_s: float
    now_ns: int
    rate: Rate
    paused: bool = False


class Connection:
    """A running cell; every call waits for its answer, up to ``timeout_s``.

    A command that the cell refuses is a RuntimeError with its reason, a cell that does not answer a
    ConfigError.
    """

    def __init__(self, ready: Ready, *, timeout_s: float = TIMEOUT_SECONDS) -> None:
        self.ready = ready
        self.timeout_s = timeout_s

    def __enter__(self) -> "Connection":
        self.time()  # an address that is wrong is said here
        return self

    def __exit__(self, *exception: object) -> None:
        """The cell runs on."""

    @property
    def endpoints(self) -> Mapping[str, str]:
        return self.ready.endpoints

    def address(self, endpoint: str) -> tuple[str, int]:
        """Host and port of an endpoint, for a client of your own."""
        if endpoint not in self.endpoints:
            raise unknown("endpoint", endpoint, self.endpoints)
        return host_and_port(self.endpoints[endpoint])

    def do(self, command: str, **parameters: Any) -> Any:
        """Runs a command or query of the cell; its answer as JSON values."""
        reply = request(self.ready, {**parameters, "do": command}, timeout_s=self.timeout_s)
        if not reply.get("ok"):
            raise RuntimeError(str(reply.get("error") or "no answer"))
        return reply.get("result")

    def time(self) -> CellTime:
        return convert(self.do("now"), CellTime)

    @property
    def now(self) -> float:
        """Simulated seconds since the cell started."""
        return self.time().now_s

    def forward(self, seconds: float) -> None:
        """Lets simulated seconds pass at once."""
        self.do("advance", seconds=seconds)

    def inject(self, fault: str, on: str = "", **parameters: float) -> None:
        """Injects a fault; into the cell's first robot if none is named."""
        self.do("inject", fault=fault, on=on or next(iter(self.robots())), parameters=parameters)

    def robots(self) -> dict[str, RobotReading]:
        """The robots by name, in the order of the cell file."""
        return _by_name(self.do("robots")["robots"], RobotReading)

    def parts(self) -> dict[str, PartReading]:
        """The parts of the cell by name, as they truly are."""
        return _by_name(self.do("parts")["parts"], PartReading)

    def events(self, since: int = 0) -> "list[Event]":
        """Alarms, collisions, faults and ends of programs after this number; the last are kept."""
        from understudy.operator.events import Event

        return convert(self.do("events", since=since)["events"], list[Event])

    def snapshot(self) -> dict[str, Any]:
        """The state of the cell, for `restore`."""
        found: dict[str, Any] = self.do("snapshot")["snapshot"]
        return found

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        self.do("restore", snapshot=snapshot)


def _by_name(rows: list[Any], kind: type[T]) -> dict[str, T]:
    return {row["name"]: convert(row, kind) for row in rows}


class AsyncConnection:
    """`Connection` for programs on an event loop: the same calls, each to be awaited."""

    def __init__(self, cell: Connection) -> None:
        self._cell = cell

    async def __aenter__(self) -> "AsyncConnection":
        await self.time()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """The cell runs on."""

    @property
    def endpoints(self) -> Mapping[str, str]:
        return self._cell.endpoints

    def address(self, endpoint: str) -> tuple[str, int]:
        return self._cell.address(endpoint)

    async def do(self, command: str, **parameters: Any) -> Any:
        return await asyncio.to_thread(self._cell.do, command, **parameters)

    async def time(self) -> CellTime:
        return await asyncio.to_thread(self._cell.time)

    async def forward(self, seconds: float) -> None:
        await asyncio.to_thread(self._cell.forward, seconds)

    async def inject(self, fault: str, on: str = "", **parameters: float) -> None:
        await asyncio.to_thread(self._cell.inject, fault, on, **parameters)

    async def robots(self) -> dict[str, RobotReading]:
        return await asyncio.to_thread(self._cell.robots)

    async def parts(self) -> dict[str, PartReading]:
        return await asyncio.to_thread(self._cell.parts)

    async def events(self, since: int = 0) -> "list[Event]":
        return await asyncio.to_thread(self._cell.events, since)

    async def snapshot(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._cell.snapshot)

    async def restore(self, snapshot: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self._cell.restore, snapshot)


def connect(
    running: str = "",
    *,
    ready_file: Path | str | None = None,
    to: str = "",
    token: str = "",
    timeout_s: float = TIMEOUT_SECONDS,
) -> Connection:
    """A connection to a cell that runs.

    ``running``: its name or process id; the only one that runs if nothing is given. ``ready_file``:
    as written by `understudy run --ready-file`. ``to``: HOST:PORT of the control endpoint of a cell
    on another machine, with its ``token`` (default: the variable UNDERSTUDY_TOKEN).
    """
    if sum(map(bool, (running, ready_file, to))) > 1:
        raise ConfigError("connect: several cells", allowed="one of running, ready_file, to")
    if to:
        return Connection(cell_elsewhere(to, token), timeout_s=timeout_s)
    ready = one_cell(running, Path(ready_file) if ready_file else None)
    return Connection(ready, timeout_s=timeout_s)


def connect_async(running: str = "", **options: Any) -> AsyncConnection:
    """`connect` for programs on an event loop; the same options."""
    return AsyncConnection(connect(running, **options))
