"""What a recording of a grblHAL controller shows: lines, reports, delays of answers.

    @ 1.000  > G1 X10 F500      the lines that were accepted make the program
    @ 1.002  < ok               … and M3 with $394 holds this answer back
    @ 1.100  > ?                from the question to the report: the delay of the answer
    @ 1.103  < <Run|MPos:…>     where the axes were: compared with the planned motion

The program is planned again with other settings, from rest to rest. Motion that the client stopped,
held, jogged or slowed down by an override is left out.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.dialect import DELAYS_PER_SECOND
from understudy.gcode.requests import AxisMove, Move, sets_outputs_without_move
from understudy.motion.lines import seam
from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import PartPlanner
from understudy.offline.fit import (
    Keys,
    Measured,
    Parameter,
    Recorded,
    Reports,
    events_of,
)
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import PlannedMotion, Standstill, walk
from understudy.robots.grblhal.face import pieces
from understudy.robots.grblhal.machine.machine import Config
from understudy.robots.grblhal.machine.mover import MachineMover
from understudy.robots.grblhal.numbers import AXIS_LETTERS, Realtime, SettingNumber
from understudy.robots.grblhal.offline import machine_setup
from understudy.robots.grblhal.setting_table import SETTINGS
from understudy.robots.grblhal.settings import Settings
from understudy.simulation.io.virtual_io import Config as IoConfig
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.units import seconds
from understudy.wire.chat import Chat
from understudy.wire.connection import Event

SETTING = re.compile(r"\$(\d+)=([-+0-9.]+)")
REPORT = re.compile(r"<(\w+)(?::\d+)?\|(.*)>")
QUESTIONS = (Realtime.STATUS, Realtime.STATUS_LEGACY, Realtime.STATUS_8BIT, Realtime.FULL_STATUS)
HARMLESS = (*QUESTIONS, Realtime.AUTO_REPORT, Realtime.MODES, Realtime.FEED_100)
"""Real-time bytes that do not change the motion of a program."""
MOVES_ITSELF = re.compile(r"^\$(H|J=)|G(28|30|38)(?!\d)", re.IGNORECASE)
"""Lines whose motion the program alone does not tell: a new piece begins behind them."""
MODE_GROUPS = {
    **dict.fromkeys(("G0", "G1", "G2", "G3"), "motion"),
    **dict.fromkeys(("G17", "G18", "G19"), "plane"),
    **dict.fromkeys(("G20", "G21"), "units"),
    **dict.fromkeys(("G90", "G91"), "distance"),
    **dict.fromkeys(("G93", "G94"), "feed"),
}
DELAYS = {
    "M3": SettingNumber.SPINDLE_DELAY,
    "M4": SettingNumber.SPINDLE_DELAY,
    "M5": SettingNumber.SPINDLE_OFF_DELAY,
    "M7": SettingNumber.COOLANT_DELAY,
    "M8": SettingNumber.COOLANT_DELAY,
}
SWITCH = re.compile(r"M0*([34578])(?!\d)", re.IGNORECASE)
OUTPUT_CHANGES = {"M62": True, "M63": False, "M64": True, "M65": False}
WAITED = 1.5
"""Times the usual delay of an answer, from which on M66 has waited for its input."""
REST = "G4P0"
"""A line at which motion ends; stands where the client let the machine come to rest."""
UNASKED_SHARE = 0.5
"""Share of reports without a question, above which the controller sends them by itself."""
TOP_SPEEDS = 5
FEW_PLACES = 20
"""Different positions of an axis from which on their smallest difference is that of its steps."""


class Line(NamedTuple):
    """A line of the client that was accepted, and when it was sent and answered."""

    text: str
    sent: float
    answered: float


class Report(NamedTuple):
    """A status report: its state, its machine position and how long it was waited for."""

    at: float
    state: str
    position: tuple[float, ...]
    waited: float | None


@dataclass
class Conversation:
    """What one client and the controller said. `disturbed`: when the client interfered with motion,
    by bytes that hold, stop or override."""

    lines: list[Line] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    settings: dict[int, float] = field(default_factory=dict)
    disturbed: list[float] = field(default_factory=list)
    quantum: float = 1e-3
    offset: tuple[float, ...] = ()
    """The first work offset that was reported."""


def read_conversation(events: Sequence[Event]) -> Conversation:
    """The lines and reports of the transcript of one client."""
    return _Listener(events).conversation


class _Listener:
    """Reads the bytes of both sides."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.conversation = Conversation()
        self._said = self._heard = b""
        self._waiting: list[tuple[str, float]] = []
        self._asked: list[float] = []
        self._ended = b""
        for event in events:
            if event.kind == ">":
                self._say(event.data, seconds(event.at))
            elif event.kind == "<":
                self._hear(event.data, seconds(event.at))

    def _say(self, data: bytes, at: float) -> None:
        for text, command in pieces(data):
            for part in re.split(rb"(\r\n|[\r\n])", text):
                if part in (b"\r", b"\n", b"\r\n"):
                    if part == b"\n" and self._ended == b"\r" and not self._said:
                        self._ended = part
                        continue
                    self._ended = part
                    self._waiting.append((self._said.decode("latin-1").strip(), at))
                    self._said = b""
                elif part:
                    self._said += part
            if command is None:
                continue
            if command in QUESTIONS:
                self._asked.append(at)
            elif command not in HARMLESS:
                self.conversation.disturbed.append(at)
            if command in (Realtime.RESET, Realtime.EXIT):
                self._waiting.clear()
                self._said = b""

    def _hear(self, data: bytes, at: float) -> None:
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            text = line.decode("latin-1").strip()
            if text.startswith("<"):
                self._report(text, at)
            elif found := SETTING.fullmatch(text):
                self.conversation.settings[int(found[1])] = float(found[2])
            elif text == "ok" or text.startswith("error:"):
                self._answer(text, at)
            elif text.startswith("ALARM:"):
                self.conversation.disturbed.append(at)

    def _answer(self, text: str, at: float) -> None:
        if not self._waiting:
            return
        line, sent = self._waiting.pop(0)
        if text != "ok" or not line:
            return
        if found := SETTING.fullmatch(line.replace(" ", "")):
            self.conversation.settings[int(found[1])] = float(found[2])
        self.conversation.lines.append(Line(line, sent, at))

    def _report(self, text: str, at: float) -> None:
        found = REPORT.fullmatch(text)
        if found is None:
            return
        fields = dict(part.partition(":")[::2] for part in found[2].split("|"))
        if "WCO" in fields:
            self.conversation.offset = _numbers(fields["WCO"])
        name = "MPos" if "MPos" in fields else "WPos"
        position = _numbers(fields.get(name, ""))
        if name == "WPos" and self.conversation.offset:
            position = tuple(
                p + o for p, o in zip(position, self.conversation.offset, strict=False)
            )
        waited = at - self._asked.pop(0) if self._asked else None
        if not position or (name == "WPos" and not self.conversation.offset):
            return
        decimals = len(fields[name].partition(",")[0].partition(".")[2])
        self.conversation.quantum = 10.0**-decimals
        self.conversation.reports.append(Report(at, found[1], position, waited))
        if set(fields.get("Ov", "100").split(",")[:2]) != {"100"}:
            self.conversation.disturbed.append(at)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(",") if word)
    except ValueError:
        return ()


