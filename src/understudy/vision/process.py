"""The loop of the vision process: a REP socket of ZeroMQ around `VisionServer`.

One request at a time; each gets a reply. A message beyond MAXMSGSIZE, or bytes that are not ZMTP,
cost their sender its connection and nothing else.
"""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

import zmq

from understudy.errors import ConfigError

LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes that are read at all; a request may have far fewer, a longer one gets an error reply."""
MOST_WAITING = 100
"""Requests of one client that wait."""
SEND_MS = 1000
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Answer = Callable[[Sequence[bytes]], bytes]
Socket = zmq.Socket[bytes]


class Ended(BaseException):
    """A signal asks the process to end; no handler of errors stops it on its way."""


@contextmanager
def ended_by_signals() -> Iterator[int]:
    """A signal ends what runs inside, at once. The file that it gives can be read when a signal has
    come: one that comes right before a poll, or to another thread, does not interrupt the poll."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # a second one does not disturb the clean end
        raise Ended

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    former = {each: signal.signal(each, end) for each in ENDING}
    try:
        yield reader
    except Ended:
        pass
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


class Place(NamedTuple):
    """Where the process listens. `follow`: the end of this open file ends it. `signals`: the file
    of `ended_by_signals`."""

    host: str = "127.0.0.1"
    port: int = 5570
    follow: int | None = None
    signals: int | None = None


def serve(answer: Answer, place: Place, ready: Callable[[str], None]) -> None:
    """Answers requests until it is interrupted. ``ready``: called with the address when it
    listens."""
    follow, signals = place.follow, place.signals
    context: zmq.Context[Socket] = zmq.Context()
    try:
        socket = _listening(context, place.host, place.port)
        ready(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        for file in (follow, signals):
            if file is not None:
                poller.register(file, zmq.POLLIN)
        while True:
            events = dict(poller.poll())
            if signals is not None and signals in events:
                os.read(signals, 4096)  # the handler of the signal is called next
            if follow is not None and follow in events and not os.read(follow, 4096):
                return
            if socket in events:
                _answer_one(socket, answer)
    finally:
        context.destroy(linger=0)


def _answer_one(socket: Socket, answer: Answer) -> None:
    try:
        parts = socket.recv_multipart(zmq.NOBLOCK)
    except zmq.Again:
        return  # the client has gone
    try:
        socket.send(answer(parts))
    except zmq.Again:
        return


def _listening(context: zmq.Context[Socket], host: str, port: int) -> Socket:
    socket: Socket = context.socket(zmq.REP)
    for option, value in (
        (zmq.LINGER, 0),
        (zmq.MAXMSGSIZE, LARGEST_MESSAGE),
        (zmq.RCVHWM, MOST_WAITING),
        (zmq.SNDTIMEO, SEND_MS),
        # With a domain, peers of ZMTP 1 and 2 are refused: a web page could send these by HTTP.
        (zmq.ZAP_DOMAIN, b"vision"),
        (zmq.IPV6, int(":" in host)),
    ):
        socket.setsockopt(option, value)
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    try:
        socket.bind(f"tcp://{where}")
    except zmq.ZMQError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is taken, the vision process cannot listen on {where}; end what "
                "listens there, or choose another port: --port N of `understudy vision`, "
                "camera_address of the section `vision`"
            ) from None
        raise ConfigError(f"the vision process cannot listen on {where}: {problem}") from None
    return socket
