"""The connection to a device with registers: they are read and written in cycles.

One request is under way at a time. A cycle writes all outputs and reads all inputs; the next one
begins at the next tick after its end. A request that is not answered in time, or answered with
something that is no answer to it, ends the connection, which is then made anew. If the device
refuses a request (a register that it does not have), this is logged once and the block is not
answered.

The codec says how requests and answers are written: `driver_modbus` or `driver_lines`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from understudy.protocol.device_caller import DeviceCaller
from understudy.units import NS_PER_MS

TIMEOUT = 500 * NS_PER_MS
STALE = 500 * NS_PER_MS
"""Values that are older count as not connected."""
LONGEST_ANSWER = 1024
"""Bytes of an answer that is not complete yet."""


class Block(Struct, frozen=True):
    """Registers or bits that are read or written with one request."""

    unit: int
    address: int
    count: int
    bits: bool


class Request(NamedTuple):
    """``values``: what is written; None: the block is read."""

    number: int
    block: Block
    values: Sequence[int] | None


class Answer(NamedTuple):
    """``values``: what was read, empty after a write. ``refused``: why the device refuses."""

    values: Sequence[int]
    refused: str = ""


class BadAnswerError(Exception):
    """The device sent something that is no answer to the request."""


class Codec(Protocol):
    """How requests and answers are written."""

    def request(self, request: Request) -> bytes: ...

    def answer(self, request: Request, received: bytes) -> tuple[int, Answer | None]:
        """The number of bytes that are read, and the answer if it is complete.

        Raises a `BadAnswerError`.
        """
        ...


class RegisterDriver(DeviceCaller):
    """`Caller` of one device. Blocks are named by the place that `read` or `write` returned."""

    def __init__(self, where: str, codec: Codec, log: Callable[[str], None]) -> None:
        super().__init__(where, log, TIMEOUT)
        self._codec = codec
        self._reads: list[Block] = []
        self._writes: list[Block] = []
        self._answers: list[tuple[int, Sequence[int]] | None] = []
        """Time and content of the last answer for each block that is read."""
        self._outputs: list[Sequence[int]] = []
        self._queue: deque[tuple[Block, int, bool]] = deque()
        """Requests of this cycle: block, place, and whether it is written."""
        self._under_way: tuple[Request, int] | None = None
        """The request and the place of its block."""
        self._due = 0
        self._received = b""
        self._unsent = b""
        self._transaction = 0
        self._refused: set[tuple[int, bool]] = set()

    # ── what is exchanged ──

    def read(self, block: Block) -> int:
        """Adds a block to what every cycle reads; returns its place."""
        self._reads.append(block)
        self._answers.append(None)
        return len(self._reads) - 1

    def write(self, block: Block) -> int:
        """Adds a block to what every cycle writes; returns its place."""
        self._writes.append(block)
        self._outputs.append([0] * block.count)
        return len(self._writes) - 1

    def put(self, place: int, values: Sequence[int]) -> None:
        self._outputs[place] = values

    def answer(self, place: int, now: int) -> Sequence[int] | None:
        """The last answer for a block; None if it is too old or there is none."""
        found = self._answers[place]
        return None if found is None or now - found[0] > STALE else found[1]

    @property
    def cycles(self) -> int:
        return self._cycles

    def begin_cycle(self, now: int) -> None:
        """Exchanges everything once more, unless the cycle before is still under way."""
        if self._schedule.state != "connected" or self._queue or self._under_way:
            return
        self._cycles += 1
        self._queue += [(block, place, True) for place, block in enumerate(self._writes)]
        self._queue += [(block, place, False) for place, block in enumerate(self._reads)]
        self._send_next(now)

    # ── time ──

    def next_wake(self) -> int | None:
        if self._schedule.state != "connected":
            return self._schedule.due
        return self._due if self._under_way else None

    def wake(self, now: int) -> None:
        if self._schedule.state == "waiting":
            self._schedule.connect(now)
            self._tell()
        elif self._schedule.state == "connecting":
            self._fail(now, "no connection in time")
        else:
            self._fail(now, "no answer in time")

    # ── the wire ──

    def receive(self, data: bytes, now: int) -> None:
        self._received += data
        if self._under_way is None:
            self._fail(now, "it sent something without a request")
            return
        used, answer = 1, None
        while used and answer is None:
            try:
                used, answer = self._codec.answer(self._under_way[0], self._received)
            except BadAnswerError as problem:
                self._fail(now, str(problem))
                return
            self._received = self._received[used:]
        if answer is not None:
            self._take_answer(answer, now)
        elif len(self._received) > LONGEST_ANSWER:
            self._fail(now, "its answer is too long")

    def take(self, room: int) -> bytes:
        if len(self._unsent) > room:
            return b""
        data, self._unsent = self._unsent, b""
        return data

    # ── inside ──

    def _send_next(self, now: int) -> None:
        if not self._queue:
            return
        block, place, writes = self._queue.popleft()
        self._transaction = self._transaction % 0xFFFF + 1
        request = Request(self._transaction, block, self._outputs[place] if writes else None)
        self._under_way = request, place
        self._due = now + TIMEOUT
        self._unsent += self._codec.request(request)
        self._tell()

    def _take_answer(self, answer: Answer, now: int) -> None:
        assert self._under_way is not None
        request, place = self._under_way
        self._under_way = None
        writes = request.values is not None
        if answer.refused:
            self._note_refusal(answer.refused, request.block, (place, writes))
        elif not writes and len(answer.values) < request.block.count:
            self._fail(now, "its answer is too short")
            return
        else:
            self._schedule.answered()
            self._refused.discard((place, writes))
            if not writes:
                self._answers[place] = now, tuple(answer.values[: request.block.count])
        self._send_next(now)

    def _note_refusal(self, reason: str, block: Block, what: tuple[int, bool]) -> None:
        if what not in self._refused:
            self._refused.add(what)
            verb = "write" if what[1] else "read"
            place = f"unit {block.unit}, address {block.address}"
            self._log(f"{self.where}: it refuses a {verb} of {place}: {reason}")

    def _drop(self, now: int) -> None:
        self._queue.clear()
        self._under_way = None
        self._received = self._unsent = b""
