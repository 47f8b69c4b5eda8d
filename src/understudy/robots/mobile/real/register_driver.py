"""The connection to a device with registers: they are read and written in cycles.

One request is under way at a time. A cycle writes all outputs and reads all inputs; the next one
begins at the next tick after its end. A request that is not answered in time, or answered with
something that is no answer to it, ends the connection, which is then made anew. If the device
refuses a request (a register that it does not have), this is logged once and the block is not
answered.

The codec says how requests and answers are written: `LineCodec` at a serial port, or Modbus TCP
(`modbus.ModbusCodec`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from operator import xor
from typing import NamedTuple, Protocol

from msgspec import Struct

from understudy.protocol.client import DeviceCaller
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
    """How requests and answers are written, on one connection."""

    def encode(self, request: Request) -> bytes: ...

    def decode(self, data: bytes, request: Request) -> Answer | None:
        """Takes what was received; returns the answer to the request if it is complete.

        Raises a `BadAnswerError`.
        """
        ...


class RegisterDriver(DeviceCaller):
    """`Caller` of one device. Blocks are named by the place that `read` or `write` returned."""

    def __init__(
        self, where: str, new_codec: Callable[[], Codec], log: Callable[[str], None]
    ) -> None:
        super().__init__(where, log, TIMEOUT)
        self._new_codec = new_codec
        self._codec = new_codec()
        self._reads: list[Block] = []
        self._writes: list[Block] = []
        self._answers: list[tuple[int, Sequence[int]] | None] = []
        """Time and content of the last answer for each block that is read."""
        self._fresh: dict[int, tuple[int, Sequence[int]]] = {}
        """Answers of the cycle under way. They are given out together at its end: with the position
        of one wheel from this cycle and that of the other from the last one, a robot that drives
        straight would seem to turn."""
        self._outputs: list[Sequence[int]] = []
        self._queue: deque[tuple[Block, int, bool]] = deque()
        """Requests of this cycle: block, place, and whether it is written."""
        self._under_way: tuple[Request, int] | None = None
        """The request and the place of its block."""
        self._answer_due = 0
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

    def _next_due(self) -> int | None:
        return self._answer_due if self._under_way else None

    def _due(self, now: int) -> None:
        self._fail(now, "no answer in time")

    # ── the wire ──

    def receive(self, data: bytes, now: int) -> None:
        if self._under_way is None:
            self._fail(now, "it sent something without a request")
            return
        try:
            answer = self._codec.decode(data, self._under_way[0])
        except BadAnswerError as problem:
            self._fail(now, str(problem))
            return
        if answer is not None:
            self._take_answer(answer, now)

    def take(self, room: int) -> bytes:
        if len(self._unsent) > room:
            return b""
        data, self._unsent = self._unsent, b""
        return data

    # ── inside ──

    def _send_next(self, now: int) -> None:
        if not self._queue:
            for place, found in self._fresh.items():
                self._answers[place] = found
            self._fresh.clear()
            return
        block, place, writes = self._queue.popleft()
        self._transaction = self._transaction % 0xFFFF + 1
        request = Request(self._transaction, block, self._outputs[place] if writes else None)
        self._under_way = request, place
        self._answer_due = now + TIMEOUT
        self._unsent += self._codec.encode(request)
        self._tell(now)

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
                self._fresh[place] = now, tuple(answer.values[: request.block.count])
        self._send_next(now)

    def _note_refusal(self, reason: str, block: Block, what: tuple[int, bool]) -> None:
        if what not in self._refused:
            self._refused.add(what)
            verb = "write" if what[1] else "read"
            place = f"unit {block.unit}, address {block.address}"
            self._log(f"{self.where}: it refuses a {verb} of {place}: {reason}")

    def _drop(self, now: int) -> None:
        self._queue.clear()
        self._fresh.clear()
        self._under_way = None
        self._unsent = b""
        self._codec = self._new_codec()


# ── lines of text ────────────────────────────────────────────────────────────────────────────────

TABLES = {(False, True): "D", (False, False): "I", (True, True): "C", (True, False): "H"}
"""The letter of a table by (writes, bits)."""
LARGEST = 0xFFFF
DIGITS = len(str(LARGEST))
LONGEST_QUOTE = 60


class LineCodec:
    """`Codec` of devices at a serial port: requests and answers are lines of text.

        > 17 R I 1 300 3*0C\\n         read 3 input registers of unit 1 from address 300 on
        < 17 OK 1 1500 65535*07\\n
        > 18 W H 1 0 1 0 5000*33\\n    write holding registers from address 0 on
        < 18 OK*2D\\n
        < 18 ERR 2*7E\\n              the device refuses the request

    I: input registers, H: holding registers, D: discrete inputs, C: coils. Behind the star stands
    the exclusive or of all bytes before it, in two hexadecimal digits.
    """

    def __init__(self) -> None:
        self._received = b""

    def encode(self, request: Request) -> bytes:
        block, writes = request.block, request.values is not None
        rest = request.values if request.values is not None else [block.count]
        verb, table = "W" if writes else "R", TABLES[writes, block.bits]
        words = (request.number, verb, table, block.unit, block.address, *rest)
        return line_of(" ".join(map(str, words)))

    def decode(self, data: bytes, request: Request) -> Answer | None:
        self._received += data
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            if (answer := _answer_of(text_of(line), request.number)) is not None:
                return answer
        if len(self._received) > LONGEST_ANSWER:
            raise BadAnswerError("its answer is too long")
        return None


def _answer_of(text: str, request: int) -> Answer | None:
    """The answer in this text; None if it answers a request before this one."""
    number, _, rest = text.partition(" ")
    if number != str(request):
        return None
    kind, _, values = rest.partition(" ")
    if kind == "ERR":
        return Answer((), f"error {values[:LONGEST_QUOTE]}")
    words = values.split()
    if kind != "OK" or not all(word.isdecimal() for word in words):
        raise BadAnswerError(f"its answer cannot be read: {text[:LONGEST_QUOTE]!r}")
    if any(len(word) > DIGITS or int(word) > LARGEST for word in words):
        raise BadAnswerError("a register has 16 bits")
    return Answer([int(word) for word in words])


def line_of(text: str) -> bytes:
    """A text with its check sum, as a line."""
    data = text.encode("ascii")
    return b"%s*%02X\n" % (data, reduce(xor, data, 0))


def text_of(line: bytes) -> str:
    """The text of a line; raises a `BadAnswerError` if the check sum is wrong."""
    data, star, given = line.rstrip(b"\r").rpartition(b"*")
    if not star or given.upper() != b"%02X" % reduce(xor, data, 0) or not data.isascii():
        shown = line[:LONGEST_QUOTE].decode("latin-1")
        raise BadAnswerError(f"a line with a wrong check sum: {shown!r}")
    return data.decode("ascii")
