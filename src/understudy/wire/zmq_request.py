"""The asking side of ZeroMQ request and reply: one question at a time, with a deadline.

`ZmqRequester` is a REQ socket as the guide of ZeroMQ builds a reliable client, without its waits:

- IMMEDIATE: a question goes to a connection that is up, never into a queue for a server that may
  come later. Without a server a question fails after `CONNECT_SECONDS`.
- REQ_RELAXED and REQ_CORRELATE: after a lost question the next one can follow on the same socket,
  and a late answer to the lost one is dropped.
- The monitor of the socket reports a connection that breaks: a server that was killed is noticed
  at once and not at the deadline.
- RECONNECT_IVL: a server that was started again is found within milliseconds.

A question is never sent twice: whether that is allowed is known only to who asks.

`QuestionWire` carries the questions of a part of the cell to another process, and the answers back.
"""

import asyncio
import contextlib
import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from understudy.errors import ConfigError, NotInstalledError, needs
from understudy.ports.requests import AsksProcess, Question

if TYPE_CHECKING:
    import zmq

    from understudy.wire.pump import Pump


CONNECT_SECONDS = 0.5
"""Wall time that a question waits for a connection."""
RECONNECT_MS = 10
LOOK_MS = 50
"""Time between two looks whether the answer is still wanted."""
LARGEST_ANSWER = 256 * 1024 * 1024 + 4096
"""Bytes of one part of an answer: a picture and its depth are one part each."""
MOST_PARTS = 8
_ADDRESS = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]*]+):([0-9]{1,5})")


class NoReplyError(Exception):
    """A question without an answer, and why."""


