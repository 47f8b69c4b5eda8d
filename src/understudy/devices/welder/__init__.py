"""A power source with wire feeder and gas on the welding pins of an arm."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from understudy.ports.exploration import Exploration, Explored, Look
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    STANDS,
    Reaction,
    Reactions,
    Seen,
    Trial,
    do,
    enable,
    error,
    status,
)
from understudy.ports.faults import Fault, Faults, Figure

if TYPE_CHECKING:
    from understudy.devices.welder.welder import Welder
    from understudy.ports.device import Mount


Seconds = Annotated[float, Meta(ge=0, le=3600)]
NotNegative = Annotated[float, Meta(ge=0)]


# ── settings ──


class WeldParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The set values of the power source."""

    current_amps: NotNegative = 180.0
    voltage_volts: NotNegative = 22.0
    wire_speed_m_min: NotNegative = 8.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A welder on an arm; the defaults are those for steel."""

    pre_flow_s: Seconds = 0.3
    ignition_time_s: Seconds = 0.05
    ignition_timeout_s: Seconds = 2.0
    ignition_tries: Annotated[int, Meta(ge=1, le=100)] = 3
    stabilize_s: Seconds = 0.2
    crater_s: Seconds = 0.5
    burnback_s: Seconds = 0.08
    post_flow_s: Seconds = 1.0
    arc_ok_on_ms: Annotated[float, Meta(ge=0, le=10_000)] = 20.0
    arc_ok_off_ms: Annotated[float, Meta(ge=0, le=10_000)] = 50.0
    arc_lost_s: Seconds = 0.2
    gas_delay_ms: Annotated[float, Meta(ge=0, le=10_000)] = 100.0
    gas_flow_l_min: NotNegative = 15.0
    gas_minimum_l_min: NotNegative = 5.0
    auto_gas: bool = False
    standing_arc_s: Seconds = 1.0
    jobs: dict[Annotated[int, Meta(ge=0, le=15)], WeldParameters] = {}


def program_wait_s(config: Config, on: bool) -> float:
    """Seconds that M3 waits for a steady arc, if gas flows and the first try ignites it; seconds
    that M5 waits until the arc is out."""
    if not on:
        return config.crater_s + config.burnback_s
    return (
        config.pre_flow_s + config.ignition_time_s + config.arc_ok_on_ms / 1e3 + config.stabilize_s
    )


# ── pins ──

ARC_START, GAS, WIRE_INCH, WIRE_RETRACT, FAULT_RESET = 0, 1, 2, 3, 4
JOB_BITS = (12, 13, 14, 15)
ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY = 0, 1, 2, 3, 4
CURRENT, VOLTAGE, WIRE_SPEED, GAS_FLOW = 0, 1, 2, 3
AMPERES_PER_VOLT = 40.0
ARC_VOLTS_PER_VOLT = 4.0
METRES_PER_MINUTE_PER_VOLT = 2.0
LITRES_PER_MINUTE_PER_VOLT = 2.5
CURRENT_SHARE, VOLTAGE_SHARE = 0.95, 0.98
"""Measured value as a share of the set value."""


# ── phases ──

Phase = Literal[
    "Idle", "PreFlow", "Ignition", "Stabilize", "Weld", "Crater", "Burnback", "PostFlow", "Fault"
]
BURNING: tuple[Phase, ...] = ("Stabilize", "Weld", "Crater", "Burnback")
HOLDING_GAS: tuple[Phase, ...] = ("Crater", "Burnback", "PostFlow")
ARC_OUT: tuple[Phase, ...] = ("PostFlow", "Idle", "Fault")

TRANSITIONS: Mapping[tuple[Phase, str], Phase] = {
    ("Idle", "arc_on"): "PreFlow",
    ("PostFlow", "arc_on"): "PreFlow",
    ("PreFlow", "over"): "Ignition",
    ("Ignition", "arc_ok"): "Stabilize",
    ("Stabilize", "over"): "Weld",
    ("Weld", "arc_off"): "Crater",
    ("Crater", "over"): "Burnback",
    ("Burnback", "over"): "PostFlow",
    ("PostFlow", "over"): "Idle",
    ("PreFlow", "arc_off"): "PostFlow",
    ("Ignition", "arc_off"): "PostFlow",
    ("Stabilize", "arc_off"): "PostFlow",
    ("Fault", "reset"): "Idle",
}
"""Every phase can also end in Fault."""


# ── faults ──

FAULTS: Faults = {
    "arc_fault": Fault(
        "brought",
        "the arc goes out; longer than arc_lost_s it is a weld fault",
        {"duration_s": Figure(10.0, 0.0, 3600.0)},
    ),
    "wire_fault": Fault("brought", "the wire is stuck until the fault is reset"),
    "gas_fault": Fault("brought", "no gas flows until the fault is reset"),
    "ignition_fault": Fault("brought", "no arc ignites until the fault is reset"),
    "ignition_failure": Fault("asked", "this try does not ignite the arc"),
    "weld_noise": Fault(
        "asked",
        "current and voltage deviate, evenly within ± the amplitude",
        {"amplitude_percent": Figure(2.0, 0.0, 100.0)},
        ambient=True,
    ),
}

REASONS: Mapping[str, str] = {
    "arc": "the arc was lost",
    "wire": "the wire is stuck",
    "gas": "there is no gas",
    "ignition": "the arc did not ignite",
}
"""The weld faults, in words."""

ADVICE: Mapping[str, str] = {
    "gas": "No shielding gas: open the valve or change the bottle, then reset the fault.",
    "wire": "The wire is stuck: look at feeder and tip, then reset the fault.",
    "ignite": "The arc does not ignite: cut the wire, look at the earth clamp, then reset.",
    "arc": "The arc was lost: look at wire, gas and distance, then reset the fault.",
}
"""A word of a weld fault's message → advice; the first match counts."""