# ── the program that was sent, as motions ───────────────────────────────────────────────────────


@dataclass
class Piece:
    """Lines that are planned together, from a known position. `index` gives for each line of the
    program that of the conversation; -1: a rest that was added."""

    program: str
    index: list[int]
    start: Floats


class PlannedMove:
    """`Motion`: the plan of one motion from rest to rest. `units`: of the reports, in those of the
    plan."""

    def __init__(self, plan: Plan, units: Floats | float) -> None:
        self._plan, self._units = plan, units
        self.duration = plan.duration

    def positions(self, times: Floats) -> Floats:
        return self._plan.positions(np.clip(times, 0.0, self.duration)) / self._units


class Span(NamedTuple):
    """The first and last line of a motion, and the lines behind and before which it rests."""

    first: int
    last: int
    after: int | None
    before: int | None


class Call(NamedTuple):
    """A call of a mover that made a part of the path of a motion."""

    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def line(self) -> int:
        line: int | Sequence[int] = self.options["line"]
        return line if isinstance(line, int) else line[0]


class ListeningMover:
    """A mover that keeps the calls, so that the same moves can be planned with other limits."""

    def __init__(self, mover: Mover) -> None:
        self._mover = mover
        self.limits, self.deviation = mover.limits, mover.deviation
        self.axes, self.pose = mover.axes, mover.pose
        self.calls: list[Call] = []

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        found = self._mover.path(move, start, line=line, exact=exact)
        if not isinstance(found, Refused):
            self.calls.append(Call("path", (move, start), {"line": line, "exact": exact}))
        return found


