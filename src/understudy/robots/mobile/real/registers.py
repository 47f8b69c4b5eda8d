"""Devices with registers (PLC, SERIAL): their driver, motors, inputs, outputs and sensors.

What stands where in the block of a motor or a sensor:

A number of 32 bits takes two registers, the higher half first, and counts 1e-4 of the SI unit:
0.1 mm, 0.1 mm/s, 0.1 mm/s2, or the same with mrad. It is clipped to what 32 bits can hold.

    holding registers of a motor          input registers of a motor
    0      control word                   0      status word
    1, 2   set speed                      1, 2   position
    3, 4   target position                3, 4   velocity
    5, 6   tolerance                      5      number of the fault, 0: none
    7, 8   largest speed
    9, 10  largest acceleration
    11, 12 largest deceleration
    13     cycle counter

The cycle counter changes with every write: the device must stop the motor when it stands still for
longer than 0.5 s. An input is a discrete input and an output is a coil.

    input registers of a lidar            of a scanner                      of a battery
    0  status word                        0     status word                 0  status word
    1  nearest obstacle, mm               1     counter of codes            1  charge, 0.01 %
    2  free distance ahead, mm            2     length of the code, bytes
       (65535: nothing is seen)           3…18  the code, two bytes each
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import xor
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct

from understudy.config.typed import read
from understudy.errors import NotInstalledError, located_at, needs
from understudy.protocol.client import DeviceCaller
from understudy.robots.mobile.config.profile import Camel
from understudy.robots.mobile.config.robot_file import Driver, DriverType, Motor
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.robots.mobile.real.channels import STALE, TIMEOUT, Log, MotorCommand, MotorStatus

STEPS = 10_000
"""Steps of a number in one SI unit."""
ENABLE, GO, RESET = 1, 2, 4
"""Bits of the control word of a motor: it may move, it goes to its target, its fault is cleared."""
READY, FAULT, HOMING = 1, 2, 4
"""Bits of a status word; sensors have READY only. With any other bit it is not ready."""
WRITTEN, READ = 14, 6
"""Registers of the block of a motor."""
LIDAR_READ, SCANNER_READ, BATTERY_READ = 3, 19, 2
NOTHING_SEEN = 0xFFFF
MM = 1e-3
LARGEST = 0x7FFFFFFF


def written(command: MotorCommand, cycle: int) -> list[int]:
    """The holding registers of a motor."""
    control = ENABLE * command.enable | GO * command.moving | RESET * command.reset
    values = (command.speed, command.target, command.tolerance, *command.limits)
    return [control, *(half for value in values for half in halves(value)), cycle & 0xFFFF]


def motor_status(registers: Sequence[int]) -> MotorStatus:
    status = registers[0]
    return MotorStatus(
        ready=bool(status & READY) and not status & ~(READY | FAULT | HOMING),
        faulty=bool(status & FAULT),
        homing=bool(status & HOMING),
        position=number(registers[1:3]),
        velocity=number(registers[3:5]),
        fault=registers[5],
    )


def halves(value: float) -> tuple[int, int]:
    """A number as two registers."""
    steps = round(max(min(value * STEPS, LARGEST), -LARGEST)) & 0xFFFFFFFF
    return steps >> 16, steps & 0xFFFF


def number(registers: Sequence[int]) -> float:
    """The number in two registers."""
    steps = registers[0] << 16 | registers[1]
    return (steps - (1 << 32) if steps >> 31 else steps) / STEPS


def distance(register: int) -> float:
    """Metres; infinite if nothing is seen."""
    return float("inf") if register == NOTHING_SEEN else register * MM


def code_of(registers: Sequence[int]) -> str:
    """The code that a scanner has read; bytes that are not ASCII become question marks."""
    data = b"".join(register.to_bytes(2, "big") for register in registers[3:SCANNER_READ])
    text = data[: min(registers[2], len(data))].decode("ascii", "replace")
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text)


# ── the driver ────────────────────────────────────────────────────────────────────────────────────

LONGEST_ANSWER = 1024
"""Bytes of an answer that is not complete yet."""


class Block(Struct, frozen=True):
    """Registers or bits that are read or written with one request."""

    unit: int
    address: int
    count: int
    bits: bool


class Request(NamedTuple):
    """A request for one block. ``values``: what is written; None: the block is read."""

    number: int
    block: Block
    values: Sequence[int] | None


class DeviceAnswer(NamedTuple):
    """The answer of a device. ``values``: what was read, empty after a write. ``refused``: why the
    device refuses."""

    values: Sequence[int]
    refused: str = ""


class BadAnswerError(Exception):
    """The device sent something that is no answer to the request."""


class Codec(Protocol):
    """How requests and answers are written, on one connection."""

    def encode(self, request: Request) -> bytes: ...

    def decode(self, data: bytes, request: Request) -> DeviceAnswer | None:
        """Takes what was received; returns the answer to the request if it is complete.

        Raises a `BadAnswerError`.
        """
        ...


class RegisterDriver(DeviceCaller):
    """`Caller` of one device. Blocks are named by the place that `read` or `write` returned.

    One request is under way at a time. A cycle writes all outputs and reads all inputs; the next
    one begins at the next tick after its end. A request that is not answered in time, or answered
    with something that is no answer to it, ends the connection, which is then made anew. If the
    device refuses a request (a register that it does not have), this is logged once and the block
    is not answered.
    """

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

    def answered_at(self, place: int) -> int | None:
        """When the last answer for a block came: one cycle has answers of different age."""
        found = self._answers[place]
        return None if found is None else found[0]

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

    def _take_answer(self, answer: DeviceAnswer, now: int) -> None:
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
LARGEST_REGISTER = 0xFFFF
DIGITS = len(str(LARGEST_REGISTER))
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

    def decode(self, data: bytes, request: Request) -> DeviceAnswer | None:
        self._received += data
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            if (answer := _answer_of(text_of(line), request.number)) is not None:
                return answer
        if len(self._received) > LONGEST_ANSWER:
            raise BadAnswerError("its answer is too long")
        return None


def _answer_of(text: str, request: int) -> DeviceAnswer | None:
    """The answer in this text; None if it answers a request before this one."""
    number, _, rest = text.partition(" ")
    if number != str(request):
        return None
    kind, _, values = rest.partition(" ")
    if kind == "ERR":
        return DeviceAnswer((), f"error {values[:LONGEST_QUOTE]}")
    words = values.split()
    if kind != "OK" or not all(word.isdecimal() for word in words):
        raise BadAnswerError(f"its answer cannot be read: {text[:LONGEST_QUOTE]!r}")
    if any(len(word) > DIGITS or int(word) > LARGEST_REGISTER for word in words):
        raise BadAnswerError("a register has 16 bits")
    return DeviceAnswer([int(word) for word in words])


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


# ── where they are: `driver.config` ───────────────────────────────────────────────────────────────


class RegisterKeys(Camel, frozen=True, kw_only=True):
    """The unit behind a connection, and the first register (or the bit)."""

    address: Annotated[int, Meta(ge=0, le=65_535)]
    unit: Annotated[int, Meta(ge=0, le=255)] = 1

    def block(self, count: int, *, bits: bool) -> Block:
        return Block(self.unit, self.address, count, bits)


class PlcKeys(RegisterKeys, frozen=True, kw_only=True):
    """A PLC by host and port."""

    host: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\s/?#@]+\Z")]
    port: Annotated[int, Meta(ge=1, le=65535)] = 502

    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    def codec(self) -> Callable[[], Codec]:
        try:
            from understudy.robots.mobile.real.modbus import ModbusCodec
        except ImportError:
            raise NotInstalledError(f"a PLC {needs('pymodbus')}") from None
        return ModbusCodec


class SerialKeys(RegisterKeys, frozen=True, kw_only=True):
    """A serial port by its device."""

    device: Annotated[str, Meta(max_length=1024, pattern=r"^/[^@?]+\Z")]
    baud: Annotated[int, Meta(ge=50, le=4_000_000)] = 115_200

    def where(self) -> str:
        return f"serial:{self.device}@{self.baud}"

    def codec(self) -> Callable[[], Codec]:
        return LineCodec


KEYS: Mapping[DriverType, type[PlcKeys] | type[SerialKeys]] = {"PLC": PlcKeys, "SERIAL": SerialKeys}


# ── devices ───────────────────────────────────────────────────────────────────────────────────────


class RegisterDevices:
    """`DeviceFamily`; blocks with the same address, as in `understudy send --to`, share a
    connection."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.drivers: dict[str, RegisterDriver] = {}

    def motor(self, driver: Driver, motor: Motor, key: str) -> "RegisterMotor":
        found, keys = self._found(driver, key)
        return RegisterMotor(found, keys.block(WRITTEN, bits=False), keys.block(READ, bits=False))

    def input(self, driver: Driver, key: str) -> "RegisterInput":
        found, keys = self._found(driver, key)
        return RegisterInput(found, keys.block(1, bits=True))

    def output(self, driver: Driver, key: str) -> "RegisterOutput":
        found, keys = self._found(driver, key)
        return RegisterOutput(found, keys.block(1, bits=True))

    def sensor(self, driver: Driver, count: int, key: str) -> "RegisterInput":
        found, keys = self._found(driver, key)
        return RegisterInput(found, keys.block(count, bits=False))

    def _found(self, driver: Driver, key: str) -> tuple[RegisterDriver, RegisterKeys]:
        """The connection that a driver names, and its keys. ``key``: where the driver stands in the
        robot's file, for the error message."""
        with located_at(f"{key}.config"):
            keys = read(driver.config, KEYS[driver.type])
        where = keys.where()
        if where not in self.drivers:
            self.drivers[where] = RegisterDriver(where, keys.codec(), self._log)
        return self.drivers[where], keys


