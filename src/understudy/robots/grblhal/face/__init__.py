"""grblHAL on the wire: lines that are answered one by one, and bytes that act at once.

    > G1 X10 F1000\\n        < ok\\r\\n                    (queued, not yet done)
    > ?                      < <Run|MPos:2.956,…|Bf:99,1023|FS:1000,0>\\r\\n
    > G1 X10 U1\\n           < error:36\\r\\n               (and so is every G-code line after it,
    > \\n                    < ok\\r\\n                     until an empty line)

A controller has one serial line. The face serves the newest connection; older connections wait
until it is closed. See docs/robots/grblhal.md.

Real-time bytes are taken out of the stream, the rest waits in a receive buffer:

    "G1 X1?0 F\\x91100\\n"   is   a status request, a feed override, and the line "G1 X10 F100"

CR LF and LF CR are one line end each, also across packets. Control characters and leading spaces
are dropped. A line has at most 256 characters; a longer one is marked as too long.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from understudy.gcode.blocks import COMMANDS as CODES
from understudy.gcode.blocks import SYNCHRONIZED, commands_in, tokenize
from understudy.gcode.dialect import GRBLHAL_MACHINE, TABLE_CODES
from understudy.ports import Deps, Endpoint, FaultSource, LineAnswers
from understudy.ports.decoder import (
    Decoded,
    Decoder,
    Operation,
    Operations,
    Sections,
    Status,
    all_rows,
)
from understudy.ports.fault_reactions import Talk
from understudy.protocol.sessions import NotInjectable, Outbox, ReadyPeers, SessionFace
from understudy.robots.grblhal import numbers
from understudy.robots.grblhal.controller import (
    Edition,
    GrblRobot,
    Notice,
    PinCounts,
)
from understudy.robots.grblhal.face.dollar import COMMAND_HELP, DollarCommands, not_here
from understudy.robots.grblhal.face.dollar import COMMANDS as DOLLAR
from understudy.robots.grblhal.face.reports import (
    SavedReports,
    StatusReports,
    name_field,
    read_answer,
)
from understudy.robots.grblhal.numbers import (
    LONGEST_LINE,
    RX_SIZE,
    ErrorCode,
    Realtime,
    SettingNumber,
)
from understudy.robots.grblhal.reactions import FACE_EXPLORED
from understudy.robots.grblhal.setting_table import SETTINGS, description
from understudy.units import NS_PER_MS

if TYPE_CHECKING:
    from understudy.robots.grblhal.firmware import Firmware

EXPLORED = FACE_EXPLORED
TALKS = {"": Talk(lambda trial, number: b"G4P0.01\n")}

# ── framing ───────────────────────────────────────────────────────────────────────────────────────


BUFFER_BYTES = RX_SIZE - 1
"""Bytes that the receive buffer holds."""
BACKSPACE, DELETE = 0x08, 0x7F
LINE_ENDS = (b"\r", b"\n")
PRINTABLE_COMMANDS = b"?!~"
KEEPING = ("$", "[", "(")

_CUT = re.compile(rb"[\x00-\x07\x09-\x1f?!~\x80-\xbf]")
SILENT = re.compile(rb"(?s:[^\x00-\x1f?!~\x7f-\xff]+|.)")
"""Splits a stream into runs of text without an effect, and single bytes for the rest."""
_ORDINARY = re.compile(rb"[^\x00-\x1f$(;\[\x7f-\xff]*")
_LINE_END = re.compile(rb"[\r\n]")


class FirmwareLine(NamedTuple):
    """A line without its end, and whether it was too long."""

    text: str
    too_long: bool


def pieces(data: bytes) -> Iterator[tuple[bytes, int | None]]:
    """Split into text up to a line end, and the command byte after it, if there is one."""
    at = 0
    for found in _CUT.finditer(data):
        end = found.end()
        if found[0] in LINE_ENDS:
            yield data[at:end], None
        else:
            yield data[at : end - 1], data[end - 1]
        at = end
    yield data[at:], None


class SavedBuffer(Struct):
    """Snapshot of a receive buffer."""

    unread: bytes
    part: bytes
    too_long: bool
    last_end: bytes
    verbatim: str
    cancelled: bool = False
    aside: bytes | None = None


class ReceiveBuffer:
    """The firmware's receive buffer, and the line that is being read from it.

    ``verbatim`` is the character that began a text in which every byte is kept (``$``, ``[`` or
    ``(``), or ``;`` for a comment. ``aside`` are bytes that wait until a tool change has ended.
    """

    def __init__(self) -> None:
        self._unread = bytearray()
        self._at = 0
        self._line = bytearray()
        self._too_long = False
        self._last_end = b""
        self._verbatim = ""
        self._cancelled = False
        self.aside: bytes | None = None

    def put(self, text: bytes) -> None:
        self._unread += text

    def put_back(self, line: FirmwareLine) -> None:
        """Read this line, the last one that was returned, once more."""
        self._unread[self._at : self._at] = line.text.encode("latin-1") + self._last_end

    def flush(self) -> None:
        """Discard all bytes that ``next_line`` has not returned.

        If the last of them ended a line, the second half of that line end may still come.
        """
        dropped = bytes(self._line + self._unread[self._at :])[-1:]
        if dropped:
            self._last_end = dropped if dropped in LINE_ENDS else b""
        self._unread.clear()
        self._at = 0
        self._cancelled, self.aside = False, None
        self._begin()

    def cancel(self) -> None:
        """Discard all bytes. The firmware puts a CAN byte into the buffer, which counts in `Bf`."""
        self.flush()
        self._cancelled = True

    def take_cancel(self) -> bool:
        """Read the CAN byte of `cancel`; true if there was one."""
        cancelled, self._cancelled = self._cancelled, False
        return cancelled

    def set_aside(self) -> None:
        """Keep the unread bytes until `bring_back`."""
        self.aside = bytes(self._unread[self._at :])
        self._unread.clear()
        self._at = 0

    def bring_back(self) -> None:
        """Read on with the bytes that were set aside; newer ones are lost."""
        if self.aside is not None:
            self._unread, self._at, self.aside = bytearray(self.aside), 0, None

    @property
    def waiting(self) -> int:
        """Bytes that are received and not yet read."""
        return len(self._unread) - self._at + self._cancelled

    @property
    def keeps_commands(self) -> bool:
        """Whether printable commands may be plain text: in a `$` line or a comment in
        parentheses."""
        return self._verbatim in KEEPING

    def next_line(self) -> FirmwareLine | None:
        """Read up to the next line end; None if there is none yet."""
        while found := _LINE_END.search(self._unread, self._at):
            self._read(self._unread[self._at : found.start()])
            self._at = found.end()
            second = self._last_end not in (b"", found[0]) and not (self._line or self._too_long)
            if second:  # half of CR LF or LF CR
                self._last_end = b""
                continue
            self._last_end = bytes(found[0])
            return self._end()
        self._read(self._unread[self._at :])
        self._unread.clear()
        self._at = 0
        return None

    def _read(self, text: bytearray) -> None:
        room = LONGEST_LINE - len(self._line)
        if not self._verbatim and len(text) <= room and _ORDINARY.fullmatch(text):
            self._line += text if self._line else text.lstrip(b" ")
            return
        for byte in text:
            if self._too_long:
                return
            if byte == BACKSPACE or (byte == DELETE and self.keeps_commands):
                del self._line[-1:]
            elif byte < DELETE or self.keeps_commands:
                self._add(byte)

    def _add(self, byte: int) -> None:
        if byte == 0x20 and not self._line:
            return
        self._note(chr(byte))
        if len(self._line) < LONGEST_LINE:
            self._line.append(byte)
        else:
            self._too_long = True

    def _note(self, character: str) -> None:
        if (not self._line and character in "$[") or (not self._verbatim and character in "(;"):
            self._verbatim = character
        elif self._verbatim == "(" and character == ")":
            self._verbatim = ""

    def _begin(self) -> None:
        self._line.clear()
        self._too_long, self._verbatim = False, ""

    def _end(self) -> FirmwareLine:
        line = FirmwareLine(self._line.decode("latin-1"), self._too_long)
        self._begin()
        if self._at > BUFFER_BYTES:
            del self._unread[: self._at]
            self._at = 0
        return line

    # ── snapshots ──

    def save(self) -> SavedBuffer:
        return SavedBuffer(
            unread=bytes(self._unread[self._at :]),
            part=bytes(self._line),
            too_long=self._too_long,
            last_end=self._last_end,
            verbatim=self._verbatim,
            cancelled=self._cancelled,
            aside=self.aside,
        )

    def load(self, saved: SavedBuffer) -> None:
        self._unread, self._at = bytearray(saved.unread), 0
        self._line = bytearray(saved.part)
        self._too_long, self._last_end = saved.too_long, saved.last_end
        self._verbatim = saved.verbatim
        self._cancelled, self.aside = saved.cancelled, saved.aside


# ── connections ───────────────────────────────────────────────────────────────────────────────────


BACKLOG = 64 * 1024
"""Bytes beyond the firmware's buffer that are kept for a client that ignores `Bf`."""
READ_SIZE = 1024
"""Bytes read before the face checks again whether the client takes its answers."""
OUTBOX_LIMIT = 256 * 1024
STATUS_BYTES = (Realtime.STATUS_LEGACY, Realtime.STATUS_8BIT)
"""Requests that have no effect while reports are automatic; `?` always has an effect."""

TOOL_CHANGE = "M6"
UNKNOWN_BYTES: Mapping[Edition, tuple[int, ...]] = {"GrblHAL": (), "Grbl": (Realtime.EXIT,)}

ENDPOINTS = {"": Endpoint(serial=True)}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The firmware that answers; `banner` is its name in the greeting. `Grbl` is compiled with
    COMPATIBILITY_LEVEL=1 for senders that know Grbl 1.1 only: `$I` is short, a line is executed
    although the one before it was refused, M6 and the byte 0x03 are unknown."""

    banner: Edition = "GrblHAL"


class FaceState(Struct):
    """The state of the face; `order` are the connections, the served one last. Readers, reports,
    connections and outboxes are filled in for a snapshot.

    `working`: a line was passed to the controller and is not answered yet; `asker` is its client.
    `sticky` is the error number that every G-code line gets after an error. `stalled`: lines wait
    because the client does not take its answers. `asked_in_silence`: a report was requested while
    the controller sends none (homing). `postponed`: a line waits until the machine is at rest.
    """

    readers: dict[str, SavedBuffer] = {}
    reports: SavedReports | None = None
    order: list[str] = []
    outboxes: dict[str, list[bytes]] = {}
    asker: str = ""
    ended: list[str] = []
    sticky: int = 0
    working: bool = False
    next_report: int | None = None
    now: int = 0
    stalled: bool = False
    report_due: bool = False
    asked_in_silence: bool = False
    postponed: bool = False


class Connection:
    """`Session` of one client, with its own receive buffer and outbox."""

    silent = SILENT

    def __init__(self, face: "GrblHalFace", peer: str, unsent: list[bytes] | None = None) -> None:
        self._face = face
        self.peer = peer
        self.outbox = Outbox(lambda: face.ready.add(peer), unsent or ())
        self.buffer = ReceiveBuffer()
        self.ended = False

    def receive(self, data: bytes, now: int) -> None:
        self._face.receive(data, now)

    def take(self, room: int) -> bytes:
        """Bytes to send; none while another connection is served."""
        return self.outbox.take(room) if self._face.serves(self.peer) else b""

    def eof(self, now: int) -> None:
        self.ended = True

    def closed(self, now: int) -> None:
        self._face.close(self.peer, now)

    def credit(self) -> int:
        if self.ended or self.full or not self._face.serves(self.peer):
            return 0
        return max(0, min(BUFFER_BYTES + BACKLOG - self.buffer.waiting, READ_SIZE))

    @property
    def full(self) -> bool:
        """The client does not take its answers; its requests have to wait."""
        return self.outbox.size >= OUTBOX_LIMIT

    def owed(self) -> bool:
        return self._face.owes(self.peer)


# ── what a client can ask ─────────────────────────────────────────────────────────────────────────
# Made from the tables that the firmware reads; a test checks that a recorded session of the real
# firmware has every row.


RECORDED = "tests/robots/grblhal/judge/test_golden_chats.py"

NO_ENCODER = "error:20 as in the firmware: its spindle has no encoder"
NOTES: Mapping[str, tuple[Status, str]] = {
    **dict.fromkeys((*SYNCHRONIZED, "G95"), ("refused", NO_ENCODER)),
    **dict.fromkeys(TABLE_CODES | {"G43.2"}, ("refused", "error:20: no tool table in this build")),
    "G61.1": ("refused", "error:20 as in the firmware"),
    "G64": ("refused", "error:20 as in the firmware"),
    "M428": ("refused", "error:20: only an arm's own dialect has it"),
    "M429": ("refused", "error:20: only an arm's own dialect has it"),
    "G65": ("partly", "the firmware's own macros; there are no files"),
    "G66": ("partly", "there are no files"),
    "G66.1": ("partly", "there are no files"),
    "M98": ("partly", "there are no files"),
    "G5": ("emulated", "cut into lines as the firmware cuts it"),
    "$LIM": ("partly", "the limit inputs; other inputs are left empty"),
    "$HSS": ("partly", "the homing inputs; other inputs are left empty"),
    **dict.fromkeys(("$PINS", "$PINSTATE", "$PORTS"), ("formal", "ok; nothing is listed")),
    "$DWNGRD": ("formal", "ok, without an effect"),
    "$TLR": ("formal", "ok; there is no tool length reference"),
    "$14": ("partly", "an inverted door input does not open the door"),
    "0xA2": ("refused", "error:20: there is no control loop to report"),
}
FIRST_OF_AXES, AFTER_AXES = SettingNumber.STEPS_PER_UNIT, SettingNumber.TRAVEL + 6
WITHOUT_MOTION = "ok without motion, as in the firmware"
STORED = "stored, checked and printed; nothing else reads it"

DOLLAR_MEANINGS: Mapping[str, str] = {
    "X": "clear an alarm",
    "C": "check mode on or off",
    "RST": "restore settings, offsets or everything",
    "SPINDLES": "list the spindles",
    "SPINDLESH": "list the spindles for programs",
    "PINS": "list the pins",
    "PINSTATE": "list the states of the pins",
    "HSS": "states of the homing inputs",
    "SLP": "sleep",
    "RTC": "clock",
    "SDS": "a plug-in's command, not part of this build",
    "SD": "a plug-in's command, not part of this build",
    "SR": "a plug-in's command, not part of this build",
    "REBOOT": "restart the board",
    "O": "toggle optional stop",
    "H": "home all axes",
}
REALTIME_MEANINGS: Mapping[int, str] = {
    Realtime.STATUS: "status report",
    Realtime.STATUS_LEGACY: "status report",
    Realtime.STATUS_8BIT: "status report",
    Realtime.HOLD: "feed hold",
    Realtime.HOLD_8BIT: "feed hold",
    Realtime.START: "cycle start",
    Realtime.START_8BIT: "cycle start",
    Realtime.RESET: "reset",
    Realtime.EXIT: "reset",
    Realtime.STOP: "stop: brake and drop the queue",
    Realtime.MODES: "active modes",
    Realtime.DOOR: "safety door",
    Realtime.JOG_CANCEL: "end a jog",
    Realtime.FULL_STATUS: "status report with all fields",
    Realtime.AUTO_REPORT: "automatic reports on or off",
    Realtime.TOOL_ACKNOWLEDGE: "acknowledge a tool change",
    Realtime.CONTROL_LOOP_LOG: "report of the control loop",
    **{
        byte: f"{what} override {f'{percent:+d}' if relative else percent} %"
        for byte, (what, percent, relative) in numbers.OVERRIDES.items()
    },
    **{byte: f"toggle {what}" for byte, what in numbers.TOGGLES.items()},
}


def realtime_name(byte: int) -> str:
    """The name of a real-time command: its character, or its number."""
    return chr(byte) if byte in b"?!~" else f"0x{byte:02X}"


@cache
def operations() -> Sections:
    return {
        "G and M codes": [*_codes(), _row("T", "number of the next tool")],
        "$ commands": list(_dollar()),
        "Settings": list(_settings()),
        "Real-time bytes": [
            _row(realtime_name(byte), text) for byte, text in REALTIME_MEANINGS.items()
        ],
    }


@cache
def operations_of_wire() -> Operations:
    return all_rows(operations())


def _row(name: str, meaning: str, status: Status = "emulated", note: str = "") -> Operation:
    status, note = NOTES.get(name, (status, note))
    return Operation(name, meaning, status, "real firmware", RECORDED, note)


def _codes() -> Iterator[Operation]:
    for name, code in CODES.items():
        if name in GRBLHAL_MACHINE.accepted_only:
            yield _row(name, code.meaning, "formal", WITHOUT_MOTION)
        else:
            yield _row(name, code.meaning)


def _dollar() -> Iterator[Operation]:
    helped = {name.partition("=")[0]: text.rstrip(".") for name, text in COMMAND_HELP}
    yield _row("$", "short help")
    yield _row("$HELP", "help on commands and settings")
    for name, command in DOLLAR.items():
        axis = name[1:] if name.startswith("H") and len(name) == 2 else ""
        meaning = DOLLAR_MEANINGS.get(name) or helped.get(name, f"home axis {axis}" if axis else "")
        if command.run is not_here:
            yield _row(f"${name}", meaning, "refused", "error:3: this build does not have it")
        else:
            yield _row(f"${name}", meaning)


def _settings() -> Iterator[Operation]:
    acting = {number for number in vars(SettingNumber).values() if isinstance(number, int)}
    for number in sorted(SETTINGS):
        if number in acting or FIRST_OF_AXES <= number < AFTER_AXES:
            yield _row(f"${number}", description(number))
        else:
            yield _row(f"${number}", description(number), "formal", STORED)


OPERATIONS = operations


# ── the decoder ───────────────────────────────────────────────────────────────────────────────────


DISCARDING = (Realtime.RESET, Realtime.STOP)
"""Bytes that discard the line that has begun."""


def cut_requests(data: bytes) -> tuple[list[bytes], bytes]:
    """Real-time bytes, and lines without those that are inside them."""
    requests: list[bytes] = []
    line = b""
    for text, byte in pieces(data):
        line += text
        if byte is None:
            if line in LINE_ENDS and requests and requests[-1][-1:] in LINE_ENDS:
                requests[-1] += line  # the second half of CR LF
                line = b""
            elif line[-1:] in LINE_ENDS:
                requests.append(line)
                line = b""
        elif byte in PRINTABLE_COMMANDS and _keeps_commands(line):
            line += bytes((byte,))
        else:
            if byte in DISCARDING and line:
                requests.append(line)
                line = b""
            requests.append(bytes((byte,)))
    return requests, line


def _keeps_commands(line: bytes) -> bool:
    """Whether printable commands are text behind the begin of this line."""
    return line.lstrip()[:1] in (b"$", b"[") or line.rfind(b"(") > line.rfind(b")")


def read_request(data: bytes, address: str) -> Decoded:
    """The commands of a line and the values of its words; or the name of a real-time command."""
    if len(data) == 1 and data not in LINE_ENDS and _CUT.match(data):
        return Decoded((realtime_name(data[0]),))
    text = data.decode("latin-1").strip()
    if text.startswith("$"):
        name, equals, value = text.partition("=")
        name = name.replace(" ", "").upper()
        name = "$HELP" if name.startswith("$HELP") else name
        return Decoded((name,), {"value": value} if equals else {})
    words = {word.letter: word.value for word in tokenize(text).words}
    names = dict.fromkeys("T" if name[0] == "T" else name for name in commands_in(text))
    return Decoded(tuple(names), {key: words[key] for key in words if key not in "GM"})


DECODER = Decoder(
    cut_requests=cut_requests,
    read_request=read_request,
    read_answer=read_answer,
    name_field=name_field,
    operations=operations_of_wire,
    line_answers=LineAnswers(greeting_lines=2, ends=("ok", "error:", "ALARM:")),
)


# ── the face ──────────────────────────────────────────────────────────────────────────────────────


class GrblHalFace(SessionFace[Connection], NotInjectable):
    """`Face`: the firmware's side of its serial line.

    ``_reading`` is the line in execution, if the machine stood when lines were read.
    """

    decoder = DECODER

    def __init__(
        self,
        name: str,
        controller: "Firmware",
        pins: PinCounts,
        fault_source: FaultSource,
        *,
        edition: Edition = "GrblHAL",
    ) -> None:
        self.name = name
        self._edition = edition
        self._fault_source = fault_source
        self.ready = ReadyPeers()
        self._controller = controller
        self._sessions: dict[str, Connection] = {}
        self._unconnected = ReceiveBuffer()
        self._state = FaceState()
        self._reports = StatusReports()
        self._dollar = DollarCommands(
            controller, pins, say=self._say, note=self._reports.note, edition=edition
        )
        self._reading: FirmwareLine | None = None
        controller.listen(self._on_notice)

    # ── face ──

    def open(self, peer: str, now: int) -> Connection:
        self._sessions[peer] = Connection(self, peer)
        self._reports.restart_counters()
        self._greet(locked=False)
        return self._sessions[peer]

    def close(self, peer: str, now: int) -> None:
        """Discard the bytes of this connection and serve the connection before it."""
        self._sessions.pop(peer, None)
        if served := self._served():
            self.ready.add(served.peer)
        self._serve(now)

    def next_wake(self) -> int | None:
        return (
            self._state.now if self._state.stalled and not self._full() else self._state.next_report
        )

    def wake(self, now: int) -> None:
        self._state.now = now
        if self._state.stalled:
            self._state.stalled = False
            self._serve(now)
        if self._state.next_report is not None and self._state.next_report <= now:
            self._state.next_report = self._following_report(now)
            if self._served() is not None and not self._full():
                self._report(now)

    def status(self, now: int) -> dict[str, int]:
        return {"clients": len(self._sessions), "unread": self._buffer.waiting}

    def save(self) -> FaceState:
        return replace(
            self._state,
            readers={peer: session.buffer.save() for peer, session in self._sessions.items()},
            reports=self._reports.save(),
            order=list(self._sessions),
            outboxes={peer: session.outbox.save() for peer, session in self._sessions.items()},
            ended=[peer for peer, session in self._sessions.items() if session.ended],
        )

    def load(self, state: Any) -> None:
        self._state = saved = msgspec.convert(state, FaceState)
        if saved.reports is None:
            raise msgspec.ValidationError("reports: null")
        self._reports.load(saved.reports)
        self._sessions = {
            peer: Connection(self, peer, saved.outboxes[peer]) for peer in saved.order
        }
        for peer, session in self._sessions.items():
            session.buffer.load(saved.readers[peer])
            session.ended = peer in saved.ended

    # ── for the connections ──

    def serves(self, peer: str) -> bool:
        """Whether this is the newest connection."""
        return next(reversed(self._sessions), None) == peer

    def owes(self, peer: str) -> bool:
        """Whether an answer is pending; one that waits for an operator does not count."""
        waits = self._state.working and (peer == self._state.asker or self.serves(peer))
        return waits and not self._controller.lines.waits_for_operator(self._state.now)

    def receive(self, data: bytes, now: int) -> None:
        self._state.now = now
        for text, byte in pieces(data):
            if text:
                self._buffer.put(text)
                self._serve(now)
            if byte is None:
                continue
            if byte in PRINTABLE_COMMANDS and self._is_text():
                self._buffer.put(bytes((byte,)))
            else:
                self._act(byte, now)

    @property
    def _buffer(self) -> ReceiveBuffer:
        served = self._served()
        return self._unconnected if served is None else served.buffer

    def _is_text(self) -> bool:
        """Unless $39 is set, `?`, `!` and `~` are plain text in `$` lines and comments."""
        legacy = self._controller.storage.settings()[SettingNumber.LEGACY_REALTIME]
        return self._buffer.keeps_commands and not legacy

    # ── lines ──

    def _serve(self, now: int) -> None:
        """Pass lines to the controller as long as it accepts them."""
        ran = self._controller.lines.runs(now)
        while not self._state.working and self._controller.lines.accepts_line(now):
            self._state.stalled = self._full()
            if self._state.stalled or self._awaits_rest(now):
                break
            if self._buffer.take_cancel():
                self._state.sticky = 0
            line = self._buffer.next_line()
            self._send_due_report(now)
            if line is None:
                return
            self._state.working, self._state.asker = True, next(reversed(self._sessions), "")
            self._reading = None if ran else line
            code = self._execute(line, now)
            if code is not None:
                self._conclude(code, now)
            self._reading = None
            after, self._dollar.after = self._dollar.after, None
            if after is not None:
                after(now)
        self._send_due_report(now)

    def _conclude(self, code: int, now: int) -> None:
        """Answer, or try the line again when the machine is at rest: motion of lines that waited
        together with it would not have begun yet in the firmware, which reads all of them first."""
        line = self._reading
        if code == ErrorCode.NOT_IDLE and line is not None and self._controller.lines.runs(now):
            self._buffer.put_back(line)
            self._state.working, self._state.postponed = False, True
        else:
            self._answer(code)

    def _awaits_rest(self, now: int) -> bool:
        """Whether a postponed line has to wait."""
        self._state.postponed = self._state.postponed and self._controller.lines.runs(now)
        if self._state.postponed:
            self._controller.lines.call_at_rest(now)
        return self._state.postponed

    def _send_due_report(self, now: int) -> None:
        """Send the report that the controller requested; it is sent when the next line is read."""
        if self._state.report_due:
            self._state.report_due = False
            self._report(now)

    def _execute(self, line: FirmwareLine, now: int) -> int | None:
        """The error number, 0 for ok, or None if the controller answers later."""
        text = line.text
        if line.too_long:
            return ErrorCode.TOO_LONG
        commands = commands_in(text)
        for command in commands:
            self._fault_source.received(self.name, command, now)
        if not text:
            return 0
        if text[0] == "$":
            return self._dollar.execute(text, now)
        if refused := self._controller.lines.gcode_refusal(now):
            reading = self._controller.reading(now)
            ends = text == "%" and reading.state == "Alarm" and not reading.critical
            return 0 if ends else refused.code
        if self._state.sticky not in (0, ErrorCode.TOOL_CHANGE_PENDING):
            return self._state.sticky
        if TOOL_CHANGE in commands and self._edition == "Grbl":
            return ErrorCode.UNSUPPORTED
        self._controller.lines.execute(text, now)
        return None

    def _answer_line(self, notice: Notice, now: int) -> None:
        if self._state.working:
            self._conclude(notice.code, now)

    def _answer(self, code: int) -> None:
        self._state.working = False
        self._state.sticky = code if self._edition == "GrblHAL" else 0
        if asker := self._sessions.get(self._state.asker):
            asker.outbox.send(b"error:%d\r\n" % code if code else b"ok\r\n")

    # ── real-time commands ──

    def _act(self, byte: int, now: int) -> None:
        if byte in numbers.OVERRIDES:
            what, percent, relative = numbers.OVERRIDES[byte]
            values = self._controller.reading(now).overrides
            present = values[("feed", "rapid", "spindle").index(what)] if relative else 0
            self._controller.switches.override(what, present + percent, now)
        elif byte in numbers.TOGGLES:
            self._controller.switches.toggle(numbers.TOGGLES[byte], now)
        elif byte == Realtime.STATUS or (byte in STATUS_BYTES and not self._reports.auto):
            self._report(now)
        elif byte in COMMANDS and byte not in UNKNOWN_BYTES[self._edition]:
            COMMANDS[byte](self, now)
        if self._buffer.aside is not None and not self._controller.reading(now).changing:
            self._buffer.bring_back()
        self._serve(now)

    def _full_report(self, now: int) -> None:
        self._reports.ask_all()
        self._report(now)

    def _report(self, now: int) -> None:
        reading = self._controller.reading(now)
        self._state.asked_in_silence = reading.silent
        if reading.silent:
            return
        free = max(0, BUFFER_BYTES - self._buffer.waiting)
        settings, full = self._controller.storage.settings(), self._reports.full
        self._say(self._reports.report(reading, settings, free_bytes=free))
        if not full and self._reports.modes_changed(reading.modal, settings):
            self._dollar.modes(now)

    def _report_now(self, notice: Notice, now: int) -> None:
        if self._state.asked_in_silence or not notice.code:
            self._report(now)

    def _reset(self, now: int) -> None:
        self._state.working = False
        self._controller.realtime.reset(now)

    def _stop(self, now: int) -> None:
        self._flush()
        self._buffer.cancel()
        self._state.working = False
        self._controller.realtime.stop(now)

    def _cancel_jog(self, now: int) -> None:
        self._flush()
        self._buffer.cancel()
        self._controller.realtime.cancel_jog(now)

    def _acknowledge(self, now: int) -> None:
        """Lines are read again while the tool is changed; those that wait are kept for later."""
        if self._controller.switches.acknowledge(now):
            self._buffer.set_aside()

    def _toggle_auto_report(self, now: int) -> None:
        if self._controller.storage.settings()[SettingNumber.REPORT_INTERVAL]:
            self._reports.auto = not self._reports.auto
            self._state.next_report = self._following_report(now)

    def _following_report(self, now: int) -> int | None:
        interval = int(self._controller.storage.settings()[SettingNumber.REPORT_INTERVAL])
        return now + interval * NS_PER_MS if self._reports.auto and interval else None

    # ── notices of the controller ──

    def _on_notice(self, notice: Notice, now: int) -> None:
        self._state.now = now
        NOTICES[notice.kind](self, notice, now)

    def _restarted(self, notice: Notice, now: int) -> None:
        self._flush()
        self._state.sticky, self._state.working = 0, False
        self._state.asked_in_silence = False
        interval = self._controller.storage.settings()[SettingNumber.REPORT_INTERVAL]
        self._reports.restart(auto=bool(interval))
        self._state.next_report = self._following_report(now)
        self._greet(locked=bool(notice.code))

    def _on_event(self, notice: Notice, now: int) -> None:
        if notice.text in ("unlocked", "stop"):  # by `$X` or 0x19, or because the cell has started
            self._state.sticky = 0
        self._say(f"[MSG:{numbers.EVENT_MESSAGES[notice.text]}]")

    def _report_probe(self, notice: Notice, now: int) -> None:
        settings = self._controller.storage.settings()
        if int(settings[SettingNumber.REPORT_OPTIONS]) & numbers.REPORT_PROBE:
            self._dollar.probe(now)

    def _note_report(self, notice: Notice, now: int) -> None:
        self._state.report_due = True

    def _greet(self, *, locked: bool) -> None:
        self._say("")
        self._say(numbers.BANNERS[self._edition])
        if locked:
            self._say(f"[MSG:{numbers.UNLOCK}]")

    def _flush(self) -> None:
        """Discard the bytes that were received and not yet executed, of every client."""
        self._state.postponed = False
        for session in self._sessions.values():
            session.buffer.flush()

    def _void(self, notice: Notice, now: int) -> None:
        self._state.working = False

    def _served(self) -> Connection | None:
        peer = next(reversed(self._sessions), None)
        return None if peer is None else self._sessions[peer]

    def _full(self) -> bool:
        served = self._served()
        return served is not None and served.full

    def _say(self, text: str) -> None:
        """Send a line to the connection that is served, if there is one."""
        if served := self._served():
            served.outbox.send(text.encode("latin-1", "replace") + b"\r\n")


COMMANDS: dict[int, Callable[[GrblHalFace, int], object]] = {
    **dict.fromkeys(
        (Realtime.HOLD, Realtime.HOLD_8BIT),
        lambda face, now: face._controller.realtime.hold(now),
    ),
    **dict.fromkeys(
        (Realtime.START, Realtime.START_8BIT),
        lambda face, now: face._controller.realtime.start(now),
    ),
    **dict.fromkeys((Realtime.RESET, Realtime.EXIT), GrblHalFace._reset),
    Realtime.STOP: GrblHalFace._stop,
    Realtime.MODES: lambda face, now: face._dollar.modes(now),
    Realtime.DOOR: lambda face, now: face._controller.realtime.door(now),
    Realtime.JOG_CANCEL: GrblHalFace._cancel_jog,
    Realtime.FULL_STATUS: GrblHalFace._full_report,
    Realtime.AUTO_REPORT: GrblHalFace._toggle_auto_report,
    Realtime.TOOL_ACKNOWLEDGE: GrblHalFace._acknowledge,
    Realtime.CONTROL_LOOP_LOG: lambda face, now: face._say(f"error:{ErrorCode.UNSUPPORTED}"),
}

NOTICES: dict[str, Callable[[GrblHalFace, Notice, int], object]] = {
    "answer": GrblHalFace._answer_line,
    "alarm": lambda face, notice, now: face._say(f"ALARM:{notice.code}"),
    "reset": GrblHalFace._restarted,
    "event": GrblHalFace._on_event,
    "message": lambda face, notice, now: face._say(f"[MSG:{notice.text}]"),
    "startup": lambda face, notice, now: face._say(
        f">{notice.text}:{f'error:{notice.code}' if notice.code else 'ok'}"
    ),
    "probe": GrblHalFace._report_probe,
    "report": GrblHalFace._note_report,
    "status": GrblHalFace._report_now,
    "changed": lambda face, notice, now: face._reports.note(notice.text),
    "flush": lambda face, notice, now: face._flush(),
    "void": GrblHalFace._void,
    "settled": lambda face, notice, now: face._serve(now),
}


def build(name: str, config: Config, robot: GrblRobot, deps: Deps) -> GrblHalFace:
    return GrblHalFace(
        name, robot.firmware, robot.io.pins, deps.fault_source, edition=config.banner
    )