class ListeningStraightMover(ListeningMover):
    """`ListeningMover` around a mover that takes many straight lines at once."""

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool = False
    ) -> Path:
        call = Call("straight", (tuple(moves), start), {"line": tuple(line), "exact": exact})
        self.calls.append(call)
        return planned_path(self._mover, call)


def planned_path(mover: Mover, call: Call) -> Path:
    found: Path = getattr(mover, call.method)(*call.arguments, **call.options)
    return found


def plan_of(calls: Sequence[Call], mover: Mover, setup: Setup) -> Plan:
    """A motion from rest to rest, planned as in an offline walk."""
    planner = PartPlanner(setup.window, setup.profile)
    for call in calls:
        path = planned_path(mover, call)
        if not len(path):
            continue
        entry = 0.0
        if planner and not call.options["exact"]:
            entry = seam(planner.last, path, mover.limits, mover.deviation)
        planner.append(path.with_entry(entry))
    plan = planner.rest(0.0)
    assert plan is not None, "a motion has a path"
    return plan


class MachineMotions:
    """`Motions` of a controller: the program that was sent, planned with other settings."""

    def __init__(
        self,
        talk: Conversation,
        parameters: Sequence[Parameter],
        setup: Setup,
        mover_of: Callable[[Sequence[float]], Mover],
        axes: int,
        units: Floats | float = 1.0,
    ) -> None:
        self.parameters, self._units = parameters, units
        self._setup, self._mover_of, self._talk = setup, mover_of, talk
        self.sets_outputs_alone = sets_outputs_without_move(setup.dialect)
        self.left_out = 0
        self._calls: list[list[Call]] = []
        self.spans: list[Span] = []
        for piece in _pieces(talk, axes):
            self._read(piece)
        self.reports, self.begins = self._assigned()

    def planned(self, values: Sequence[float]) -> list[PlannedMove]:
        mover = self._mover_of(values)
        return [
            PlannedMove(plan_of(calls, mover, self._setup), self._units) for calls in self._calls
        ]

    def _read(self, piece: Piece) -> None:
        """Divides a piece of the program into motions."""
        kind = ListeningStraightMover if hasattr(self._setup.mover, "straight") else ListeningMover
        mover = kind(self._setup.mover)
        found: list[tuple[int, int, int | None]] = []
        spans: list[Span] = []
        rest: int | None = None
        for event in walk(
            piece.program, replace(self._setup, mover=mover), piece.start * self._units
        ):
            if isinstance(event, Standstill):
                line = piece.index[event.line - 1]
                if line >= 0:
                    rest = line
                    if spans and spans[-1].before is None:
                        spans[-1] = spans[-1]._replace(before=line)
            elif isinstance(event, PlannedMotion) and event.plan.duration > 0.0:
                lines = event.plan.path.line
                if found and found[-1][2] is None:  # the part before goes on in this one
                    first = found.pop()[0]
                    spans.pop()
                else:
                    first = int(lines[0])
                last = int(lines[-1])
                found.append((first, last, None if event.goes_on else last))
                spans.append(Span(piece.index[first - 1], piece.index[last - 1], rest, None))
                rest = None if not event.goes_on else rest
        for first, last, _ in found:
            self._calls.append([call for call in mover.calls if first <= call.line <= last])
        self.spans += spans

    def window(self, number: int) -> tuple[float, float]:
        """When a motion can have run: from the line that begins it, or the answer of the rest
        before it, to the answer of the rest behind it, or to the next report at rest."""
        lines, span = self._talk.lines, self.spans[number]
        begins = lines[span.first].sent
        if span.after is not None:
            begins = max(begins, lines[span.after].answered)
        if span.before is not None:
            ends = lines[span.before].answered
        else:
            ends = next(
                (r.at for r in self._talk.reports if r.at > lines[span.last].sent and is_rest(r)),
                float("inf"),
            )
            # The first report at rest may be older than the motion.
            following = number + 1
            if following < len(self.spans):
                ends = max(ends, lines[self.spans[following].first].sent)
        return begins, ends

    def _assigned(self) -> tuple[Reports, Floats]:
        """The reports of each motion, and when it began at the latest."""
        moving = [r for r in self._talk.reports if not is_rest(r)]
        times = [r.at for r in moving]
        begins, found, number = [], [], []
        ended = 0.0
        for k in range(len(self.spans)):
            begin, end = self.window(k)
            begin = max(begin, ended)
            own = moving[bisect_left(times, begin) : bisect_right(times, end)]
            disturbed = any(begin <= at <= end for at in self._talk.disturbed)
            if disturbed:
                self.left_out += 1
                own = []
            begins.append(begin)
            found += own
            number += [k] * len(own)
            ended = own[-1].at if own else ended
        position = np.array([r.position for r in found], dtype=np.float64)
        return (
            Reports(
                np.array(number, dtype=np.int64),
                np.array([r.at for r in found]),
                position.reshape(len(found), -1 if found else 0),
                self._quanta(position) if len(found) else np.zeros(0),
            ),
            np.array(begins),
        )

    def _quanta(self, position: Floats) -> Floats:
        """The resolution of each axis: that of the numbers, or of the steps of its motor."""
        found = np.full(position.shape[1], self._talk.quantum)
        for axis, column in enumerate(position.T):
            gaps = np.diff(np.unique(column))
            if len(gaps) > FEW_PLACES:
                found[axis] = max(found[axis], float(np.min(gaps)))
        return found


