"""One node of a CAN bus: it is configured, started, and then exchanges process data.

    waiting ──begin──▶ connecting: it is configured by SDO ──NMT start──▶ connected: process data
       ▲                        │                                                 │
       └── no answer, refused ──┴────────────── silent for 0.5 s ─────────────────┘

A boot-up message of the node begins this anew at once. Process data:

    to the node     PDO 1  control word (6040h), target velocity (60FFh) or position (607Ah)
                    PDO 2  outputs (60FEh:1), if some are used
    from the node   PDO 1  status word (6041h), error code (603Fh), inputs (60FDh) if some are used
                    PDO 2  position (6064h), velocity (606Ch)

The node sends its data after each SYNC. It watches our heartbeat (1016h) and stops its motor when
that is silent for 0.5 s (6007h). A node that is not heard may still hear us, and our heartbeat: it
gets a quick stop, as a PDO if it was running, and by SDO after each attempt that fails.
"""

import struct
from collections import deque
from collections.abc import Callable, Sequence

from understudy.protocol.can_frames import CanFrame
from understudy.protocol.client import PAUSES, ReconnectSchedule
from understudy.robots.mobile.real.canopen import cia402, services
from understudy.robots.mobile.real.canopen.axis import Axis
from understudy.robots.mobile.real.canopen.services import Sdo, SdoAnswer
from understudy.robots.mobile.real.channels import STALE, TIMEOUT
from understudy.units import NS_PER_MS

MASTER = 127
"""Our own node, whose heartbeat the drives watch."""
BEAT_TIME, BEAT_MS = 0x1017, 100
"""The object with the period of a node's heartbeat, and what is written to it."""
WATCHED_MS = STALE // NS_PER_MS
OUTPUT_PDOS, INPUT_PDOS = (0x200, 0x300), (0x180, 0x280)
"""Identifiers of the process data, without the node."""
_INVALID, _NO_REMOTE = 1 << 31, 1 << 30
_AT_ONCE, _EACH_SYNC = 255, 1
_STATUS, _INPUTS = struct.Struct("<HH"), struct.Struct("<I")
Mapped = Sequence[tuple[int, int, int]]
"""Objects of a PDO: index, sub-index, bits."""