OPERATION_MODES = ("WELDING",)


def build(name: str, config: Config, mount: "Mount") -> "Welder":
    from understudy.devices.welder.welder import Welder

    return Welder(name, config, mount)


# ── expected reactions to its faults, and to those of its robot while it welds ──

LINES = ("M8", "M3", "G21 G91 G1 Z15 F300", "M5", "M9")
EMERGENCY = 10
READINGS = 20


def gas_and_arc(trial: Trial) -> None:
    """the program begins: gas, then the arc"""
    for line in LINES:
        do(trial, "send_gcode", line)


def at_rest(trial: Trial) -> None:
    """at rest, before the first weld"""
    trial.own("welder")
    enable(trial)


def welding(trial: Trial) -> None:
    """the arc burns, the torch moves along a seam"""
    at_rest(trial)
    gas_and_arc(trial)
    welder = trial.own("welder")
    trial.run_until(lambda: welder.status(trial.now).phase == "Weld", 10.0, "no arc")
    trial.advance(0.5)


def read_often(trial: Trial) -> None:
    """the current is read"""
    trial.notes["amperes"] = []
    for _ in range(READINGS):
        trial.advance(0.05)
        trial.notes["amperes"].append(trial.part.status(trial.now).current_amps)


def _scatters(trial: Trial) -> bool:
    values = trial.notes["amperes"]
    mean = sum(values) / len(values)
    return all(abs(each - mean) <= 0.04 * mean for each in values) and len(set(values)) > 10


NO_ARC = Seen("no arc burns", lambda t: not t.own("welder").status(t.now).arc_on, lasts=True)
FAILED = status("phase", "Fault", of="welder")
ARC_AGAIN = Seen(
    "the arc burns at another try",
    lambda t: t.part.status(t.now).phase == "Weld" and t.part.state.tries > 1,
)

REACTIONS: Reactions = {
    "arc_fault": Reaction(
        welding, (FAILED, NO_ARC, status("fault", "arc"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "wire_fault": Reaction(
        welding, (FAILED, NO_ARC, status("fault", "wire"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "gas_fault": Reaction(
        welding, (FAILED, NO_ARC, status("fault", "gas"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "ignition_fault": Reaction(
        at_rest,
        (FAILED, NO_ARC, status("fault", "ignition"), ENGINE_FAILED, STANDS),
        within_s=10.0,
        then=gas_and_arc,
    ),
    "ignition_failure": Reaction(at_rest, (ARC_AGAIN,), within_s=10.0, then=gas_and_arc),
    "weld_noise": Reaction(
        welding, (Seen("the current scatters within ± 2 %", _scatters),), then=read_often
    ),
}
DURING: Reactions = {
    "emergency_stop": Reaction(
        welding, (error(EMERGENCY), NO_ARC, ENGINE_FAILED, STANDS), within_s=0.5
    ),
    "axis_fault": Reaction(
        welding, (NO_ARC, ENGINE_FAILED, STANDS), within_s=0.5, parameters={"axis": 1.0}
    ),
}


def arc_in_welding(run: Explored, place: str) -> Look:
    """an arc only in WELDING, and only while the welder burns"""
    welder: Any = run.components[place]
    modes = run.own(place, "modes")

    def look() -> str:
        state = welder.status(run.now)
        if not state.arc_on:
            return ""
        if state.phase not in ("Ignition", *BURNING):
            return f"{place} has an arc in {state.phase}"
        mode = "WELDING" if modes is None else modes.current_mode
        return "" if mode == "WELDING" else f"{place} has an arc in mode {mode}"

    return look


EXPLORED = Exploration(
    invariants=(arc_in_welding,),
    reach={"state": get_args(Phase), "alarm": tuple(REASONS)},
    reached=lambda welder, now: (
        ("state", (state := welder.status(now)).phase),
        *((("alarm", state.fault),) if state.fault else ()),
    ),
)