def is_rest(report: Report) -> bool:
    return report.state not in ("Run", "Jog", "Home", "Hold")


def _pieces(talk: Conversation, axes: int) -> Iterator[Piece]:
    """The stretches of the program whose start is known."""
    program: list[str] = []
    index: list[int] = []
    modes: dict[str, str] = {}
    start = _position_before(talk, float("inf"), axes, first=True)
    rested = [r.at for r in talk.reports if is_rest(r)]
    moved_from = -1.0
    for number, line in enumerate(talk.lines):
        if MOVES_ITSELF.search(line.text):
            if program and start is not None:
                yield Piece("\n".join(program), index, start)
            program, index, start, moved_from = [], [], None, line.sent
        elif not line.text.startswith("$"):
            if start is None:
                start = _position_before(talk, line.sent, axes, since=moved_from)
                program, index = ["".join(modes.values())] * bool(modes), [-1] * bool(modes)
            elif index and _rested(rested, talk.lines[number - 1].answered, line.sent):
                program.append(REST)
                index.append(-1)
            modes |= _modes(line.text)
            if start is not None:
                program.append(line.text)
                index.append(number)
    if program and start is not None:
        yield Piece("\n".join(program), index, start)


def _rested(times: Sequence[float], begin: float, end: float) -> bool:
    """Whether one of these increasing times lies between two others."""
    k = bisect_left(times, begin)
    return k < len(times) and times[k] < end


