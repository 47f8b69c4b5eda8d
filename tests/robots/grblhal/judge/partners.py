"""The two partners of a comparison: the real firmware as a PC program, and a cell of ours."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.robots.grblhal.face.sessions import CellWire, Wire

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.units import nanoseconds
from understudy.wire.exchange import Client, InProcessCell

BINARY = "UNDERSTUDY_GRBLHAL_SIM"
HERE = Path(__file__).parent
CELL = HERE / "plain_machine.yaml"
"""The machine that the firmware's own PC program is: six axes, no inputs and outputs."""
CONNECT_SECONDS = 10.0
KEY_SECONDS = 0.2
"""Wall time in which the program reads a key."""
FASTER = 100
"""The program runs as fast as it can, many hundred times faster than real time."""
TIME_BYTE = b"\xbf"
"""A byte without a meaning, for which a firmware in lock step lets 6 s pass: `lock_step.h`."""
DEADLINE_SECONDS = 10.0
"""Wall time after which the firmware is given up; nothing that is compared depends on it."""


class FirmwareHangsError(Exception):
    """The firmware does not answer any more; some of its own faults do this."""


class FirmwareWire(Wire):
    """A client of the firmware; its time is wall time, its waits are short."""

    def __init__(self, connection: socket.socket, keys: IO[bytes]) -> None:
        super().__init__()
        self._socket = connection
        self._keys = keys

    @property
    def now(self) -> float:
        return time.monotonic()

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def toggle(self, key: bytes) -> None:
        """Toggle an input; the program reads its keys while it runs."""
        self._keys.write(key)
        self._keys.flush()
        time.sleep(KEY_SECONDS)

    def run(self, seconds: float) -> None:
        while self._receive(seconds / FASTER):
            pass

    def pass_time(self, seconds: float) -> None:
        self.write(TIME_BYTE)

    def _wait(self, end: float) -> bool:
        """Waits longer than was asked for: on a busy machine wall time says nothing."""
        if not self._receive(DEADLINE_SECONDS):
            raise FirmwareHangsError
        return True

    def _receive(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return False
        if not data:
            raise FirmwareHangsError
        self._received(data)
        return True


class MachineWire(CellWire):
    """A client of our machine."""

    def __init__(self, cell: InProcessCell, client: Client, machine: Any) -> None:
        super().__init__(cell, client)
        self._machine = machine
        self._stuck = False
        self._before: Any = None

    def remember(self) -> bool:
        self._before = self._cell.snapshot()
        return True

    def begin_again(self) -> None:
        self._cell.restore(self._before)
        self._cell.transcript.clear()
        self._rest, self._lines = b"", []

    def toggle(self, key: bytes) -> None:
        """Toggle an input: `p` is the probe."""
        assert key == b"p"
        self._stuck = not self._stuck
        fault = "probe_stuck" if self._stuck else "sensors_repaired"
        self._machine.inject(fault, {}, nanoseconds(self.now))


def binary() -> Path:
    """The firmware that the user built."""
    path = Path(os.environ.get(BINARY, ""))
    if not path.is_file():
        raise SystemExit(
            f"set {BINARY} to a built grblHAL_sim; docs/robots/grblhal.md shows how to build it"
        )
    return path.resolve()


def lock_step_binary() -> Path:
    """The firmware, built with `lock_step.h`: its time passes only with bytes."""
    path = binary()
    if b"lock_step_granted" not in path.read_bytes():
        raise SystemExit(
            f"{path} is not built in lock step: docs/robots/grblhal.md shows the flags of --learn"
        )
    return path


@contextmanager
def firmware(path: Path) -> Iterator[Wire]:
    """A firmware with empty memory that has just started."""
    with tempfile.TemporaryDirectory() as folder, _free_port() as port:
        command = [str(path), "-n", "-t", "0", "-p", str(port)]
        nothing = [arg for flag in "gbs" for arg in (f"-{flag}", os.devnull)]
        process = subprocess.Popen(
            [*command, *nothing],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with _connection(port) as connection:
                assert process.stdin is not None
                yield FirmwareWire(connection, process.stdin)
        finally:
            process.kill()
            process.wait()


@contextmanager
def our_machine() -> Iterator[Wire]:
    built = build_cell(load_config(str(CELL)))
    cell = InProcessCell(built)
    yield MachineWire(cell, cell.connect("machine.grblhal"), built.components["machine"])


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    yield port


def _connection(port: int) -> socket.socket:
    end = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
