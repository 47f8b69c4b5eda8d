"""Drives that are not there: nodes of the library `canopen` with a small program after CiA 402.

The library answers SDO and NMT and reads the mapping of the process data; states and motion are
written here from the standard. Nothing of the driver under test is used. `WiredNetwork` has no bus
and no threads: frames go in by `notify` and out into a list, on virtual time.
"""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import canopen
from canopen.objectdictionary import (
    INTEGER8,
    INTEGER16,
    INTEGER32,
    UNSIGNED8,
    UNSIGNED16,
    UNSIGNED32,
    ODArray,
    ODRecord,
    ODVariable,
)
from tests.robots.mobile.real.virtual_device import Late

DISABLED, READY, ON, ENABLED, QUICK_STOP, FAULT = (
    "switch on disabled",
    "ready",
    "switched on",
    "enabled",
    "quick stop",
    "fault",
)
WORDS = {DISABLED: 0x40, READY: 0x21, ON: 0x23, ENABLED: 0x27, QUICK_STOP: 0x07, FAULT: 0x08}
COMMANDS = (
    (0x87, 0x06, "shutdown"),
    (0x8F, 0x07, "switch on"),
    (0x8F, 0x0F, "enable"),
    (0x82, 0x00, "disable voltage"),
    (0x86, 0x02, "quick stop"),
)
MOVES: Mapping[tuple[str, str], str] = {
    (DISABLED, "shutdown"): READY,
    (READY, "switch on"): ON,
    (READY, "disable voltage"): DISABLED,
    (ON, "enable"): ENABLED,
    (ON, "shutdown"): READY,
    (ON, "disable voltage"): DISABLED,
    (ENABLED, "switch on"): ON,
    (ENABLED, "shutdown"): READY,
    (ENABLED, "disable voltage"): DISABLED,
    (ENABLED, "quick stop"): QUICK_STOP,
    (QUICK_STOP, "disable voltage"): DISABLED,
}
PLAIN = {
    0x1000: (UNSIGNED32, 0x00020192),
    0x1017: (UNSIGNED16, 0),
    0x6007: (INTEGER16, 1),
    0x603F: (UNSIGNED16, 0),
    0x6040: (UNSIGNED16, 0),
    0x6041: (UNSIGNED16, 0x40),
    0x6060: (INTEGER8, 0),
    0x6064: (INTEGER32, 0),
    0x6067: (UNSIGNED32, 0),
    0x606C: (INTEGER32, 0),
    0x607A: (INTEGER32, 0),
    0x607F: (UNSIGNED32, 0xFFFFFFFF),
    0x6081: (UNSIGNED32, 0),
    0x6083: (UNSIGNED32, 1),
    0x6084: (UNSIGNED32, 1),
    0x60FD: (UNSIGNED32, 0),
    0x60FF: (INTEGER32, 0),
}
"""Type and value at start of objects without sub-indexes."""
READ_ONLY = {0x1000, 0x603F, 0x6041, 0x6064, 0x606C, 0x60FD}
NEW_SET_POINT, RESET, HALT, TAKEN, TARGET_REACHED = 0x10, 0x80, 0x100, 0x1000, 0x400
MASTER = 127


def dictionary(without: frozenset[int] = frozenset()) -> Any:
    """The objects of a drive."""
    found: Any = canopen.ObjectDictionary()  # type: ignore[no-untyped-call]
    for index, (kind, default) in PLAIN.items():
        if index not in without:
            found.add_object(_variable(index, 0, kind, default))
    for at in (0x1400, 0x1401, 0x1800, 0x1801):
        kinds = (UNSIGNED8, UNSIGNED32, UNSIGNED8)
        found.add_object(_record(ODRecord, at, kinds, (2, 0x80000000, 255)))
        found.add_object(_record(ODArray, at + 0x200, (UNSIGNED8, *[UNSIGNED32] * 8), (0,) * 9))
    found.add_object(_record(ODArray, 0x1016, (UNSIGNED8, UNSIGNED32), (1, 0)))
    limits = (2, -(1 << 31), (1 << 31) - 1)
    found.add_object(_record(ODArray, 0x607D, (UNSIGNED8, INTEGER32, INTEGER32), limits))
    found.add_object(_record(ODArray, 0x60FE, (UNSIGNED8, UNSIGNED32, UNSIGNED32), (2, 0, 0)))
    for index in without - set(PLAIN):
        del found[index]
    return found