def _modes(line: str) -> dict[str, str]:
    """The modes that a line sets, by their groups: they hold in the pieces behind it too."""
    found = {}
    for letter, number in words_of(line):
        word = letter + (number.lstrip("0") or "0")
        group = letter if letter == "F" else MODE_GROUPS.get(word)
        if group:
            found[group] = word
    return found


def _position_before(
    talk: Conversation, at: float, axes: int, *, since: float = -1.0, first: bool = False
) -> Floats | None:
    """The position in the last report at rest in a time; ``first``: in the first report."""
    found = [r for r in talk.reports if is_rest(r) and since < r.at < at]
    if not found:
        return np.zeros(axes) if first else None
    position = found[0 if first else -1].position
    return np.array([*position, *[0.0] * axes][:axes])


# ── delays ──────────────────────────────────────────────────────────────────────────────────────


def delays_of(
    talk: Conversation, endpoint: str, period_at: Keys
) -> tuple[list[Measured], dict[str, dict[str, str]]]:
    """The delay of answers, and the period of reports that come by themselves; ``period_at``: where
    that period stands in the cell file."""
    waits = [r.waited for r in talk.reports if r.waited is not None]
    found, rules = [], {}
    if waits:
        rules["answer_delay"] = {"fault": "message_delay", "on": endpoint}
        found.append(
            Measured(
                ("scenario", "rules", "answer_delay", "parameters", "delay_ms"),
                "delay of answers",
                "ms",
                [1e3 * wait for wait in waits],
                "reports, each with its question",
            )
        )
    unasked = [r.at for r in talk.reports if r.waited is None]
    if len(unasked) > UNASKED_SHARE * len(talk.reports):
        gaps = [b - a for a, b in pairwise(unasked)]
        usual = median(gaps) if gaps else 0.0
        # The mean of neighbours that belong together; its error is that of the ends alone.
        kept = [1e3 * gap for gap in gaps if abs(gap - usual) < 0.5 * usual]
        found.append(Measured(period_at, "period of reports", "ms", kept, "pauses", step=1.0))
    return found, rules


def switch_delays(
    talk: Conversation, motions: MachineMotions, begins: Floats, ends: Floats, settings_at: Keys
) -> tuple[Measured, ...]:
    """How long spindle and coolant hold the answer of their line back ($394, $539, $673)."""
    waits = [r.waited for r in talk.reports if r.waited is not None]
    usual = median(waits) if waits else 0.0
    taken: dict[int, list[float]] = {}
    state = {"spindle": "", "coolant": ""}
    for number, line in enumerate(talk.lines):
        words = SWITCH.findall(line.text)
        if len(words) != 1:
            continue
        word = f"M{words[0]}"
        kind = "spindle" if word in ("M3", "M4", "M5") else "coolant"
        turns = state[kind] != word and not (word == "M5" and not state[kind])
        state[kind] = word
        axes = {letter for letter, _ in words_of(line.text)} & set("XYZABC")
        if not turns or axes:
            continue
        before = [k for k, span in enumerate(motions.spans) if span.last < number]
        rested = float(ends[before[-1]]) if before and len(ends) else 0.0
        shown = any(r.waited is not None for r in talk.reports)
        if not shown and (not before or rested > line.sent):
            continue
        taken.setdefault(int(DELAYS[word]), []).append(
            line.answered - max(line.sent + usual, rested)
        )
    return tuple(
        Measured(
            (*settings_at, row),
            SETTINGS[row].name.lower(),
            "s",
            values,
            "answers",
            step=1.0 / DELAYS_PER_SECOND,
        )
        for row, values in sorted(taken.items())
    )


