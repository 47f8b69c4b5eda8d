"""A device that is not there: it answers requests and moves its motors, on virtual time.

`ModbusDevice` reads requests and builds answers by pymodbus, `LineDevice` by its own few lines:
none of them uses the driver under test.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from random import Random

from pymodbus.framer import FramerSocket
from pymodbus.pdu import DecodePDU, ExceptionResponse, ModbusPDU
from pymodbus.pdu.bit_message import ReadDiscreteInputsResponse, WriteMultipleCoilsResponse
from pymodbus.pdu.register_message import ReadInputRegistersResponse, WriteMultipleRegistersResponse

ILLEGAL_ADDRESS = 2
STEP = 1e-4
ARRIVED = 4e-3
"""m/s: an axis that is wanted to be slower has arrived."""
WATCHED = 0.5
"""Seconds without a new cycle after which the motors stop."""


class Late:
    """How a drive follows the speed that is wanted: some time later, and with a lag (seconds)."""

    def __init__(self, delay: float = 0.0, lag: float = 0.0) -> None:
        self._delay, self._lag = delay, lag
        self._wanted: deque[tuple[float, float]] = deque([(0.0, 0.0)])
        """Speeds, and when they act."""
        self._time = 0.0

    def follow(self, speed: float, wanted: float, seconds: float) -> float:
        """The speed that the drive would come to within a time if it had no ramp."""
        self._time += seconds
        self._wanted.append((self._time + self._delay, wanted))
        while len(self._wanted) > 1 and self._wanted[1][0] <= self._time:
            self._wanted.popleft()
        acts = self._wanted[0][1]
        return acts + (speed - acts) * math.exp(-seconds / self._lag) if self._lag else acts


class VirtualDevice:
    """Motors at the given addresses. `inputs`, `coils` and `holding` are what its program sees.

    ``late``: how each motor follows; ``noise``: greatest error of what is read, in metres and m/s.
    """

    noise = (0.0, 0.0)

    def __init__(self, motors: Iterable[int] = (), sensors: Iterable[tuple[int, int]] = ()) -> None:
        self.motors = list(motors)
        self.late = {address: Late() for address in self.motors}
        self.inputs: dict[int, int] = {}
        for address in self.motors:
            self.inputs |= dict.fromkeys(range(address, address + 6), 0)
            self.inputs[address] = 1
        for address, count in sensors:
            self.inputs |= dict.fromkeys(range(address, address + count), 0)
        self.holding = dict.fromkeys((a + n for a in self.motors for n in range(14)), 0)
        self.coils: dict[int, int] = dict.fromkeys(range(32), 0)
        self.discrete: dict[int, int] = dict.fromkeys(range(32), 0)
        self.lasting_fault = False
        self._counters: dict[int, tuple[int, float]] = {}
        """The cycle counter of each motor, and for how long it has not changed."""
        self._exact: dict[int, tuple[float, float]] = {}
        """Position and speed of each motor; what can be read is rounded."""
        self._received = b""
        self._chance = Random(1)

    def answer(self, data: bytes) -> bytes:
        """The answers to all requests that are complete."""
        raise NotImplementedError

    # ── its program ──

    def run(self, seconds: float) -> None:
        """Wheels follow their set speed and axes go to their target, within their limits. Without
        new cycles all motors brake."""
        for address in self.motors:
            control = self.holding[address]
            if control & 4 and not self.lasting_fault:
                self.inputs[address] = 1
                self.inputs[address + 5] = 0
            read = self.number(address + 1), self.number(address + 3)
            position, speed = self._exact.get(address, read)
            wanted = self._wanted(address, position, seconds)
            if not control & 1 or self.inputs[address] & 2 or self._silent(address, seconds):
                wanted = 0.0
            wanted = self.late[address].follow(speed, wanted, seconds)
            braking = abs(wanted) < abs(speed) or wanted * speed < 0.0
            most = self._set(address + (11 if braking else 9)) * seconds
            after = speed + max(min(wanted - speed, most), -most)
            if control & 2 and abs(wanted) <= ARRIVED and abs(speed) <= most:
                after = 0.0
            position += (speed + after) / 2.0 * seconds
            self._exact[address] = position, after
            away, faster = (self._chance.uniform(-most, most) for most in self.noise)
            self._put(address + 1, position + away)
            self._put(address + 3, after + faster)

    def _wanted(self, address: int, position: float, seconds: float) -> float:
        fastest = self._set(address + 7)
        if not self.holding[address] & 2:
            return max(min(self._set(address + 1), fastest), -fastest)
        away, brake = self._set(address + 3) - position, self._set(address + 11)
        step = brake * seconds
        # The speed from which it can still stop, one step of time later.
        within = math.sqrt(step * step + 2.0 * brake * abs(away)) - step
        return math.copysign(min(within, fastest, abs(away) / seconds), away)

    def _silent(self, address: int, seconds: float) -> bool:
        counter, silence = self._counters.get(address, (-1, 0.0))
        now = self.holding[address + 13]
        silence = 0.0 if now != counter else silence + seconds
        self._counters[address] = now, silence
        return silence > WATCHED

    def fail(self, address: int, number: int) -> None:
        """The drive of a motor reports a fault."""
        self.inputs[address] |= 2
        self.inputs[address + 5] = number

    def speed(self, address: int) -> float:
        """Of a motor, without rounding and noise."""
        return self._exact.get(address, (0.0, 0.0))[1]

    def number(self, address: int) -> float:
        return _signed(self.inputs[address], self.inputs[address + 1])

    def set_speed(self, address: int) -> float:
        """What was commanded to a motor."""
        return self._set(address + 1)

    def _set(self, address: int) -> float:
        return _signed(self.holding[address], self.holding[address + 1])

    def _put(self, address: int, value: float) -> None:
        steps = round(value / STEP) & 0xFFFFFFFF
        self.inputs[address], self.inputs[address + 1] = steps >> 16, steps & 0xFFFF


def _signed(high: int, low: int) -> float:
    return (
        int.from_bytes(high.to_bytes(2, "big") + low.to_bytes(2, "big"), "big", signed=True) * STEP
    )


class ModbusDevice(VirtualDevice):
    """Behind Modbus TCP."""

    _framer = FramerSocket(DecodePDU(True))

    def answer(self, data: bytes) -> bytes:
        self._received += data
        sent = b""
        while self._received:
            used, request = self._framer.handleFrame(self._received, 0, 0)
            self._received = self._received[used:]
            if request is None:
                break
            answer = self._answer(request)
            answer.dev_id, answer.transaction_id = request.dev_id, request.transaction_id
            sent += self._framer.buildFrame(answer)
        return sent

    def _answer(self, request: ModbusPDU) -> ModbusPDU:
        places = range(request.address, request.address + request.count)
        tables: dict[int, Mapping[int, int]] = {
            2: self.discrete,
            4: self.inputs,
            15: self.coils,
            16: self.holding,
        }
        table = tables[request.function_code]
        if any(place not in table for place in places):
            return ExceptionResponse(request.function_code, ILLEGAL_ADDRESS)
        if request.function_code == 2:
            return ReadDiscreteInputsResponse(bits=[bool(self.discrete[place]) for place in places])
        if request.function_code == 4:
            return ReadInputRegistersResponse(registers=[self.inputs[place] for place in places])
        if request.function_code == 15:
            self.coils |= dict(zip(places, request.bits, strict=False))
            return WriteMultipleCoilsResponse(address=request.address, count=request.count)
        self.holding |= dict(zip(places, request.registers, strict=True))
        return WriteMultipleRegistersResponse(address=request.address, count=request.count)


class LineDevice(VirtualDevice):
    """At a serial port."""

    def answer(self, data: bytes) -> bytes:
        self._received += data
        sent = b""
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            text, _, check = line.partition(b"*")
            assert int(check, 16) == _sum(text), line
            words = text.decode().split()
            answer = f"{words[0]} {self._answer_to(words[1:])}".rstrip().encode()
            sent += b"%s*%02x\r\n" % (answer, _sum(answer))
        return sent

    def _answer_to(self, words: list[str]) -> str:
        verb, letter, _unit, address, *rest = words
        tables: dict[str, dict[int, int]] = {
            "D": self.discrete,
            "I": self.inputs,
            "C": self.coils,
            "H": self.holding,
        }
        table, first = tables[letter], int(address)
        places = range(first, first + (int(rest[0]) if verb == "R" else len(rest)))
        if any(place not in table for place in places):
            return f"ERR {ILLEGAL_ADDRESS}"
        if verb == "R":
            return " ".join(["OK", *(str(int(table[place])) for place in places)])
        table.update(zip(places, map(int, rest), strict=True))
        return "OK"


def _sum(data: bytes) -> int:
    found = 0
    for byte in data:
        found ^= byte
    return found