def _variable(index: int, sub: int, kind: int, default: int) -> ODVariable:
    made = ODVariable(f"object {index:04X}:{sub}", index, sub)
    made.data_type, made.default = kind, default
    made.access_type = "ro" if index in READ_ONLY else "rw"
    made.pdo_mappable = True
    return made


def _record(
    shape: type[ODRecord] | type[ODArray],
    index: int,
    kinds: tuple[int, ...],
    defaults: tuple[int, ...],
) -> ODRecord | ODArray:
    made = shape(f"object {index:04X}", index)
    for sub, (kind, default) in enumerate(zip(kinds, defaults, strict=True)):
        made.add_member(_variable(index, sub, kind, default))
    return made


class Timer:
    """A message that is sent again and again, as `canopen` uses it."""

    def __init__(self, network: "WiredNetwork", can_id: int, data: Any, period: float) -> None:
        self._network = network
        self._id, self._data, self._period = can_id, data, period
        self._left = period
        network.timers.append(self)

    def run(self, seconds: float) -> None:
        self._left -= seconds
        if self._left <= 0.0:
            self._left += self._period
            self._network.send_message(self._id, self._data)

    def update(self, data: Any) -> None:
        self._data = data

    def stop(self) -> None:
        self._network.timers.remove(self)


class WiredNetwork(canopen.Network):
    """A network without a bus."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[int, bytes]] = []
        self.timers: list[Timer] = []

    def send_message(self, can_id: int, data: Any, remote: bool = False) -> None:
        self.sent.append((can_id, bytes(data)))

    def send_periodic(self, can_id: int, data: Any, period: float, remote: bool = False) -> Any:
        return Timer(self, can_id, data, period)

    def run(self, seconds: float) -> None:
        for timer in list(self.timers):
            timer.run(seconds)


class VirtualDrive:
    """One drive; positions in counts. `power`: without it the drive cannot be switched on. `late`,
    `noise`: as of a `VirtualDevice`, in counts."""

    noise = (0.0, 0.0)

    def __init__(self, network: Any, number: int, without: frozenset[int] = frozenset()) -> None:
        self.network = network
        self.node: Any = canopen.LocalNode(number, dictionary(without))
        network.add_node(self.node)
        network.subscribe(0, self._nmt)
        network.subscribe(0x80, self._sync)
        network.subscribe(0x700 + MASTER, self._master)
        self.state = DISABLED
        self.position = 0.0
        self.velocity = 0.0
        self.inputs = 0
        self.power = True
        self.late = Late()
        self.lasting_fault = False
        self._target: float | None = None
        self._control = 0
        self._silence: float | None = None
        self._watched: set[Any] = set()
        self._chance = Random(number)

    # ── what tests do ──

    def boot(self) -> None:
        """Power comes: it starts with everything as in the dictionary."""
        self.node.data_store.clear()
        self.state, self.position, self.velocity, self._target = DISABLED, 0.0, 0.0, None
        self._silence = None
        self.node.nmt.send_command(0x82)
        self.node.nmt.send_command(0x80)

    def fail(self, code: int) -> None:
        self.state = FAULT
        self._put(0x603F, code)
        self.node.emcy.send(code)

    def get(self, index: int, sub: int = 0) -> int:
        entry = self.node.sdo[index]
        plain = isinstance(self.node.object_dictionary[index], ODVariable)
        value: int = (entry if plain else entry[sub]).raw
        return value

    def has(self, index: int) -> bool:
        return index in self.node.object_dictionary

    def _put(self, index: int, value: int) -> None:
        self.node.set_data(index, 0, self.node.object_dictionary[index].encode_raw(value))

    # ── messages ──

    def _nmt(self, can_id: int, data: bytes, timestamp: float) -> None:
        if data[0] != 1 or data[1] not in (0, self.node.id):
            return
        for pdo in (*self.node.rpdo.values(), *self.node.tpdo.values()):
            pdo.read()
        for pdo in self.node.rpdo.values():
            if pdo not in self._watched:
                self._watched.add(pdo)
                pdo.add_callback(self._process_data)

    def _process_data(self, pdo: Any) -> None:
        if self.node.nmt.state != "OPERATIONAL":
            return
        for variable in pdo:
            raw = variable.od.encode_raw(variable.raw)
            self.node.set_data(variable.index, variable.subindex, raw)
        self._obey(self.get(0x6040))

    def _sync(self, can_id: int, data: bytes, timestamp: float) -> None:
        if self.node.nmt.state != "OPERATIONAL":
            return
        self._publish()
        for pdo in self.node.tpdo.values():
            if pdo.enabled and pdo.trans_type == 1:
                for variable in pdo:
                    variable.raw = self.get(variable.index, variable.subindex)
                pdo.transmit()

    def _master(self, can_id: int, data: bytes, timestamp: float) -> None:
        self._silence = 0.0

    def _publish(self) -> None:
        word = WORDS[self.state] | TAKEN * bool(self._control & NEW_SET_POINT)
        self._put(0x6041, word)
        away, faster = (self._chance.uniform(-most, most) for most in self.noise)
        self._put(0x6064, (round(self.position + away) + (1 << 31)) % (1 << 32) - (1 << 31))
        self._put(0x606C, round(self.velocity + faster))
        if self.has(0x60FD):
            self._put(0x60FD, self.inputs)

    # ── states ──

    def _obey(self, control: int) -> None:
        before, self._control = self._control, control
        if self.state == FAULT:
            if control & ~before & RESET and not self.lasting_fault:
                self.state = DISABLED
                self._put(0x603F, 0)
            return
        command = next((name for mask, bits, name in COMMANDS if control & mask == bits), "")
        if self.power or command != "shutdown":
            self.state = MOVES.get((self.state, command), self.state)
        if self.state != ENABLED:
            self._target = None
        elif control & ~before & NEW_SET_POINT:
            low, high = self.get(0x607D, 1), self.get(0x607D, 2)
            self._target = min(max(self.get(0x607A), low), high)

    # ── motion ──

    def run(self, seconds: float) -> None:
        self._watch_master(seconds)
        if not self.has(0x6083):
            return
        wanted = 0.0
        if self.state == ENABLED and not self._control & HALT:
            wanted = self._wanted_speed(seconds)
        wanted = self.late.follow(self.velocity, wanted, seconds)
        braking = abs(wanted) < abs(self.velocity) or wanted * self.velocity < 0.0
        most = (self.get(0x6084) if braking else self.get(0x6083)) * seconds
        before = self.velocity
        self.velocity += max(min(wanted - before, most), -most)
        self.position += (before + self.velocity) / 2.0 * seconds

    def _wanted_speed(self, seconds: float) -> float:
        fastest = self.get(0x607F) if self.has(0x607F) else math.inf
        if self.get(0x6060) == 3:
            return max(min(float(self.get(0x60FF)), fastest), -fastest)
        if self._target is None:
            return 0.0
        away = self._target - self.position
        brake, step = self.get(0x6084), self.get(0x6084) * seconds
        # The speed from which it can still stop, one step of time later.
        within = math.sqrt(step * step + 2.0 * brake * abs(away)) - step
        speed = min(within, self.get(0x6081), fastest, abs(away) / seconds)
        return math.copysign(speed, away)

    def _watch_master(self, seconds: float) -> None:
        watched = self.get(0x1016, 1) if self.has(0x1016) else 0
        if self._silence is None or watched >> 16 != MASTER:
            return
        self._silence += seconds
        late = self._silence > (watched & 0xFFFF) / 1000.0
        if late and self.state == ENABLED and self.get(0x6007) == 3:
            self.state = QUICK_STOP