def output_delays(
    talk: Conversation,
    motions: MachineMotions,
    begins: Floats,
    ends: Floats,
    io: IoConfig,
    links_at: Keys,
) -> tuple[Measured, ...]:
    """How long after an output (M62 … M65) an input follows that M66 waits for: the time of a
    valve, a gripper or a relay. An answer that took no longer than any other, or as long as the
    time-out of its M66, tells nothing. Neither does M62 without a move where the controller sets it
    as soon as its queue is empty."""
    waits = [r.waited for r in talk.reports if r.waited is not None]
    usual = median(waits) if waits else 0.0
    pins = VirtualIO(io)
    links = {
        (pins.do.number(link.output), pins.di.number(link.input)): index
        for index, link in enumerate(io.links)
    }
    seen = set(motions.reports.motion.tolist())
    switched: dict[int, tuple[bool, float]] = {}
    found: dict[tuple[int, int, bool], list[float]] = {}
    for number, line in enumerate(talk.lines):
        words = {letter + (text.lstrip("0") or "0"): text for letter, text in words_of(line.text)}
        change = OUTPUT_CHANGES.keys() & words.keys()
        values = dict(words_of(line.text))
        if change and values.get("P", "").isdecimal():
            word = change.pop()
            at: float | None = line.answered
            if word in ("M62", "M63"):
                own_move = bool(values.keys() & set(AXIS_LETTERS))
                alone = not own_move and motions.sets_outputs_alone
                at = None if alone else _begin_from(motions, begins, number, seen)
            if at is not None:
                switched.pop(int(values["P"]), None)
                switched[int(values["P"])] = (OUTPUT_CHANGES[word], at)
            continue
        if "M66" not in words or not values.get("P", "").isdecimal():
            continue
        if values.get("L", "0") == "0" or not switched:
            switched.clear()
            continue
        pin = int(values["P"])
        output = next((o for o in reversed(switched) if (o, pin) in links), list(switched)[-1])
        on, at = switched[output]
        switched.clear()
        before = [k for k, span in enumerate(motions.spans) if span.last < number]
        rested = float(ends[before[-1]]) if before and len(ends) else 0.0
        took = line.answered - max(line.sent, rested)
        if WAITED * usual < took < float(values.get("Q") or 0.0) - usual:
            found.setdefault((output, pin, on), []).append(line.answered - at)
    measured: dict[tuple[Keys, str], list[float]] = {}
    for (output, pin, on), times in sorted(found.items()):
        index = links.get((output, pin))
        name = f"delay from output {output} to input {pin}"
        if index is not None:
            about: tuple[Keys, str] = (*links_at, index, "delay_ms"), name
        else:
            about = (), f"{name}, switched {'on' if on else 'off'}"
        measured.setdefault(about, []).extend(1e3 * time for time in times)
    return tuple(
        Measured(keys, name, "ms", times, "answers of M66")
        for (keys, name), times in measured.items()
    )


def _begin_from(
    motions: MachineMotions, begins: Floats, number: int, seen: set[int]
) -> float | None:
    """When the motion begins whose first line is this one or behind it; None if the line lies
    within a motion, or if no report was taken in that motion."""
    for k, span in enumerate(motions.spans):
        if span.last >= number:
            return float(begins[k]) if span.first >= number and k in seen else None
    return None


def words_of(line: str) -> list[tuple[str, str]]:
    """The letters of a line with the text of their numbers."""
    return re.findall(r"([A-Za-z])\s*([-+.0-9]*)", re.sub(r"\(.*?\)|;.*", "", line).upper())


# ── a plain machine ─────────────────────────────────────────────────────────────────────────────


