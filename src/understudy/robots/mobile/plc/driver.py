"""The connection to a PLC over Modbus TCP: its registers are read and written in cycles.

One request is under way at a time. A cycle writes all outputs and reads all inputs; the next one
begins at the next tick after its end. A request that is not answered in time, or answered with
something that is no answer to it, ends the connection, which is then made anew. An exception answer
of the PLC (a register that it does not have) is logged once and marks the block as not answered.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from pymodbus.exceptions import ModbusException
from pymodbus.framer import FramerSocket
from pymodbus.pdu import DecodePDU, ExceptionResponse, ModbusPDU
from pymodbus.pdu.bit_message import ReadDiscreteInputsRequest, WriteMultipleCoilsRequest
from pymodbus.pdu.register_message import ReadInputRegistersRequest, WriteMultipleRegistersRequest

from understudy.ports import State
from understudy.protocol.client import ReconnectSchedule
from understudy.units import NS_PER_MS, NS_PER_SECOND

TIMEOUT = 500 * NS_PER_MS
STALE = 500 * NS_PER_MS
"""Values that are older count as not connected."""
PAUSES = (NS_PER_SECOND, 2 * NS_PER_SECOND, 4 * NS_PER_SECOND)
LARGEST_FRAME = 260
"""Bytes of the longest answer in Modbus TCP."""


class Block(Struct, frozen=True):
    """Registers or bits that are read or written with one request."""

    unit: int
    address: int
    count: int
    bits: bool


class PlcStatus(NamedTuple):
    """State of the connection, and why it is not there."""

    connection: str
    trouble: str
    cycles: int


class PlcDriver:
    """`Caller` of one PLC. Blocks are named by the place that `read` or `write` returned."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._reads: list[Block] = []
        self._writes: list[Block] = []
        self._answers: list[tuple[int, Sequence[int]] | None] = []
        """Time and content of the last answer for each block that is read."""
        self._outputs: list[Sequence[int]] = []
        self._framer = FramerSocket(DecodePDU(False))
        self._schedule = ReconnectSchedule(timeout=TIMEOUT, pauses=PAUSES)
        self._listeners: list[Callable[[], None]] = []
        self._queue: deque[tuple[Block, int, bool]] = deque()
        """Requests of this cycle: block, place, and whether it is written."""
        self._under_way: tuple[ModbusPDU, int, bool] | None = None
        self._due = 0
        self._received = b""
        self._unsent = b""
        self._transaction = 0
        self._cycles = 0
        self._trouble = "not connected yet"
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

    def busy(self) -> bool:
        return False

    # ── the wire ──

    def wanted(self) -> int | None:
        return self._schedule.wanted()

    def connected(self, now: int) -> None:
        self._schedule.connected()
        self._trouble = ""
        self._log("the PLC is connected")

    def receive(self, data: bytes, now: int) -> None:
        self._received += data
        if self._under_way is None:
            self._fail(now, "it sent something without a request")
            return
        request = self._under_way[0]
        try:
            used, answer = self._framer.handleFrame(
                self._received, request.dev_id, request.transaction_id
            )
        except ModbusException as problem:
            self._fail(now, f"its answer cannot be read: {problem}")
            return
        self._received = self._received[used:]
        if answer is not None:
            self._take_answer(answer, now)
        elif len(self._received) > LARGEST_FRAME:
            self._fail(now, "its answer is too long")

    def take(self, room: int) -> bytes:
        if len(self._unsent) > room:
            return b""
        data, self._unsent = self._unsent, b""
        return data

    def lost(self, now: int, reason: str) -> None:
        if self._schedule.state != "waiting":
            self._fail(now, reason)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    # ── inside ──

    def _send_next(self, now: int) -> None:
        if not self._queue:
            return
        block, place, writes = self._queue.popleft()
        request = self._request(block, self._outputs[place] if writes else None)
        self._transaction = self._transaction % 0xFFFF + 1
        request.transaction_id = self._transaction
        self._under_way = request, place, writes
        self._due = now + TIMEOUT
        self._unsent += self._framer.buildFrame(request)
        self._tell()

    def _request(self, block: Block, values: Sequence[int] | None) -> ModbusPDU:
        if values is None:
            kind = ReadDiscreteInputsRequest if block.bits else ReadInputRegistersRequest
            return kind(address=block.address, count=block.count, dev_id=block.unit)
        if block.bits:
            bits = [bool(value) for value in values]
            return WriteMultipleCoilsRequest(address=block.address, bits=bits, dev_id=block.unit)
        return WriteMultipleRegistersRequest(
            address=block.address, registers=list(values), dev_id=block.unit
        )

    def _take_answer(self, answer: ModbusPDU, now: int) -> None:
        assert self._under_way is not None
        request, place, writes = self._under_way
        self._under_way = None
        if isinstance(answer, ExceptionResponse):
            self._note_exception(answer, place, writes)
        elif answer.function_code != request.function_code:
            self._fail(now, f"it answered function {request.function_code} with another one")
            return
        else:
            self._schedule.answered()
            self._refused.discard((place, writes))
            if not writes and not self._keep(place, answer, now):
                self._fail(now, "its answer is too short")
                return
        self._send_next(now)

    def _keep(self, place: int, answer: ModbusPDU, now: int) -> bool:
        block = self._reads[place]
        values: Sequence[Any] = answer.bits if block.bits else answer.registers
        if len(values) < block.count:
            return False
        self._answers[place] = now, tuple(int(value) for value in values[: block.count])
        return True

    def _note_exception(self, answer: ExceptionResponse, place: int, writes: bool) -> None:
        if (place, writes) not in self._refused:
            self._refused.add((place, writes))
            block = (self._writes if writes else self._reads)[place]
            what = f"{'write' if writes else 'read'} of unit {block.unit}, address {block.address}"
            self._log(f"the PLC refuses a {what}: exception {answer.exception_code}")

    def _fail(self, now: int, reason: str) -> None:
        self._trouble = reason
        self._log(f"the connection to the PLC has ended: {reason}")
        self._queue.clear()
        self._under_way = None
        self._received = self._unsent = b""
        self._schedule.failed(now)
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    # ── part ──

    def status(self, now: int) -> PlcStatus:
        return PlcStatus(self._schedule.state, self._trouble, self._cycles)

    def save(self) -> State:
        """A real PLC cannot be saved."""
        return None

    def load(self, state: State) -> None:
        """The connection goes on as it is."""
