"""Welder: a power source that runs through the phases Idle … PostFlow on simulated time.

`Seam` keeps the trail, length and arc time of a weld, and the process rules that it broke.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.devices.welder import (
    ADVICE,
    AMPERES_PER_VOLT,
    ARC_OK,
    ARC_OUT,
    ARC_START,
    ARC_VOLTS_PER_VOLT,
    BURNING,
    CURRENT,
    CURRENT_SHARE,
    FAULT_RESET,
    FAULTS,
    GAS,
    GAS_FLOW,
    GAS_OK,
    HOLDING_GAS,
    JOB_BITS,
    LITRES_PER_MINUTE_PER_VOLT,
    METRES_PER_MINUTE_PER_VOLT,
    READY,
    REASONS,
    TRANSITIONS,
    VOLTAGE,
    VOLTAGE_SHARE,
    WELD_ERROR,
    WIRE_INCH,
    WIRE_RETRACT,
    WIRE_SPEED,
    WIRE_STUCK,
    Config,
    Phase,
    WeldParameters,
)
from understudy.errors import Refused
from understudy.ports.device import DeviceAction, DeviceEvent, Mount, PlotRow, ToolPath
from understudy.ports.faults import Faults
from understudy.ports.hmi import Known, PanelRow, Trail
from understudy.ports.io import PinChange
from understudy.ports.refusals import PROCESS_FAULT
from understudy.units import MM, NS_PER_MS, NS_PER_SECOND, ms_to_ns, nanoseconds, seconds

Floats = NDArray[np.float64]

STEP = 10 * NS_PER_MS
"""The time between two samples of the tool path."""
LOOK = 800 * NS_PER_MS
"""The time between two samples of a burning seam; plans keep one second of the past."""
RARELY = 75
"""Looks that are made at once where there is no trail: those of a minute."""
POINT_DISTANCE = 1.0 * MM
MOST_POINTS = 20_000
MOST_ISSUES = 1000
STANDING = 0.1 * MM
"""Speed in m/s below which the tip counts as at rest."""

Point = tuple[float, float, float]


class ProcessIssue(Struct, frozen=True):
    """A process rule that the weld broke."""

    at: int
    kind: str
    message: str


class SeamState(Struct):
    """The state of the seam in a snapshot: times in ns, lengths in m.

    `burning`, `wanted`: the arc since `seen`. `standing_since`: when the tip stopped under the arc.
    `cold_noted`, `standing_noted`: the rule was noted; reset when the arc burns, or the tip moves.
    `cleared_at`: the tip when the trail was cleared under this arc; the next point is away from it.
    `uncounted`: this arc has burned since before the counters were zeroed.
    """

    seen: int = 0
    burning: bool = False
    wanted: bool = False
    uncounted: bool = False
    arc_on: int = 0
    length: float = 0.0
    trail: list[Point] = []
    cleared_at: Point | None = None
    standing_since: int | None = None
    standing_noted: bool = False
    cold_noted: bool = False
    issues: list[ProcessIssue] = []


class Seam:
    """Samples the tool path while an arc is wanted or burns."""

    def __init__(self, path: ToolPath, standing_limit_s: float) -> None:
        self._path = path
        self._standing_limit = nanoseconds(standing_limit_s)
        self.state = SeamState()
        self._version = 0
        self._draws, self._looks_at_once = True, 1

    def watch(self, now: int, *, burning: bool, wanted: bool) -> None:
        """Sets whether the arc burns and whether it is wanted, from now on."""
        self.look(now)
        state = self.state
        if burning != state.burning:
            state.standing_since, state.standing_noted = None, False
            state.cleared_at, state.uncounted = None, False
        if burning or not wanted:
            state.cold_noted = False
        state.burning, state.wanted = burning, wanted

    def look(self, now: int) -> None:
        """Adds the tool path since the last call."""
        state = self.state
        begins, state.seen = state.seen, now
        if now <= begins or not (state.burning or state.wanted):
            return
        times, points, steps = self._since(begins, now)
        stands = steps / np.diff(times) * NS_PER_SECOND < STANDING
        if state.burning:
            if not state.uncounted:
                state.arc_on += now - begins
                for length in _by_look(steps, np.ndarray.sum):
                    state.length += float(length)
            if self._draws:
                self._extend(points)
            self._check_standing(times, stands)
        elif not (stands.all() or state.cold_noted):
            state.cold_noted = True
            ends = _by_look(times[1:], np.ndarray.max)
            moved = [not still for still in _by_look(stands, np.ndarray.all)]
            at = int(ends[moved.index(True)])
            self.note(at, "cold", "the tool moved along a seam without an arc")

    def look_until(self, now: int) -> None:
        """Makes the looks that are due by now."""
        each, state = LOOK, self.state
        if (state.burning or state.wanted) and now - state.seen >= each:
            self.look(state.seen + (now - state.seen) // each * each)

    def look_rarely(self) -> None:
        """Draws no trail, and adds a minute of the path at once: issues come later."""
        self._draws, self._looks_at_once = False, RARELY

    def zero(self, now: int) -> None:
        """Arc time and length count from zero, with the next arc."""
        self.look(now)
        state = self.state
        state.arc_on, state.length, state.uncounted = 0, 0.0, state.burning

    def next_look(self) -> int | None:
        watched = self.state.burning or self.state.wanted
        return self.state.seen + self._looks_at_once * LOOK if watched else None

    def arc_on(self, now: int) -> int:
        """The arc time so far, in ns."""
        counts = self.state.burning and not self.state.uncounted
        return self.state.arc_on + (now - self.state.seen if counts else 0)

    def length(self, now: int) -> float:
        """The length of tool path under the arc so far, in m."""
        state = self.state
        if not state.burning or state.uncounted or now <= state.seen:
            return state.length
        return state.length + float(self._since(state.seen, now)[2].sum())

    def load(self, state: SeamState) -> None:
        self.state = state
        self._version += 1

    def clear_trail(self, now: int) -> None:
        """Drops the trail so far. An arc that burns on where the tip stands draws no point."""
        self.look(now)
        if self.state.burning:
            self.state.cleared_at = self.tip(now)
        self._replace_trail([])

    def tip(self, now: int) -> Point:
        x, y, z = self._path(np.array([seconds(now)]))[0].tolist()
        return x, y, z

    def trail_since(self, known: Known) -> Trail:
        count, version = (known, self._version) if isinstance(known, int) else known
        trail = self.state.trail
        held = count if version == self._version and 0 <= count <= len(trail) else 0
        return held, trail[held:], self._version

    def _replace_trail(self, trail: list[Point]) -> None:
        self.state.trail = trail
        self._version += 1

    def note(self, now: int, kind: str, message: str) -> None:
        self.state.issues = [
            *self.state.issues[1 - MOST_ISSUES :],
            ProcessIssue(now, kind, message),
        ]

    def _since(self, begins: int, now: int) -> tuple[Floats, Floats, Floats]:
        """Sample times in ns, positions of the tip, and distances between consecutive samples."""
        whole = (now - begins - 1) // LOOK
        last = begins + whole * LOOK
        # The samples do not depend on how many looks are made at once.
        times = np.linspace(last, now, max(2, -(-(now - last) // STEP) + 1))
        if whole:
            times = np.concatenate([np.arange(begins, last, STEP, dtype=np.float64), times])
        points = self._path(times / NS_PER_SECOND)
        return times, points, np.sqrt(np.square(np.diff(points, axis=0)).sum(axis=1))

    def _extend(self, points: Floats) -> None:
        trail = self.state.trail
        last = trail[-1] if trail else self.state.cleared_at
        for x, y, z in points.tolist():
            if last is None or math.dist((x, y, z), last) >= POINT_DISTANCE:
                last = (x, y, z)
                trail.append(last)
        if len(trail) > MOST_POINTS:
            self._replace_trail(trail[::2])

    def _check_standing(self, times: Floats, stands: NDArray[np.bool_]) -> None:
        state = self.state
        edges = np.flatnonzero(np.diff(np.concatenate([[False], stands, [False]]))).tolist()
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if first > 0 or state.standing_since is None:
                state.standing_since, state.standing_noted = int(times[first]), False
            ends = times[first + 1 : last + 1].astype(np.int64)
            over = int(ends.searchsorted(state.standing_since + self._standing_limit, side="right"))
            if over < len(ends) and not state.standing_noted:
                state.standing_noted = True
                limit = seconds(self._standing_limit)
                self.note(
                    int(ends[over]), "standing", f"the arc burned over {limit:g} s in one place"
                )
        if not stands[-1]:
            state.standing_since, state.standing_noted = None, False


def _by_look(samples: NDArray[Any], total: Callable[..., Any]) -> list[Any]:
    """A total of the samples of each look: every look but the last has the same number of them."""
    each = LOOK // STEP
    whole = (len(samples) - 1) // each
    found = total(samples[: whole * each].reshape(-1, each), axis=1).tolist() if whole else []
    return [*found, total(samples[whole * each :])]


STEEL = WeldParameters()
WELD_FAULT = "weld fault"
SWITCH_NAMES = {
    "M3": "Arc",
    "M4": "Arc",
    "M7": "Gas",
    "M8": "Gas",
    f"M64 P{ARC_START}": "Arc",
    f"M62 P{ARC_START}": "Arc",
    f"M64 P{GAS}": "Gas",
    f"M62 P{GAS}": "Gas",
}
"""Words of programs → what they switch on."""

PhaseListener = Callable[[Phase, int], None]


class WeldingState(Struct, frozen=True):
    """The document's WeldingSimState, with the phase and the fault behind it."""

    phase: str
    fault: str
    reason: str
    arc_on: bool
    gas_flowing: bool
    wire_feeding: bool
    current_amps: float
    voltage_volts: float
    wire_speed_m_min: float
    gas_flow_l_min: float
    arc_on_time_s: float
    total_weld_length_mm: float