def recorded_machine(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """What a recording of a plain machine shows of its settings."""
    given = config.robots[robot]
    endpoint, events = events_of(chat, config, robot, "grblhal")
    talk = read_conversation(events)
    own: Config = given.config
    said = {number: value for number, value in talk.settings.items() if number in SETTINGS}
    base = structs.replace(
        own, settings={**own.settings, **said, int(SettingNumber.SOFT_LIMITS): 0.0}
    )
    place: Keys = ("robots", robot, "settings")
    every = _parameters(base, talk, place)
    visible = [p for p in every if int(p.keys[-1]) not in talk.settings and _moves(p, talk)]
    absent = [p for p in every if int(p.keys[-1]) not in talk.settings and p not in visible]

    def mover_of(values: Sequence[float]) -> MachineMover:
        numbers = (int(p.keys[-1]) for p in visible)
        return MachineMover.of(
            Settings({**base.settings, **dict(zip(numbers, values, strict=True))})
        )

    changed = structs.replace(given, config=base)
    setup = machine_setup(replace(config, robots={**config.robots, robot: changed}), robot)
    setup = replace(setup, modal=_shifted(setup.modal, talk))
    motions = MachineMotions(talk, visible, setup, mover_of, len(AXIS_LETTERS))
    measured, rules = delays_of(talk, endpoint, (*place, int(SettingNumber.REPORT_INTERVAL)))
    return Recorded(
        motions,
        tuple(measured),
        known=tuple(
            (p, talk.settings[int(p.keys[-1])]) for p in every if p not in visible + absent
        ),
        absent=tuple(absent),
        rules=rules,
        notes=notes_of(talk, motions),
        after_fit=lambda begins, ends: (
            *switch_delays(talk, motions, begins, ends, place),
            *output_delays(talk, motions, begins, ends, own.io, ("robots", robot, "io", "links")),
        ),
    )


def notes_of(talk: Conversation, motions: MachineMotions) -> tuple[str, ...]:
    if not talk.reports:
        return ("the recording has no status reports: the client has to send `?`, or 0x8C",)
    if motions.left_out:
        return (f"{motions.left_out} motions left out: held, stopped or overridden",)
    return ()


def _shifted(modal: Modal, talk: Conversation) -> Modal:
    """The modal state at the start, with the work offset that the first report shows."""
    if not any(talk.offset):
        return modal
    x, y, z, a, b, c = (*talk.offset, *[0.0] * 6)[:6]
    first, *others = modal.offsets
    del first
    return structs.replace(modal, offsets=((x, y, z, a, b, c), *others))


def _parameters(base: Config, talk: Conversation, place: Keys) -> list[Parameter]:
    """Accelerations, rates and the deviation at corners."""
    fastest = top_speeds(talk, len(AXIS_LETTERS))

    def value(number: int) -> float:
        return max(base.settings.get(number, SETTINGS[number].default), 1e-3)

    found = []
    for axis, letter in enumerate(AXIS_LETTERS):
        unit = "mm" if axis < 3 else "deg"
        number = int(SettingNumber.ACCELERATION) + axis
        name = f"acceleration of {letter}"
        found.append(
            Parameter((*place, number), name, f"{unit}/s2", value(number), 1e-2, 1e7, scaled=True)
        )
        number = int(SettingNumber.MAXIMUM_RATE) + axis
        start = 60.0 * float(fastest[axis]) or value(number)
        name = f"maximum rate of {letter}"
        found.append(Parameter((*place, number), name, f"{unit}/min", start, 1.0, 1e8, limit=True))
    number = int(SettingNumber.JUNCTION_DEVIATION)
    found.append(
        Parameter((*place, number), "junction deviation", "mm", value(number), 1e-5, 100.0)
    )
    return found


def top_speeds(talk: Conversation, axes: int) -> Floats:
    """The fastest speeds of the axes between two reports of one motion, per second."""
    found = np.zeros((max(len(talk.reports) - 1, 1), axes))
    for k, (a, b) in enumerate(pairwise(talk.reports)):
        took = b.at - a.at
        if took > 0.0 and not is_rest(a) and not is_rest(b):
            count = min(axes, len(a.position))
            change = np.subtract(b.position[:count], a.position[:count])
            found[k, :count] = np.abs(change) / took
    rows = np.sort(found, axis=0)[-TOP_SPEEDS:]
    return np.asarray(np.median(rows, axis=0))


def _moves(parameter: Parameter, talk: Conversation) -> bool:
    """Whether an axis moves in the reports; the deviation at corners needs any motion."""
    number = int(parameter.keys[-1])
    if number == SettingNumber.JUNCTION_DEVIATION:
        return any(not is_rest(r) for r in talk.reports)
    return axis_moves(talk, number % 10)


def axis_moves(talk: Conversation, axis: int) -> bool:
    return len({r.position[axis] for r in talk.reports if axis < len(r.position)}) > 1