def check_address(address: str) -> str:
    """The address, if a client can connect to it; else a `ConfigError`."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) < 65536:
        raise ConfigError("not the address of a server", value=address, allowed="tcp://HOST:PORT")
    return address


class ZmqRequester:
    """Asks one server; used by one thread."""

    def __init__(self, address: str) -> None:
        self.address = check_address(address)
        try:
            import zmq
        except ImportError:
            raise NotInstalledError(needs("pyzmq")) from None
        self._zmq = zmq
        self._socket: zmq.Socket[bytes] | None = None
        self._monitor: Any = None
        self._wanted: Callable[[], bool] = lambda: True

    def ask(
        self, parts: Sequence[bytes], seconds: float, wanted: Callable[[], bool] = lambda: True
    ) -> list[bytes]:
        """The parts of the answer, within this wall time; else a `NoReplyError`.

        ``wanted`` is asked every `LOOK_MS`; False ends the wait.
        """
        zmq, self._wanted = self._zmq, wanted
        deadline = time.monotonic() + seconds
        try:
            socket = self._send(parts, min(deadline, time.monotonic() + CONNECT_SECONDS))
            while (answer := self._received(socket, deadline)) is None:
                self._check_waiting(deadline, f"no answer from {self.address} in {seconds:g} s")
        except zmq.ZMQError as problem:
            self.close()
            raise NoReplyError(f"{self.address}: {problem}") from None
        if len(answer) > MOST_PARTS:
            raise NoReplyError(f"{self.address} has sent {len(answer)} parts, not {MOST_PARTS}")
        return answer

    def close(self) -> None:
        """Closes the connection; the next question makes a new one."""
        if self._socket is not None:
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._socket.close(linger=0)
            self._socket = None

    # ── inside ──

    def _connected(self) -> "zmq.Socket[bytes]":
        """The socket; made for the first question, because it belongs to the thread that asks."""
        if self._socket is not None:
            return self._socket
        import zmq

        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.IMMEDIATE, 1),
            (zmq.REQ_RELAXED, 1),
            (zmq.REQ_CORRELATE, 1),
            (zmq.RECONNECT_IVL, RECONNECT_MS),
            (zmq.SNDTIMEO, round(CONNECT_SECONDS * 1000)),
            (zmq.MAXMSGSIZE, LARGEST_ANSWER),
            (zmq.IPV6, 1),
        ):
            socket.setsockopt(option, value)
        self._monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.connect(self.address)
        self._socket = socket
        return socket

    def _send(self, parts: Sequence[bytes], until: float) -> "zmq.Socket[bytes]":
        """The socket that has sent the question. ZeroMQ reports that a connection has broken before
        its socket stops to accept messages for it: such a socket is not used again, else the
        question would be lost without a report."""
        zmq = self._zmq
        while True:
            socket = self._connected()
            ready = self._poll(socket, zmq.POLLOUT, until)
            if self._connection_lost():
                self.close()
            elif ready:
                socket.send_multipart(parts, zmq.NOBLOCK)
                return socket
            self._check_waiting(until, f"nothing answers at {self.address}")

    def _received(self, socket: "zmq.Socket[bytes]", until: float) -> list[bytes] | None:
        """The answer; None if there is none yet. A socket with a late answer to another question is
        ready too, but that answer is dropped."""
        zmq = self._zmq
        ready = self._poll(socket, zmq.POLLIN, until)
        lost = not ready and self._connection_lost()
        try:
            return socket.recv_multipart(zmq.NOBLOCK) if ready or lost else None
        except zmq.Again:
            if not lost:
                return None
        self.close()
        raise NoReplyError(f"{self.address} has closed the connection")

    def _poll(self, socket: "zmq.Socket[bytes]", event: int, until: float) -> bool:
        """Waits for the socket or its monitor, at most `LOOK_MS`; whether the socket is ready."""
        left = max(0, round((until - time.monotonic()) * 1000))
        poller = self._zmq.Poller()
        poller.register(socket, event)
        if event == self._zmq.POLLIN:
            poller.register(self._monitor, event)
        return any(ready is socket for ready, _ in poller.poll(min(left, LOOK_MS)))

    def _connection_lost(self) -> bool:
        """Whether the connection has broken since the last call."""
        lost = False
        while self._monitor.poll(0):
            self._monitor.recv_multipart()
            lost = True
        return lost

    def _check_waiting(self, until: float, reason: str) -> None:
        if not self._wanted():
            raise NoReplyError("the answer is not wanted any more")
        if time.monotonic() >= until:
            raise NoReplyError(reason)


# ── questions of a part ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AskedProcess:
    """A process that is asked. `number`: of the process that answers at the address at this
    instant, None while it does not run or is not ready.

    While our process is dead another one may take its port: an answer counts only if the process
    that answers there was ours before the question and still is after the answer.
    """

    address: str
    number: Callable[[], int | None]


class QuestionWire:
    """One part and the process that it asks; made on the event loop of the cell.

    A worker thread asks, because a question may take long and the event loop serves the clients of
    the cell meanwhile: the process that is asked may be one of them. In lock-step time stands from
    the instant of the question (`Pump.asked`).
    """

    def __init__(self, part: AsksProcess, pump: "Pump") -> None:
        self._part = part
        self._pump = pump
        self._loop = asyncio.get_running_loop()
        self._out: Question | None = None
        self._waiting: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._requester = ZmqRequester(part.where)
        self._process: AskedProcess | None = None
        self._thread = threading.Thread(target=self._run, name=f"asks {part.where}", daemon=True)
        part.on_question(self._question_changed)

    def start(self) -> None:
        self._thread.start()
        self._question_changed()

    def ask(self, process: AskedProcess) -> None:
        """Asks this process from the next question on, and nothing else at its address."""
        check_address(process.address)
        self._process = process

    async def stop(self) -> None:
        """Ends the thread, also in the middle of a question."""
        self._out = None
        self._waiting.put(None)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    # ── on the event loop ──

    def _question_changed(self) -> None:
        question, before = self._part.question(), self._out
        if question == before:
            return
        self._out = question
        if question is not None:
            self._pump.asked()
            self._waiting.put(question)
        if before is not None:
            self._pump.settled()

    def _ended(self, question: Question, answer: bytes | None, reason: str) -> None:
        if question is not self._out:
            return  # the part has asked another one meanwhile, or none
        if answer is None:
            self._pump.act(lambda now: self._part.unanswered(question.number, reason, now))
        else:
            self._pump.act(lambda now: self._part.answered(question.number, answer, now))

    # ── in the thread ──

    def _run(self) -> None:
        while (question := self._waiting.get()) is not None:
            answer, reason = self._ask(question)
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._ended, question, answer, reason)
        self._requester.close()

    def _ask(self, question: Question) -> tuple[bytes | None, str]:
        def wanted() -> bool:
            return self._out is question

        if not wanted():
            return None, "not asked any more"
        process = self._process
        if process is not None and process.address != self._requester.address:
            self._requester.close()
            self._requester = ZmqRequester(process.address)
        number = None if process is None else self._running(process, wanted)
        if process is not None and number is None:
            return None, f"the process of {process.address} does not run"
        try:
            parts = self._requester.ask([question.payload], question.seconds, wanted)
        except NoReplyError as problem:
            return None, str(problem)
        if process is not None and process.number() != number:
            self._requester.close()
            return None, f"the process of {process.address} has ended, something else answers there"
        return b"".join(parts), ""

    def _running(self, process: AskedProcess, wanted: Callable[[], bool]) -> int | None:
        """The number of the process; waited for as long as for a connection."""
        until = time.monotonic() + CONNECT_SECONDS
        while (number := process.number()) is None and wanted() and time.monotonic() < until:
            time.sleep(RECONNECT_MS / 1000)
        return number