class State(Struct):
    """The state of the power source in a snapshot. Times in ns; `ends`: the end of this phase.

    `strikes`: when this try ignites the arc. `arc`: it burns. `arc_ok_due`: when the debounced
    signal follows it. `flows_at`: when gas arrives, or arrived, at the torch. `out_since`,
    `out_until`: times of the loss of an arc and of its return. `lost`: where the torch was when the
    last arc went out by itself.
    """

    phase: Phase = "Idle"
    ends: int | None = None
    tries: int = 0
    strikes: int | None = None
    arc: bool = False
    arc_ok_due: int | None = None
    valve: bool = False
    flows_at: int | None = None
    gas_blocked: bool = False
    out_since: int | None = None
    out_until: int | None = None
    lost: Point | None = None
    wire_stuck: bool = False
    ignition_blocked: bool = False
    fault: str = ""
    reason: str = ""
    own_parameters: WeldParameters | None = None
    seam: SeamState = msgspec.field(default_factory=SeamState)


class Welder:
    """A `Device` on the pins of a controller; it drives ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK and
    READY. It offers every optional Protocol of `ports.device` except `HasBodies`."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._config = config
        self._io = io = mount.needed_pins()
        self._fault_source = mount.fault_source
        self._seam = Seam(mount.needed_tool_path(), config.standing_arc_s)
        self.state = State(seam=self._seam.state)
        self._listeners: list[PhaseListener] = []
        for pin in (ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY):
            io.own(pin)
        io.drive(READY, True, 0)
        speed, flow = METRES_PER_MINUTE_PER_VOLT, LITRES_PER_MINUTE_PER_VOLT
        io.drive_analog(CURRENT, lambda now: self._current(now) / AMPERES_PER_VOLT)
        io.drive_analog(VOLTAGE, lambda now: self._voltage(now) / ARC_VOLTS_PER_VOLT)
        io.drive_analog(WIRE_SPEED, lambda now: abs(self._wire_speed()) / speed)
        io.drive_analog(GAS_FLOW, lambda now: self._flow(now) / flow)
        io.on_change(self._pin_changed)

    # ── phases ──

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank != "DO":
            return
        if change.pin == ARC_START:
            self._event("arc_on" if change.value else "arc_off", change.at)
            self._watch_seam(change.at)
        elif change.pin == GAS:
            self.state.valve = change.value
            self._update_gas(change.at)
        elif change.pin == FAULT_RESET and change.value:
            self.reset(change.at)

    def _event(self, event: str, now: int) -> None:
        """Enters the phase that the table has for this event, if it has one."""
        phase = TRANSITIONS.get((self.state.phase, event))
        if phase == "PreFlow" and not (self.state.valve or self._config.auto_gas):
            self._fail("gas", now, "the arc was started with the gas closed")
        elif phase is not None:
            self._enter(phase, now)

    def _enter(self, phase: Phase, now: int) -> None:
        state, config = self.state, self._config
        lengths = {
            "Stabilize": config.stabilize_s,
            "Crater": config.crater_s,
            "Burnback": config.burnback_s,
            "PostFlow": config.post_flow_s,
        }
        state.phase = phase
        state.ends = now + nanoseconds(lengths[phase]) if phase in lengths else None
        if phase not in BURNING:
            self._put_out(now)
        self._update_gas(now)
        if phase == "PreFlow":
            flows = now + self._gas_delay if state.flows_at is None else state.flows_at
            state.ends = max(now, flows + nanoseconds(config.pre_flow_s))
        elif phase == "Ignition":
            state.tries = 0
            self._try_to_ignite(now)
        self._notify(now)

    def _fail(self, fault: str, now: int, reason: str = "") -> None:
        state = self.state
        state.phase, state.fault, state.reason = "Fault", fault, reason or REASONS[fault]
        state.ends = None
        self._note_loss(now)
        if fault == "gas":
            self._seam.note(now, "gas", state.reason)
        self._put_out(now)
        self._io.drive(WELD_ERROR, True, now)
        self._io.drive(READY, False, now)
        self._update_gas(now)
        self._notify(now)

    def _notify(self, now: int) -> None:
        """Notifies the listeners. Always the last step of a change: a listener may continue the
        program at once, which can call this welder again."""
        phase = self.state.phase
        for listener in self._listeners:
            listener(phase, now)

    def _phase_over(self, now: int) -> None:
        state, config = self.state, self._config
        state.ends = None
        if state.phase == "PreFlow" and not self._io.is_driven(GAS_OK):
            self._fail("gas", now)
        elif state.phase != "Ignition":
            self._event("over", now)
        elif state.tries < config.ignition_tries:
            self._try_to_ignite(now)
        else:
            tries = f"{config.ignition_tries} tries of {config.ignition_timeout_s:g} s"
            self._fail("ignition", now, f"no arc after {tries}")
        if state.phase == "PostFlow" and self._io.digital_output(ARC_START):
            self._event("arc_on", now)  # ARC_START rose again before the last arc was out

    # ── gas ──

    @property
    def _gas_delay(self) -> int:
        """The delay of a link onto GAS_OK, if there is one, else the configured delay."""
        linked = self._io.link_delay(GAS_OK)
        return ms_to_ns(self._config.gas_delay_ms) if linked is None else linked

    def _update_gas(self, now: int) -> None:
        state = self.state
        active = state.phase not in ("Idle", "Fault")
        wanted = state.valve or state.phase in HOLDING_GAS or (self._config.auto_gas and active)
        open_ = wanted and not state.gas_blocked
        if open_ and state.flows_at is None:
            state.flows_at = now + self._gas_delay
        elif not open_ and state.flows_at is not None:
            state.flows_at = None
            if active:
                self._fail("gas", now)
            self._io.drive(GAS_OK, False, now)

    def _gas_arrives(self) -> int | None:
        flows = self.state.flows_at
        enough = self._config.gas_flow_l_min >= self._config.gas_minimum_l_min
        return flows if enough and not self._io.is_driven(GAS_OK) else None

    # ── arc ──

    def _try_to_ignite(self, now: int) -> None:
        state = self.state
        state.tries += 1
        state.ends = now + nanoseconds(self._config.ignition_timeout_s)
        missed = self._fault_source.draw_fault("ignition_failure", self._name, now) is not None
        linked = self._io.link_delay(ARC_OK)
        takes = nanoseconds(self._config.ignition_time_s) if linked is None else linked
        state.strikes = None if missed or state.ignition_blocked else now + takes

    def _strike(self, now: int) -> None:
        """The arc ignites; the phase ends when ARC_OK follows."""
        self.state.ends = self.state.strikes = self.state.lost = None
        self._burn(True, now)

    def _burn(self, burns: bool, now: int) -> None:
        self.state.arc = burns
        self._watch_seam(now)
        ms = self._config.arc_ok_on_ms if burns else self._config.arc_ok_off_ms
        self.state.arc_ok_due = now + ms_to_ns(ms)

    def _put_out(self, now: int) -> None:
        """Ends the arc, or the try to ignite it."""
        state = self.state
        state.strikes = state.out_since = state.out_until = None
        if state.arc:
            self._burn(False, now)

    def _note_loss(self, now: int) -> None:
        """An arc that burns goes out, and no program wants it to."""
        if self.state.arc:
            self.state.lost = self._seam.tip(now)

    def _signal_arc(self, now: int) -> None:
        self.state.arc_ok_due = None
        self._io.drive(ARC_OK, self.state.arc, now)
        if self.state.arc:
            self._event("arc_ok", now)

    def _come_back(self, now: int) -> None:
        self.state.out_since = self.state.out_until = self.state.lost = None
        self._burn(True, now)

    def _lost_at(self) -> int | None:
        since = self.state.out_since
        return None if since is None else since + nanoseconds(self._config.arc_lost_s)

    def _watch_seam(self, now: int) -> None:
        wanted = self._io.digital_output(ARC_START)
        self._seam.watch(now, burning=self.state.arc, wanted=wanted)

    # ── time ──

    def _due_times(self) -> tuple[int | None, ...]:
        """When each of `_ACTS` is due, in their order."""
        state = self.state
        return (
            self._gas_arrives(),
            state.strikes,
            state.arc_ok_due,
            state.out_until,
            self._lost_at(),
            state.ends,
            self._seam.next_look(),
        )

    def next_wake(self) -> int | None:
        return min([at for at in self._due_times() if at is not None], default=None)

    def wake(self, now: int) -> None:
        while due := [at for at in self._due_times() if at is not None and at <= now]:
            _ACTS[self._due_times().index(min(due))](self, min(due))

    def catch_up(self, now: int) -> None:
        self._seam.look(now)

    # ── operator and programs ──

    def set_weld_parameters(
        self, current: float, voltage: float, wire_speed: float
    ) -> Refused | None:
        """Sets A, V and m/min in place of the weld job."""
        for value in (current, voltage, wire_speed):
            if not 0.0 <= value < math.inf:
                return Refused(f"{value:g} cannot be set on a power source")
        self.state.own_parameters = WeldParameters(current, voltage, wire_speed)
        return None

    def actions(self) -> Mapping[str, DeviceAction]:
        doc = "set current, voltage and wire speed of a welder in place of its weld job"
        parameters = ("current_a", "voltage_v", "wire_speed_m_min")

        def run(now: int, *values: float) -> Refused | None:
            return self.set_weld_parameters(*values)

        return {"set_weld_parameters": DeviceAction(doc, parameters, run)}

    def reset(self, now: int) -> None:
        state = self.state
        state.wire_stuck = state.gas_blocked = state.ignition_blocked = False
        state.fault = state.reason = ""
        self._io.drive(WIRE_STUCK, False, now)
        self._io.drive(WELD_ERROR, False, now)
        self._io.drive(READY, True, now)
        self._event("reset", now)
        self._update_gas(now)

    def zero_counters(self, now: int) -> None:
        self._seam.zero(now)

    @property
    def running(self) -> bool:
        return self.state.phase in BURNING

    def reached(self, on: bool) -> bool | Refused:
        """M3 waits until Weld; M5 until the arc is out, so that the torch stays at the crater."""
        phase = self.state.phase
        if phase not in ARC_OUT:
            return on and phase == "Weld"
        return self._no_arc() if on else True

    @property
    def settled(self) -> bool:
        """The arc is out and the gas after it has stopped."""
        return self.state.phase in ("Idle", "Fault")

    def failure(self) -> Refused | None:
        return self._no_arc() if self.state.phase == "Fault" else None

    def _no_arc(self) -> Refused:
        return Refused(f"{WELD_FAULT}: {self.state.reason or 'the arc is off'}", PROCESS_FAULT)

    def program_ended(self, now: int) -> None:
        """Notes an arc that is still on when the program ends."""
        if self._io.digital_output(ARC_START):
            self._seam.note(now, "left_on", "the arc was left on at the end of the program")

    def switch_names(self) -> Mapping[str, str]:
        return SWITCH_NAMES

    def cut(self, now: int) -> None:
        """Ends the arc in any phase, without crater and burnback."""
        if self.state.phase in (*BURNING, "PreFlow", "Ignition"):
            self._note_loss(now)
            self._enter("PostFlow", now)

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self.state
        if fault == "arc_fault":
            return self._blow_out(nanoseconds(parameters["duration_s"]), now)
        if fault == "wire_fault":
            state.wire_stuck = True
            self._io.drive(WIRE_STUCK, True, now)
            self._fail("wire", now)
        elif fault == "gas_fault":
            state.gas_blocked = True
            self._update_gas(now)
        else:
            state.ignition_blocked, state.strikes = True, None
        return None

    def _blow_out(self, duration: int, now: int) -> Refused | None:
        state = self.state
        if not state.arc:
            return Refused("there is no arc")
        self._note_loss(now)
        self._burn(False, now)
        state.out_since = now
        state.out_until = now + duration
        return None

    def active_faults(self) -> tuple[str, ...]:
        return (f"{WELD_FAULT}: {self.state.reason}",) if self.state.fault else ()

    # ── listeners ──

    def on_phase(self, listener: PhaseListener) -> None:
        """Calls ``listener(phase, now)`` when a phase begins."""
        self._listeners.append(listener)

    def on_process(self, listener: Callable[[int], None]) -> None:
        self.on_phase(lambda phase, now: listener(now))

    def on_event(self, listener: Callable[[DeviceEvent], None]) -> None:
        def report(phase: Phase, now: int) -> None:
            alarm = f"{WELD_FAULT}: {self.state.reason}" if phase == "Fault" else ""
            listener(DeviceEvent(now, phase, alarm))

        self.on_phase(report)

    def advice(self, message: str) -> str:
        words = message.lower()
        if WELD_FAULT not in words:
            return ""
        return next((advice for word, advice in ADVICE.items() if word in words), "")

    # ── set values and measured values ──

    def set_values(self) -> WeldParameters:
        """The set values: those of `set_weld_parameters`, else of the weld job that DO12 … DO15
        choose; AO0 and AO1 where they are not 0."""
        job = sum(self._io.digital_output(pin) << bit for bit, pin in enumerate(JOB_BITS))
        base = self.state.own_parameters or self._config.jobs.get(job, STEEL)
        wire, volts = self._io.analog_output(0), self._io.analog_output(1)
        return WeldParameters(
            current_amps=base.current_amps,
            voltage_volts=volts * ARC_VOLTS_PER_VOLT if volts else base.voltage_volts,
            wire_speed_m_min=wire * METRES_PER_MINUTE_PER_VOLT if wire else base.wire_speed_m_min,
        )

    def _current(self, now: int) -> float:
        if not self.state.arc:
            return 0.0
        return self.set_values().current_amps * CURRENT_SHARE * self._noise(now, 0)

    def _voltage(self, now: int) -> float:
        if not self.state.arc:
            return 0.0
        return self.set_values().voltage_volts * VOLTAGE_SHARE * self._noise(now, 1)

    def _wire_speed(self) -> float:
        """m/min, negative when the wire is retracted; 0 in Burnback, when the feeder is stopped."""
        if self.state.wire_stuck or self.state.phase == "Burnback":
            return 0.0
        inch = self._io.digital_output(WIRE_INCH) - self._io.digital_output(WIRE_RETRACT)
        speed = self.set_values().wire_speed_m_min
        return speed if self.state.arc else inch * speed

    def _flow(self, now: int) -> float:
        """l/min of gas at the torch."""
        flows = self.state.flows_at is not None and now >= self.state.flows_at
        return self._config.gas_flow_l_min if flows else 0.0

    def _noise(self, now: int, which: int) -> float:
        noise = self._fault_source.ambient("weld_noise", self._name, now)
        if noise is None:
            return 1.0
        share = noise.parameters["amplitude_percent"] / 100.0
        return 1.0 + share * self._fault_source.deviations(noise, 2)[which]

    # ── readings ──

    @property
    def phase(self) -> Phase:
        return self.state.phase

    @property
    def reason(self) -> str:
        """The reason of the present fault; empty without one."""
        return self.state.reason

    @property
    def lit(self) -> bool:
        return self.state.arc

    def lost_at(self) -> Point | None:
        return self.state.lost

    def trail(self) -> tuple[Point, ...]:
        """Path of the burning arc: points in metres from the robot's base, a millimetre apart."""
        return tuple(self._seam.state.trail)

    def trail_since(self, known: Known) -> Trail:
        return self._seam.trail_since(known)

    def clear_trail(self, now: int) -> None:
        self._seam.clear_trail(now)

    def without_trail(self) -> None:
        self._seam.look_rarely()

    def look_until(self, now: int) -> None:
        self._seam.look_until(now)

    def issues(self) -> tuple[ProcessIssue, ...]:
        return tuple(self._seam.state.issues)

    def findings(self) -> list[tuple[int, str]]:
        """Standing arcs; the robot's own check reports a cold seam and an arc left on."""
        return [(i.at, i.message) for i in self._seam.state.issues if i.kind == "standing"]

    def plots(self) -> tuple[PlotRow, ...]:
        return (
            PlotRow("current_amps", "A", self._current),
            PlotRow("voltage_volts", "V", self._voltage),
        )

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        state = self.status(now)
        return (
            PanelRow("Phase", state.phase, state="fault" if state.fault else "ok"),
            PanelRow("Arc", state.arc_on),
            PanelRow("Current", state.current_amps, "A"),
            PanelRow("Voltage", state.voltage_volts, "V"),
            PanelRow("Wire speed", state.wire_speed_m_min, "m/min"),
            PanelRow("Gas flow", state.gas_flow_l_min, "l/min"),
            PanelRow("Arc time", state.arc_on_time_s, "s"),
            PanelRow("Seam length", state.total_weld_length_mm, "mm"),
        )

    def status(self, now: int) -> WeldingState:
        state = self.state
        return WeldingState(
            phase=state.phase,
            fault=state.fault,
            reason=state.reason,
            arc_on=state.arc,
            gas_flowing=self._flow(now) > 0.0,
            wire_feeding=self._wire_speed() != 0.0,
            current_amps=self._current(now),
            voltage_volts=self._voltage(now),
            wire_speed_m_min=self._wire_speed(),
            gas_flow_l_min=self._flow(now),
            arc_on_time_s=seconds(self._seam.arc_on(now)),
            total_weld_length_mm=self._seam.length(now) / MM,
        )

    # ── component ──

    def busy(self) -> bool:
        return self.state.phase not in ("Idle", "Weld", "Fault")

    def restored(self) -> None:
        self._seam.load(self.state.seam)


_ACTS: tuple[Callable[[Welder, int], None], ...] = (
    lambda welder, now: welder._io.drive(GAS_OK, True, now),
    Welder._strike,
    Welder._signal_arc,
    Welder._come_back,
    lambda welder, now: welder._fail("arc", now),
    Welder._phase_over,
    Welder.catch_up,
)