class RegisterMotor:
    """`MotorChannel`."""

    def __init__(self, driver: RegisterDriver, outputs: Block, inputs: Block) -> None:
        self._driver = driver
        self._output = driver.write(outputs)
        self._input = driver.read(inputs)

    def put(self, command: MotorCommand) -> None:
        self._driver.put(self._output, written(command, self._driver.cycles + 1))

    def status(self, now: int) -> MotorStatus | None:
        registers = self._driver.answer(self._input, now)
        if registers is None:
            return None
        return motor_status(registers)._replace(read_at=self._driver.answered_at(self._input))

    def fault(self, number: int) -> MotorFault:
        return MotorFault(f"DEVICE_{number}", f"its controller reports fault {number}")


class RegisterInput:
    """`Input`: a block that is read in every cycle."""

    def __init__(self, driver: RegisterDriver, block: Block) -> None:
        self._driver = driver
        self._place = driver.read(block)

    def answer(self, now: int) -> Sequence[int] | None:
        return self._driver.answer(self._place, now)


class RegisterOutput:
    """`Output`: a bit that is written in every cycle."""

    def __init__(self, driver: RegisterDriver, block: Block) -> None:
        self._driver = driver
        self._place = driver.write(block)

    def put(self, value: bool) -> None:
        self._driver.put(self._place, [int(value)])
