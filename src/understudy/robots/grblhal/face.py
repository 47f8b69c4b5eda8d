"""grblHAL on the wire: lines that are answered one by one, and bytes that act at once.

    > G1 X10 F1000\\n        < ok\\r\\n                    (queued, not yet done)
    > ?                      < <Run|MPos:2.956,…|Bf:99,1023|FS:1000,0>\\r\\n
    > G1 X10 U1\\n           < error:36\\r\\n               (and so is every G-code line after it,
    > \\n                    < ok\\r\\n                     until an empty line)

One controller has one line to the world: the newest connection is served, the ones before it wait
until it is closed. See docs/faces/grblhal.md.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from understudy.gcode.wire import Notice, Pins, WireController, Wired
from understudy.ports import Deps, FaultSource
from understudy.protocol.sessions import NotInjectable, ReadyPeers, SessionFace
from understudy.robots.grblhal import face_tables as table
from understudy.robots.grblhal.face_connection import Connection
from understudy.robots.grblhal.face_dollar import Dollar
from understudy.robots.grblhal.face_fields import messages, name_field
from understudy.robots.grblhal.face_framing import (
    PRINTABLE_COMMANDS,
    RX_SIZE,
    Line,
    Reader,
    SavedReader,
    commands_in,
    pieces,
)
from understudy.robots.grblhal.face_report import INTERVAL, Reports, SavedReports
from understudy.units import NS_PER_MS

__all__ = ["Config", "GrblHalFace", "build", "messages", "name_field"]

ROBOTS = ("arm", "machine")
"""Kinds of robot that it stands in front of."""
TOO_LONG = 11
LEGACY = 39


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to choose: the dialect is what it is."""


class Saved(Struct):
    """What a snapshot holds of the face; `order` are the connections, the served one last."""

    readers: dict[str, SavedReader]
    reports: SavedReports
    order: list[str]
    outboxes: dict[str, list[bytes]]
    asker: str
    ended: list[str]
    sticky: int
    working: bool
    next_report: int | None