class CanNode:
    """One node of a bus: its configuration, and its process data; ``send`` takes its frames."""

    def __init__(
        self, number: int, send: Callable[[CanFrame], None], log: Callable[[str], None]
    ) -> None:
        self.number = number
        self.axis: Axis | None = None
        self.uses_inputs = False
        self.output_mask = 0
        self.outputs = 0
        self._inputs: int | None = None
        self._send = send
        self._log = log
        self._schedule = ReconnectSchedule(timeout=TIMEOUT, pauses=PAUSES)
        self._queue: deque[Sdo] = deque()
        self._request: Sdo | None = None
        self._due = 0
        """When the answer to the request is late."""
        self._written: dict[tuple[int, int], int] = {}
        self._started = self._beat = self._status_at = self._motion_at = 0
        self._trouble = ""
        self._emergency = 0

    # ── what is known of it ──

    def connected(self, now: int) -> bool:
        """Whether its values are there and fresh."""
        return (
            self._schedule.state == "connected"
            and (self.axis is None or self.axis.heard)
            and now - self._oldest() <= STALE
        )

    def inputs(self, now: int) -> int | None:
        return self._inputs if self.connected(now) else None

    @property
    def running(self) -> bool:
        """Whether it exchanges process data."""
        return self._schedule.state == "connected"

    # ── time ──

    def next_wake(self) -> int | None:
        if self._schedule.state == "waiting":
            return self._schedule.due
        return self._due if self._request else None

    def wake(self, now: int) -> None:
        due = self.next_wake()
        if due is None or due > now:
            return
        if self._schedule.state == "waiting":
            self._begin(now)
        else:
            self._fail(now, "it does not answer")

    def restart(self, now: int) -> None:
        """Configures it from the beginning."""
        self._schedule.restart(now)
        self._begin(now)

    def bus_lost(self, now: int) -> None:
        self._schedule.restart(now)
        self._request, self._inputs = None, None
        self._queue.clear()

    def cycle(self, now: int) -> None:
        """Sends what the motor and the outputs shall do."""
        if self._schedule.state != "connected":
            return
        if now - self._oldest() > STALE:
            self._fail(now, "it is silent")
            return
        self._send_settings(now)
        if self.axis is not None:
            data, text = self.axis.output(now)
            if data:
                self._send(CanFrame(OUTPUT_PDOS[0] + self.number, data))
            if text:
                self._log(text)
        if self.output_mask:
            self._send(CanFrame(OUTPUT_PDOS[1] + self.number, _INPUTS.pack(self.outputs)))

    # ── what it sends ──

    def receive(self, service: int, data: bytes, now: int) -> None:
        """``service``: the identifier of the frame without the node."""
        if service == services.HEARTBEAT and data:
            self._take_heartbeat(data[0] & 0x7F, now)
        elif service == services.SDO_ANSWER and self._request is not None:
            answer = services.answer_to(self._request, data)
            if answer is not None:
                self._take_answer(self._request, answer, now)
        elif service == services.EMERGENCY and len(data) >= 2:
            self._take_emergency(int.from_bytes(data[:2], "little"))
        elif self._schedule.state == "connected":
            self._take_process_data(service, data, now)

    def _take_heartbeat(self, state: int, now: int) -> None:
        self._beat = now
        if state == services.BOOTED:
            self._note("it has started and is configured")
            if self.axis is not None:
                self.axis.restarted()
            self.restart(now)
        elif self.running and state != services.OPERATIONAL and now - self._started > STALE:
            self._fail(now, f"it has left the state operational (now {state})")

    def _take_process_data(self, service: int, data: bytes, now: int) -> None:
        if service == INPUT_PDOS[0] and len(data) >= self._status_size():
            self._status_at = now
            self._schedule.answered()
            if self.axis is not None:
                self.axis.take_status(*_STATUS.unpack_from(data))
            if self.uses_inputs:
                (self._inputs,) = _INPUTS.unpack_from(data, _STATUS.size)
        elif service == INPUT_PDOS[1] and len(data) == 8 and self.axis is not None:
            self._motion_at = now
            self.axis.take_motion(data)

    def _take_emergency(self, code: int) -> None:
        if code != self._emergency:
            self._log(cia402.error_text(code) if code else "its error is gone")
        self._emergency = code

    def _status_size(self) -> int:
        return _STATUS.size + _INPUTS.size * self.uses_inputs

    def _oldest(self) -> int:
        motion = self._status_at if self.axis is None else self._motion_at
        return min(self._beat, self._status_at, motion)

    # ── configuration ──

    def _begin(self, now: int) -> None:
        self._schedule.connect(now)
        self._inputs, self._request = None, None
        if self.axis is not None:
            self.axis.configured_anew()
        self._written.clear()
        self._queue = deque(self._configuration())
        self._send(services.nmt(services.PRE_OPERATIONAL, self.number))
        self._send_next(now)

    def _configuration(self) -> list[Sdo]:
        beat = MASTER << 16 | WATCHED_MS
        found = [
            Sdo(cia402.DEVICE_TYPE, 0, None, 4),
            Sdo(BEAT_TIME, 0, None, 2),
            Sdo(BEAT_TIME, 0, BEAT_MS, 2),
            Sdo(0x1016, 1, beat, 4, needed=False),
            Sdo(cia402.LOST_CONNECTION_OPTION, 0, cia402.QUICK_STOP_REACTION, 2, needed=False),
        ]
        inputs = [(cia402.INPUTS, 0, 32)] if self.uses_inputs else []
        found += self._pdo(0x1800, 0, [(cia402.STATUS, 0, 16), (cia402.ERROR, 0, 16), *inputs])
        if self.axis is not None:
            axis = self.axis
            target = cia402.TARGET_POSITION if axis.positions else cia402.TARGET_VELOCITY
            motion = [(cia402.POSITION, 0, 32), (cia402.VELOCITY, 0, 32)]
            found += self._pdo(0x1800, 1, motion)
            found += self._pdo(0x1400, 0, [(cia402.CONTROL, 0, 16), (target, 0, 32)])
            found += axis.settings()
        if self.output_mask:
            found += self._pdo(0x1400, 1, [(cia402.OUTPUTS, 1, 32)])
            found.append(Sdo(cia402.OUTPUTS, 2, self.output_mask, 4, needed=False))
        return found

    def _pdo(self, first: int, which: int, objects: Mapped) -> list[Sdo]:
        """The requests that map a PDO: it is made invalid, mapped, and made valid again."""
        sends = first == 0x1800
        identifier = (INPUT_PDOS if sends else OUTPUT_PDOS)[which] + self.number
        identifier |= _NO_REMOTE * sends
        at, mapping = first + which, first + which + 0x200
        entries = [
            Sdo(mapping, sub, index << 16 | of << 8 | bits, 4)
            for sub, (index, of, bits) in enumerate(objects, 1)
        ]
        return [
            Sdo(at, 1, identifier | _INVALID, 4),
            Sdo(mapping, 0, 0, 1),
            *entries,
            Sdo(mapping, 0, len(objects), 1),
            Sdo(at, 2, _EACH_SYNC if sends else _AT_ONCE, 1),
            Sdo(at, 1, identifier, 4),
        ]

    def _send_settings(self, now: int) -> None:
        """Sends the settings that have changed since they were sent."""
        if self.axis is None or self._request or self._queue:
            return
        for each in self.axis.settings():
            if self._written.get((each.object, each.sub)) != each.value:
                self._queue.append(each)
        self._send_next(now)

    def _send_next(self, now: int) -> None:
        if self._queue:
            self._request = self._queue.popleft()
            self._due = now + TIMEOUT
            self._send(self._request.frame(self.number))

    def _take_answer(self, request: Sdo, answer: SdoAnswer, now: int) -> None:
        self._request = None
        if answer.refused:
            reason = f"it refuses {request.name}: {answer.refused}"
            if request.needed:
                self._fail(now, reason)
                return
            self._log(reason)
        if request.object == cia402.DEVICE_TYPE and answer.value & 0xFFFF != cia402.DRIVE:
            self._fail(now, f"it is no drive: its device type is {answer.value:08X}h")
            return
        is_kept = request.object != BEAT_TIME or answer.value == BEAT_MS
        if self.axis is not None and request.value is None and not is_kept:
            # It has started again, unheard: our setting is gone.
            self.axis.restarted()
        if request.value is not None:
            self._written[request.object, request.sub] = request.value
            if self.axis is not None:
                self.axis.setting_changed(request.object)
        self._send_next(now)
        if self._request is None and self._schedule.state == "connecting":
            self._start(now)

    def _start(self, now: int) -> None:
        self._send(services.nmt(services.START, self.number))
        self._schedule.connected()
        self._started = self._beat = self._status_at = self._motion_at = now
        self._trouble = ""
        self._log("configured and started")

    def _fail(self, now: int, reason: str) -> None:
        """Stops the drive, and tries again after a pause."""
        self._note(reason)
        if self.axis is not None and self._started:
            if self.running:
                self._send(CanFrame(OUTPUT_PDOS[0] + self.number, self.axis.stop()))
            self._send(Sdo(cia402.CONTROL, 0, cia402.QUICK_STOP, 2).frame(self.number))
        self._request, self._inputs = None, None
        self._queue.clear()
        self._schedule.failed(now)

    def _note(self, reason: str) -> None:
        """Logs why it does not run, once for attempts that end in the same way."""
        if reason != self._trouble:
            self._log(reason)
        self._trouble = reason
