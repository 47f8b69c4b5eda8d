"""Add a wire from outside the package: CAN frames in UDP datagrams, for message faces.

A wire module has a `Config`, which reads the keys of a cell file and opens the wire, and
`SELECTED_BY`. Neither the configuration nor the live cell knows it. A datagram is an arbitration id
(two bytes) and up to eight bytes; each sender is a peer.

    [project.entry-points."understudy.wires"]
    can_udp = "my_package.can_udp"
"""

import asyncio
import socket
import tempfile
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct

from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError
from understudy.ports import UNLIMITED, WireMessage
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Port, Server

SELECTED_BY: dict[str, Any] = {}
LONGEST = 8
MOST_PEERS = 100

Address = tuple[str, int]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys of the wire in a cell file; port 0: any free one."""

    host: str = "127.0.0.1"
    port: Port = 0

    def placed(self, port: int | None, *, ephemeral: bool) -> "Config":
        free = 0 if ephemeral else self.port
        return msgspec.structs.replace(self, port=free if port is None else port)

    def listens_on(self) -> tuple[str, int] | None:
        return None  # not a TCP port

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return CanBus(endpoint, self, events)


class CanBus(asyncio.DatagramProtocol):
    """Receives datagrams for one endpoint; each sender is a connection."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config, self._events = config, events
        self._wanted: set[str] = set()
        self._peers: dict[Address, Connection] = {}

    async def start(self) -> str:
        self._wanted = set(self._events.addresses(self.endpoint))
        where = (self._config.host, self._config.port)
        loop = asyncio.get_running_loop()
        try:
            self.transport, _ = await loop.create_datagram_endpoint(lambda: self, where)
        except OSError as problem:
            raise ConfigError(f"{self.endpoint} cannot listen: {problem.strerror}") from None
        host, port = self.transport.get_extra_info("sockname")
        return f"udp://{host}:{port}"

    async def stop(self) -> None:
        self.transport.close()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        arbitration_id = data[:2].hex().lstrip("0")
        if len(data) > 2 + LONGEST or arbitration_id not in self._wanted:
            return  # as a controller's filter does
        if addr not in self._peers and len(self._peers) < MOST_PEERS:
            peer = f"{addr[0]}:{addr[1]}"
            self._peers[addr] = self._events.open(self.endpoint, Node(self, addr), peer)
        if addr in self._peers:
            self._events.receive(self._peers[addr], WireMessage(arbitration_id, data[2:]))


class Node:
    """`Sink` of one sender."""

    def __init__(self, bus: CanBus, address: Address) -> None:
        self._bus, self._address = bus, address

    def room(self) -> int:
        return UNLIMITED

    def send(self, message: WireMessage) -> None:
        frame = bytes.fromhex(message.address.zfill(4)) + message.payload
        self._bus.transport.sendto(frame, self._address)

    def read_more(self, wanted: bool) -> None: ...

    def close(self) -> None: ...


if __name__ == "__main__":
    face = import_module("add_a_message_face")  # the face that this wire carries
    with tempfile.TemporaryDirectory() as folder, StandIn(face.write_cell(folder)) as cell:
        host, port = cell.endpoints["bench.can_pose"].removeprefix("udp://").split(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as node:
            node.sendto(b"\x01\x00", (host, int(port)))
            print("over UDP:", node.recv(10))
            cell.ask("MOVE_ABS 100,200,300,0,0,0", "bench.text_tcp")
            frames = [node.recv(10) for _ in range(3)]
            print("heartbeats:", frames)
