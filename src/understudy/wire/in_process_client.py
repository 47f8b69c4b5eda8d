"""A peer in the same process as its cell, without a socket."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from understudy.ports import CONFIRMED, UNLIMITED, WireMessage
from understudy.wire.message_faults import Data

if TYPE_CHECKING:
    from understudy.wire.connection import Connection
    from understudy.wire.exchange import InProcessCell


class Client:
    """A peer in the same process; `Sink` of its own connection."""

    def __init__(self, cell: "InProcessCell", endpoint: str, peer: str = "") -> None:
        self._cell = cell
        self._received = bytearray()
        self._messages: list[WireMessage] = []
        self.connected = True
        self.count = 0
        self._connection: Connection = cell.exchange.open(endpoint, self, peer)

    @property
    def peer(self) -> str:
        return self._connection.peer

    def say(self, data: Data) -> None:
        """Sends bytes, or a message to a message face."""
        self._cell.exchange.receive(self._connection, data)

    def say_many(self, messages: Sequence[WireMessage]) -> None:
        """Sends messages that arrive together."""
        self._cell.exchange.receive_many(self._connection, messages)

    def received(self) -> bytes:
        """Bytes received since the last call."""
        data = bytes(self._received)
        self._received.clear()
        return data

    def messages(self) -> list[WireMessage]:
        """Messages received since the last call."""
        messages, self._messages = self._messages, []
        return messages

    def confirm(self) -> None:
        """Removes the messages received since the last call, and confirms those that need it, as a
        broker does."""
        due = [WireMessage(CONFIRMED, b"", m.reply_to) for m in self.messages() if m.reply_to]
        if due:
            self.say_many(due)

    def ask(self, data: bytes) -> bytes:
        """Sends bytes, runs the cell while an answer is owed, and returns what was received."""
        self.say(data)
        self._cell.run_while(self._connection.session.owed)
        return self.received()

    def end(self) -> None:
        """Sends nothing more."""
        self._cell.exchange.eof(self._connection)

    def leave(self) -> None:
        """Closes the connection."""
        self.connected = False
        self._cell.exchange.closed(self._connection)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: Data) -> None:
        if isinstance(data, WireMessage):
            self._messages.append(data)
            self.count += len(data.payload)
        else:
            self._received += data
            self.count += len(data)

    def send_many(self, messages: Sequence[WireMessage]) -> None:
        for message in messages:
            self.send(message)

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        self.connected = False