class GrblHalFace(SessionFace[Connection], NotInjectable):
    """`Face`: the firmware's side of its serial line."""

    def __init__(
        self, name: str, controller: WireController, pins: Pins, fault_source: FaultSource
    ) -> None:
        self.name = name
        self._fault_source = fault_source
        self.ready = ReadyPeers()
        self._controller = controller
        self._sessions: dict[str, Connection] = {}
        self._nobodys = Reader()
        self._asker = ""
        self._reports = Reports()
        self._dollar = Dollar(controller, pins, say=self._say, note=self._reports.note)
        self._sticky = 0
        self._working = False
        self._report_due = self._stalled = False
        self._next_report: int | None = None
        self._now = 0
        controller.listen(self._hear)

    # ── face ──

    def open(self, peer: str, now: int) -> Connection:
        self._sessions[peer] = Connection(self, peer)
        self._reports.count_anew()
        self._greet(locked=False)
        return self._sessions[peer]

    def unplug(self, peer: str, now: int) -> None:
        """What it said and was not yet read goes with it; the one before it is heard again."""
        self._sessions.pop(peer, None)
        if served := self._served():
            self.ready.add(served.peer)
        self._serve(now)

    def next_wake(self) -> int | None:
        return self._now if self._stalled and not self._piled_up() else self._next_report

    def wake(self, now: int) -> None:
        self._now = now
        if self._stalled:
            self._stalled = False
            self._serve(now)
        if self._next_report is not None and self._next_report <= now:
            self._next_report = self._following_report(now)
            if self._heeded():
                self._report(now)

    def status(self, now: int) -> dict[str, int]:
        return {"clients": len(self._sessions), "unread": self._reader.waiting}

    def save(self) -> Saved:
        return Saved(
            readers={peer: s.reader.save() for peer, s in self._sessions.items()},
            reports=self._reports.save(),
            order=list(self._sessions),
            outboxes={peer: s.outbox.save() for peer, s in self._sessions.items()},
            asker=self._asker,
            ended=[peer for peer, s in self._sessions.items() if s.ended],
            sticky=self._sticky,
            working=self._working,
            next_report=self._next_report,
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self._reports.load(saved.reports)
        self._sessions = {
            peer: Connection(self, peer, saved.outboxes[peer]) for peer in saved.order
        }
        for peer, session in self._sessions.items():
            session.reader.load(saved.readers[peer])
        for peer in saved.ended:
            self._sessions[peer].ended = True
        self._sticky, self._working, self._asker = saved.sticky, saved.working, saved.asker
        self._next_report = saved.next_report
        self._stalled = self._reader.waiting > 0

    # ── what the connections share ──

    def serves(self, peer: str) -> bool:
        """The newest connection is the one that is plugged in."""
        return next(reversed(self._sessions), None) == peer

    def owes(self, peer: str) -> bool:
        """A line was read whose answer needs time; in Hold, Door and Tool it needs an operator."""
        waits = self._working and (peer == self._asker or self.serves(peer))
        return waits and not self._controller.lines.stranded(self._now)

    @property
    def _reader(self) -> Reader:
        served = self._served()
        return self._nobodys if served is None else served.reader

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        for text, byte in pieces(data):
            if text:
                self._reader.put(text)
                self._serve(now)
            if byte is None:
                continue
            if byte in PRINTABLE_COMMANDS and self._is_text():
                self._reader.put(bytes((byte,)))
            else:
                self._act(byte, now)

    def _is_text(self) -> bool:
        """Unless $39 is set `?`, `!` and `~` are no commands in `$` lines and comments."""
        return self._reader.keeps_commands and not self._controller.memory.settings()[LEGACY]

    # ── lines ──

    def _serve(self, now: int) -> None:
        """Hand lines on as long as the controller takes them."""
        while not self._working and self._controller.lines.listening(now):
            self._stalled = self._piled_up()
            if self._stalled:
                break
            line = self._reader.next_line()
            self._tell_due(now)
            if line is None:
                return
            self._working, self._asker = True, next(reversed(self._sessions), "")
            code = self._take_line(line, now)
            if code is not None:
                self._answer(code)
            after, self._dollar.after = self._dollar.after, None
            if after is not None:
                after(now)
        self._tell_due(now)

    def _tell_due(self, now: int) -> None:
        """A report that the controller wants to be made comes when the next line has been read."""
        if self._report_due:
            self._report_due = False
            self._report(now)

    def _take_line(self, line: Line, now: int) -> int | None:
        """The error number, 0 for ok, or None if the controller will answer."""
        text = line.text
        if line.too_long:
            return TOO_LONG
        for command in commands_in(text):
            self._fault_source.received(self.name, command, now)
        if not text:
            return 0
        if text[0] == "$":
            return self._dollar.execute(text, now)
        if refused := self._controller.lines.barred(now):
            return 0 if text == "%" else refused.code
        if self._sticky:
            return self._sticky
        self._controller.lines.execute(text, now)
        return None

    def _answer_line(self, notice: Notice, now: int) -> None:
        if self._working:
            self._answer(notice.code)

    def _answer(self, code: int) -> None:
        self._working = False
        self._sticky = code
        if asker := self._sessions.get(self._asker):
            asker.outbox.send(b"error:%d\r\n" % code if code else b"ok\r\n")

    # ── bytes that act at once ──

    def _act(self, byte: int, now: int) -> None:
        if byte in table.OVERRIDES:
            what, percent, relative = table.OVERRIDES[byte]
            values = self._controller.reading(now).overrides
            now_at = values[("feed", "rapid", "spindle").index(what)] if relative else 0
            self._controller.knobs.override(what, now_at + percent, now)
        elif byte in table.TOGGLES:
            self._controller.knobs.toggle(table.TOGGLES[byte], now)
        elif byte == ord("?") or (byte in table.STATUS and not self._reports.auto):
            self._report(now)
        elif byte in ACTS:
            ACTS[byte](self, now)
        self._serve(now)

    def _full_report(self, now: int) -> None:
        self._reports.ask_all()
        self._report(now)

    def _report(self, now: int) -> None:
        unread = max(0, RX_SIZE - self._reader.waiting)
        settings = self._controller.memory.settings()
        self._say(self._reports.report(self._controller.reading(now), settings, unread=unread))

    def _stop(self, now: int) -> None:
        self._flush()
        self._working = False
        self._controller.panel.stop(now)

    def _cancel_jog(self, now: int) -> None:
        self._flush()
        self._sticky = 0
        self._controller.panel.cancel_jog(now)

    def _toggle_auto(self, now: int) -> None:
        if self._controller.memory.settings()[INTERVAL]:
            self._reports.auto = not self._reports.auto
            self._next_report = self._following_report(now)

    def _following_report(self, now: int) -> int | None:
        interval = int(self._controller.memory.settings()[INTERVAL])
        return now + interval * NS_PER_MS if self._reports.auto and interval else None

    # ── what the controller says ──

    def _hear(self, notice: Notice, now: int) -> None:
        self._now = now
        HEARD[notice.kind](self, notice, now)

    def _reset(self, now: int) -> None:
        self._working = False
        self._controller.panel.reset(now)

    def _begin_anew(self, notice: Notice, now: int) -> None:
        self._flush()
        self._sticky, self._working = 0, False
        self._reports.begin_anew(auto=bool(self._controller.memory.settings()[INTERVAL]))
        self._next_report = self._following_report(now)
        self._greet(locked=bool(notice.code))

    def _note_report(self, notice: Notice, now: int) -> None:
        self._report_due = True

    def _greet(self, *, locked: bool) -> None:
        self._say("")
        self._say(table.BANNER)
        if locked:
            self._say(f"[MSG:{table.UNLOCK}]")

    def _flush(self) -> None:
        """Whoever stops it, nothing that was said before is run."""
        for session in self._sessions.values():
            session.reader.flush()

    def _void(self, notice: Notice, now: int) -> None:
        self._working = False

    def _served(self) -> Connection | None:
        peer = next(reversed(self._sessions), None)
        return None if peer is None else self._sessions[peer]

    def _heeded(self) -> bool:
        """Somebody takes what is said; what nobody asked for is not piled up."""
        return self._served() is not None and not self._piled_up()

    def _piled_up(self) -> bool:
        served = self._served()
        return served is not None and served.piled_up

    def _say(self, text: str) -> None:
        """To whoever is plugged in; to nobody if nobody is."""
        if served := self._served():
            served.outbox.send(text.encode("latin-1", "replace") + b"\r\n")


ACTS: dict[int, Callable[[GrblHalFace, int], object]] = {
    ord("!"): lambda face, now: face._controller.panel.hold(now),
    0x82: lambda face, now: face._controller.panel.hold(now),
    ord("~"): lambda face, now: face._controller.panel.start(now),
    0x81: lambda face, now: face._controller.panel.start(now),
    0xA3: lambda face, now: face._controller.panel.start(now),
    0x18: GrblHalFace._reset,
    table.STOP: GrblHalFace._stop,
    0x83: lambda face, now: face._dollar.modes(now),
    0x84: lambda face, now: face._controller.panel.door(now),
    table.JOG_CANCEL: GrblHalFace._cancel_jog,
    table.FULL_STATUS: GrblHalFace._full_report,
    table.AUTO_REPORT: GrblHalFace._toggle_auto,
}

HEARD: dict[str, Callable[[GrblHalFace, Notice, int], object]] = {
    "answer": GrblHalFace._answer_line,
    "alarm": lambda face, notice, now: face._say(f"ALARM:{notice.code}"),
    "reset": GrblHalFace._begin_anew,
    "news": lambda face, notice, now: face._say(f"[MSG:{table.NEWS[notice.text]}]"),
    "message": lambda face, notice, now: face._say(f"[MSG:{notice.text}]"),
    "startup": lambda face, notice, now: face._say(
        f">{notice.text}:{f'error:{notice.code}' if notice.code else 'ok'}"
    ),
    "probe": lambda face, notice, now: face._dollar.probe(now),
    "report": GrblHalFace._note_report,
    "changed": lambda face, notice, now: face._reports.note(notice.text),
    "flush": lambda face, notice, now: face._flush(),
    "void": GrblHalFace._void,
    "settled": lambda face, notice, now: face._serve(now),
}


def build(name: str, config: Config, robot: Wired, deps: Deps) -> GrblHalFace:
    return GrblHalFace(name, robot.firmware, robot.io.pins, deps.fault_source)
