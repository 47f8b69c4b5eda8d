"""WeldingSequencer: a seam as G-code lines for a simulated or a REAL controller.

The controller waits for the arc, with M66. The lines of the seam are sent only after the result of
M66 is known, so the torch never moves along the seam without an arc. A seam whose arc was lost goes
on at that place (`go_on`): with an overlap the torch returns to the line, ignites, and welds the
rest of the line and of the seam.
"""

import re
from collections.abc import Mapping, Sequence
from math import dist
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.ports.program import KnowsLoss
from understudy.space.pose import Pose
from understudy.units import DEG, MM, NS_PER_MS

Phase = Literal["Idle", "Starting", "Welding", "Done", "Fault"]
Seconds = Annotated[float, Meta(ge=0, le=3600)]
NotNegative = Annotated[float, Meta(ge=0)]

TRANSITIONS: Mapping[tuple[Phase, str], Phase] = {
    ("Idle", "start"): "Starting",
    ("Done", "start"): "Starting",
    ("Fault", "start"): "Starting",
    ("Starting", "arc"): "Welding",
    ("Starting", "error"): "Fault",
    ("Welding", "over"): "Done",
    ("Welding", "error"): "Fault",
}

ARC_SEEN, ARC_OUT, TIMED_OUT = 1.0, 0.0, -1.0
"""Results of M66 on the input ARC_OK."""
METRES_PER_MINUTE_PER_VOLT, ARC_VOLTS_PER_VOLT = 2.0, 4.0
JOB_BITS = (12, 13, 14, 15)
POLL = 10 * NS_PER_MS
SWITCHED_OFF = ("", "M5", "M9")
"""Lines after a fault; the empty line clears the error of the controller."""


class Controller(Protocol):
    """The controller of the welding robot; its `status` is `moving` while lines run."""

    def send_gcode(self, text: str, now: int) -> Refused | None: ...

    def input_result(self) -> float:
        """The result of the last M66; -1 after its timeout."""
        ...

    def status(self, now: int) -> ControllerStatus: ...

    def tcp(self, now: int) -> Pose: ...


class WeldSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Start and end of a seam, with defaults for steel. None: the setting of the power source.

    `arc_timeout_s`: must exceed the longest ignition of the power source. `crater_s`: time until
    the arc is out, burnback included.
    """

    job: Annotated[int, Meta(ge=0, le=15)] | None = None
    wire_speed_m_min: Annotated[float, Meta(ge=0, le=20)] | None = None
    voltage_volts: Annotated[float, Meta(ge=0, le=40)] | None = None
    arc_timeout_s: Seconds = 7.0
    stabilize_s: Seconds = 0.2
    crater_s: Seconds = 0.58
    post_flow_s: Seconds = 1.0


STEEL = WeldSettings()


def opening(settings: WeldSettings) -> list[str]:
    """Gas, set values, arc, and M66 that waits for the arc."""
    lines = []
    if settings.job is not None:
        on = (bool(settings.job >> bit & 1) for bit in range(len(JOB_BITS)))
        lines += [f"M{64 if bit else 65} P{pin}" for pin, bit in zip(JOB_BITS, on, strict=True)]
    if settings.wire_speed_m_min is not None:
        lines.append(f"M68 E0 Q{settings.wire_speed_m_min / METRES_PER_MINUTE_PER_VOLT:g}")
    if settings.voltage_volts is not None:
        lines.append(f"M68 E1 Q{settings.voltage_volts / ARC_VOLTS_PER_VOLT:g}")
    return ["M7", *lines, "M3", f"M66 P0 L3 Q{settings.arc_timeout_s:g}"]


def closing(settings: WeldSettings) -> list[str]:
    """Arc off, gas off, and M66 that reads whether the arc is out."""
    wait = settings.crater_s + settings.post_flow_s
    return ["M5", f"G4 P{wait:g}", "M9", "M66 P0 L0"]


def seam_lines(seam: Sequence[str], settings: WeldSettings) -> list[str]:
    """The lines after ignition: wait until the arc is stable, weld, end."""
    return [f"G4 P{settings.stabilize_s:g}", *seam, *closing(settings)]


WORD = re.compile(r"([A-Z])\s*([-+]?\d*\.?\d+)")
BACK_MM_MIN = 1200.0
"""Feed of the way back to the seam."""
SAME_TURN = 0.5 * DEG


def rest_of(seam: Sequence[str], line: int, along: float) -> list[str] | Refused:
    """The lines of a seam from a place (m) on one of them on, with the modes of those before."""
    words = [WORD.findall(text.upper()) for text in seam]
    modes = [(a, float(v)) for each in words[: line + 1] for a, v in each]
    motions = [value for letter, value in modes if letter == "G" and value in (0, 1, 2, 3)]
    if motions and motions[-1] in (2, 3):
        return Refused(f"{seam[line]} is an arc: a seam goes on only on a straight line")
    relative = [value for letter, value in modes if letter == "G" and value in (90, 91)]
    scale = 25.4 * MM if ("G", 20.0) in modes else MM
    sent = [f"{letter}{value:g}" for letter, value in modes if letter == "F"][-1:]
    sent += [f"G{value:g}" for value in relative[-1:]] + [f"G{value:g}" for value in motions[-1:]]
    if relative[-1:] != [91]:
        return [" ".join(sent), *seam[line:]] if sent else list(seam[line:])
    way = {letter: float(value) for letter, value in words[line] if letter in "XYZ"}
    if {letter for letter, _ in words[line]} & set("ABCUVW") or not way:
        return Refused(f"{seam[line]} is no straight line of the tool: begin at its start")
    length = dist([0.0] * len(way), list(way.values())) * scale
    left = max(1.0 - along / length, 0.0)
    rest = " ".join(f"{letter}{value * left:.3f}" for letter, value in way.items())
    return [f"{' '.join(sent)} {rest}", *seam[line + 1 :]]


class JobStatus(Struct, frozen=True):
    """The phase of a seam; `fault`: the reason of a fault. `lost_mm`: how far along its line the
    arc was lost."""

    phase: Phase
    fault: str
    lost_mm: float | None = None


class State(Struct):
    """The state that snapshots hold; `poll`: the time of the next poll. `approach`: lines before
    the arc. `base`: lines that the controller had taken before those of the seam. `line`: index of
    the line of the seam that is carried out, `began`: where the tool was when it began, `lost`:
    where the arc was lost on it."""

    phase: Phase = "Idle"
    fault: str = ""
    seam: list[str] = []
    poll: int | None = None
    approach: list[str] = []
    base: int = 0
    line: int = -1
    began: Pose | None = None
    lost: tuple[float, float, float] | None = None


class WeldingSequencer:
    """A component that welds one seam at a time and polls the controller."""

    def __init__(self, controller: Controller, settings: WeldSettings = STEEL) -> None:
        self._controller = controller
        self._settings = settings
        self.state = State()

    def start(self, seam: Sequence[str], now: int) -> Refused | None:
        """Welds along these moves from the present position; refused while another seam runs."""
        if self.busy():
            return Refused("a seam is already running")
        return self._begin(list(seam), [], now)

    def go_on(self, overlap: float, now: int) -> Refused | None:
        """Welds the rest of the seam, from ``overlap`` metres before the place where the arc was
        lost."""
        if self.busy():
            return Refused("a seam is already running")
        state = self.state
        if state.lost is None or state.began is None:
            return Refused("the last seam has lost no arc on one of its lines")
        here, along = self._controller.tcp(now), dist(state.lost, state.began[:3])
        if any(abs(a - b) > SAME_TURN for a, b in zip(here[3:], state.began[3:], strict=True)):
            return Refused("the torch was turned: turn it back as it was on the seam")
        share = max(along - overlap, 0.0) / along if along else 0.0
        place = [b + (e - b) * share for b, e in zip(state.began[:3], state.lost, strict=True)]
        rest = rest_of(state.seam, state.line, share * along)
        if isinstance(rest, Refused):
            return rest
        way = [(there - at) / MM for there, at in zip(place, here[:3], strict=True)]
        words = " ".join(f"{axis}{value:.3f}" for axis, value in zip("XYZ", way, strict=True))
        return self._begin(rest, [f"G91 G1 {words} F{BACK_MM_MIN:g}", "G90"], now)

    def _begin(self, seam: list[str], approach: list[str], now: int) -> Refused | None:
        self.state = State(seam=seam, approach=approach)
        self._go("start", now)
        self._send([*approach, *opening(self._settings)], now)
        return Refused(self.state.fault) if self.state.fault else None

    # ── time ──

    def next_wake(self) -> int | None:
        return self.state.poll

    def wake(self, now: int) -> None:
        """Polls the controller."""
        state = self.state
        if state.poll is None or now < state.poll:
            return
        state.poll = now + POLL
        status = self._controller.status(now)
        if status.error:
            state.lost = self._lost_at(now)
            self._fail(status.error_message, now)
        elif not status.moving:
            self._come_to_rest(self._controller.input_result(), now)
        elif state.phase == "Welding" and (line := status.line - state.base - 2) > state.line:
            state.line, state.began = line, self._controller.tcp(now)

    def _come_to_rest(self, read: float, now: int) -> None:
        """The controller is at rest: it has done its lines, or it was stopped."""
        starting = self.state.phase == "Starting"
        if starting and read == ARC_SEEN:
            self._go("arc", now)
            self.state.base = self._controller.status(now).accepted
            self.state.line, self.state.began = 0, self._controller.tcp(now)
            self._send(seam_lines(self.state.seam, self._settings), now)
        elif starting and read == TIMED_OUT:
            self._fail(f"no arc within {self._settings.arc_timeout_s:g} s", now)
        elif not starting and read == ARC_OUT:
            self._go("over", now)
        else:
            self._fail("the seam was stopped before its end", now)

    # ── component ──

    def busy(self) -> bool:
        return self.state.phase in ("Starting", "Welding")

    def status(self, now: int) -> JobStatus:
        state = self.state
        if state.lost is None or state.began is None:
            return JobStatus(state.phase, state.fault)
        return JobStatus(state.phase, state.fault, dist(state.lost, state.began[:3]) / MM)

    # ── inside ──

    def _lost_at(self, now: int) -> tuple[float, float, float] | None:
        """Where the arc was lost on a line of the seam: as the controller knows it, or the tool."""
        state, controller = self.state, self._controller
        if state.phase != "Welding" or not 0 <= state.line < len(state.seam):
            return None
        place = controller.process_lost() if isinstance(controller, KnowsLoss) else None
        x, y, z, *_ = controller.tcp(now)
        return place or (x, y, z)

    def _go(self, event: str, now: int) -> None:
        self.state.phase = TRANSITIONS[self.state.phase, event]
        self.state.poll = now + POLL if self.busy() else None

    def _send(self, lines: Sequence[str], now: int) -> None:
        for line in lines:
            if refused := self._controller.send_gcode(line, now):
                self._fail(refused.reason, now)
                return

    def _fail(self, fault: str, now: int) -> None:
        """Ends the seam and switches arc and gas off."""
        self._go("error", now)
        self.state.fault = fault
        for line in SWITCHED_OFF:
            self._controller.send_gcode(line, now)
