"""WeldingSequencer: a seam as G-code lines for a simulated or a REAL controller.

The controller waits for the arc, with M66. The lines of the seam are sent only after the result of
M66 is known, so the torch never moves along the seam without an arc.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.units import NS_PER_MS

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


class JobStatus(Struct, frozen=True):
    """The phase of a seam; `fault`: the reason of a fault."""

    phase: Phase
    fault: str


class State(Struct):
    """The state that snapshots hold; `poll`: the time of the next poll."""

    phase: Phase = "Idle"
    fault: str = ""
    seam: list[str] = []
    poll: int | None = None


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
        self.state = State(seam=list(seam))
        self._go("start", now)
        self._send(opening(self._settings), now)
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
            self._fail(status.error_message, now)
        elif not status.moving:
            self._come_to_rest(self._controller.input_result(), now)

    def _come_to_rest(self, read: float, now: int) -> None:
        """The controller is at rest: it has done its lines, or it was stopped."""
        starting = self.state.phase == "Starting"
        if starting and read == ARC_SEEN:
            self._go("arc", now)
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
        return JobStatus(self.state.phase, self.state.fault)

    # ── inside ──

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
