"""Client of the HMI link: commands and their answers, and the cell's status messages.

A command that finds no cell fails at once and is never delivered later: an old "start" must not
reach a cell that is started afterwards.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Coroutine
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from understudy.errors import UNREADABLE
from understudy.hmi.access import Role
from understudy.ports.hmi import (
    BAD_PARAMETERS,
    COMMAND,
    ERROR,
    NO_ANSWER,
    NOT_CONNECTED,
    LinkMessage,
    LinkRequest,
)

TIMEOUT_SECONDS = 10.0
AT_WORK = ("waiting", "running")
"""States of a run that a command waits for."""
SEND_TIMEOUT_SECONDS = 1.0
QUEUE_LIMIT = 1000

_decoder = msgspec.json.Decoder(LinkMessage)


class LinkError(Exception):
    """A command that was not carried out: its code (see `ports.hmi`) and its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CellLink:
    """Connection to one cell; made and used on one event loop."""

    def __init__(
        self,
        command: str,
        status: str,
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        secret: str | None = None,
        status_password: str | None = None,
    ) -> None:
        """``command``, ``status``: addresses, tcp://…; ``timeout_s``: of an answer; ``secret``: of
        the cell's run; ``status_password``: where the status socket asks for one."""
        self._secret, self._status_password = secret, status_password
        self._addresses = command, status
        self._timeout_s = timeout_s
        self._context: zmq.asyncio.Context | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[LinkMessage]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.status: dict[str, Any] = {}

    async def start(self) -> None:
        self._context = zmq.asyncio.Context()
        command, status = self._addresses
        self._requests = self._socket(zmq.DEALER, command)
        self._requests.set(zmq.IMMEDIATE, 1)
        self._requests.connect(command)
        self._status = self._socket(zmq.SUB, status)
        self._status.set(zmq.SUBSCRIBE, b"")
        self._status.set(zmq.CONFLATE, 1)
        if self._status_password is not None:
            self._status.set(zmq.PLAIN_USERNAME, b"understudy")
            self._status.set(zmq.PLAIN_PASSWORD, self._status_password.encode())
        self._status.connect(status)
        self._start_task(self._receive_answers())
        self._start_task(self._receive_status())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LinkError(NOT_CONNECTED, "the link was closed"))
        if self._context is not None:
            self._requests.close(0)
            self._status.close(0)
            self._context.term()
            self._context = None

    # ── requests ──

    async def call(
        self,
        command: str,
        parameters: dict[str, Any] | None = None,
        *,
        role: Role,
        timeout_s: float | None = None,
    ) -> Any:
        """The result of an operator command; raises a LinkError if it is refused.

        After ``timeout_s`` it goes on waiting while the cell reports long work of commands (a mesh,
        a program): such a command is answered when the work is done.
        """
        payload = {"command": command, "parameters": parameters or {}, "role": role}
        return await self._ask(payload, timeout_s or self._timeout_s, patient=True)

    # ── sockets ──

    def _socket(self, kind: int, address: str) -> zmq.asyncio.Socket:
        assert self._context is not None
        socket = self._context.socket(kind)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.SNDHWM, QUEUE_LIMIT)
        socket.set(zmq.RCVHWM, QUEUE_LIMIT)
        socket.set(zmq.RECONNECT_IVL, 50)
        socket.set(zmq.RECONNECT_IVL_MAX, 1000)
        socket.set(zmq.IPV6, int("[" in address))
        return socket

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _ask(
        self, payload: dict[str, Any], timeout_s: float, *, patient: bool = False
    ) -> Any:
        """``patient``: waits on while the cell is at work."""
        number = next(self._numbers)
        try:
            request = LinkRequest(COMMAND, number, time.time(), payload, self._secret)
            data = msgspec.json.encode(request)
        except (TypeError, ValueError, RecursionError) as problem:
            raise LinkError(BAD_PARAMETERS, f"not JSON values: {problem}") from None
        future: asyncio.Future[LinkMessage] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._send(data)
            answer = await self._answered(future, timeout_s)
            while answer is None and patient and await self._cell_is_at_work():
                answer = await self._answered(future, timeout_s)
        finally:
            self._waiting.pop(number, None)
        if answer is None:
            text = f"the cell gave no answer to {payload['command']} within {timeout_s:g} s"
            raise LinkError(NO_ANSWER, text)
        if answer.type == ERROR:
            code, text = answer.payload.get("code", 0), answer.payload.get("message", "")
            raise LinkError(code if isinstance(code, int) else 0, str(text))
        return answer.payload.get("result")

    async def _answered(
        self, future: asyncio.Future[LinkMessage], timeout_s: float
    ) -> LinkMessage | None:
        """The answer; None if it does not come in time."""
        await asyncio.wait([future], timeout=timeout_s)
        return future.result() if future.done() else None

    async def _cell_is_at_work(self) -> bool:
        """Whether a command takes time: its work is listed in `runs`. A cell that does not answer
        this question either is not waited for."""
        try:
            payload = {"command": "runs", "parameters": {}, "role": "viewer"}
            runs = await self._ask(payload, self._timeout_s) or ()
        except LinkError:
            return False
        return any(run["for_command"] and run["state"] in AT_WORK for run in runs)

    async def _send(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await self._requests.send(data)
        except (TimeoutError, zmq.ZMQError):
            where = self._addresses[0]
            raise LinkError(NOT_CONNECTED, f"no cell answers at {where}") from None

    async def _receive_answers(self) -> None:
        while True:
            message = _read(await self._requests.recv_multipart())
            future = self._waiting.get(message.id) if isinstance(message.id, int) else None
            if future is not None and not future.done():
                future.set_result(message)

    async def _receive_status(self) -> None:
        while True:
            message = _read([await self._status.recv()])
            self.status = message.payload


def _read(frames: list[bytes]) -> LinkMessage:
    """The last frame as a message; an empty error message if it cannot be read."""
    try:
        return _decoder.decode(frames[-1])
    except UNREADABLE:
        return LinkMessage(ERROR)
