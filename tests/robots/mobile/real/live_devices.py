"""Virtual devices at real connections: a socket, a pseudo-terminal, a CAN bus over multicast."""

import contextlib
import os
import secrets
import select
import socketserver
import threading
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import canopen
from tests.robots.mobile.real.virtual_device import LineDevice, ModbusDevice, VirtualDevice
from tests.robots.mobile.real.virtual_drive import VirtualDrive

ADDRESSES = (0, 100, 200)
NODES = (1, 2, 3)
COUNTS = 20_000
PERIOD_SECONDS = 0.005
JOIN_SECONDS = 60


class LiveDevice(NamedTuple):
    """``drivers``: of the three motors, as in the robot's file. ``speed``: that of the first motor
    now, in m/s."""

    drivers: list[dict[str, Any]]
    speed: Callable[[], float]


@contextlib.contextmanager
def _repeated(work: Callable[[], None]) -> Iterator[None]:
    """Calls ``work`` again and again in a thread."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(JOIN_SECONDS)


class Program:
    """A device whose program runs while its clients ask."""

    def __init__(self, device: VirtualDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._last = time.monotonic()

    def answer(self, data: bytes) -> bytes:
        with self._lock:
            now = time.monotonic()
            self._device.run(max(now - self._last, 1e-3))
            self._last = now
            return self._device.answer(data)

    def speed(self) -> float:
        with self._lock:
            return self._device.number(ADDRESSES[0] + 3)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    program: Program


class Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        while data := self.request.recv(4096):
            self.request.sendall(self.server.program.answer(data))


@contextlib.contextmanager
def plc() -> Iterator[LiveDevice]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.program = Program(ModbusDevice(ADDRESSES))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        config = {"host": "127.0.0.1", "port": server.server_address[1]}
        yield LiveDevice(_at_registers("PLC", config), server.program.speed)
        server.shutdown()
        thread.join(JOIN_SECONDS)


@contextlib.contextmanager
def serial_port() -> Iterator[LiveDevice]:
    """The device holds its own end open, so that the port stays when the driver closes it."""
    master, slave = os.openpty()
    tty.setraw(slave)
    program = Program(LineDevice(ADDRESSES))

    def serve() -> None:
        if select.select([master], [], [], 0.05)[0]:
            os.write(master, program.answer(os.read(master, 4096)))

    try:
        with _repeated(serve):
            drivers = _at_registers("SERIAL", {"device": os.ttyname(slave)})
            yield LiveDevice(drivers, program.speed)
    finally:
        os.close(master)
        os.close(slave)


def _at_registers(kind: str, config: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": kind, "config": {**config, "address": at}} for at in ADDRESSES]


@contextlib.contextmanager
def can_bus() -> Iterator[LiveDevice]:
    """Drives that the library `canopen` serves; another process can reach them."""
    group = f"239.7.{secrets.randbelow(256)}.{secrets.randbelow(256)}"
    network = canopen.Network()
    network.connect(interface="udp_multicast", channel=group)
    drives = [VirtualDrive(network, node) for node in NODES]
    for drive in drives:
        drive.boot()
    last = time.monotonic()

    def move() -> None:
        nonlocal last
        time.sleep(PERIOD_SECONDS)
        now = time.monotonic()
        for drive in drives:
            drive.run(now - last)
        last = now

    config = {"interface": "udp_multicast", "channel": group, "countsPerUnit": COUNTS}
    try:
        with _repeated(move):
            drivers = [{"type": "CANOPEN", "config": {**config, "node": node}} for node in NODES]
            yield LiveDevice(drivers, lambda: drives[0].velocity / COUNTS)
    finally:
        for drive in drives:
            drive.node.nmt.stop_heartbeat()
        network.disconnect()


LIVE = {"PLC": plc, "SERIAL": serial_port, "CANOPEN": can_bus}
