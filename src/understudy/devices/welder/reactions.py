"""Expected reactions to the faults of a welder, and to those of its robot while it welds."""

from typing import Any

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

LINES = ("M8", "M3", "G21 G91 G1 Z15 F300", "M5", "M9")
EMERGENCY, PROCESS = 10, 3
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


ARC_OUT = Seen("no arc burns", lambda t: not t.own("welder").status(t.now).arc_on, lasts=True)
FAILED = status("phase", "Fault", of="welder")
ARC_AGAIN = Seen(
    "the arc burns at another try",
    lambda t: t.part.status(t.now).phase == "Weld" and t.part.state.tries > 1,
)

REACTIONS: Reactions = {
    "arc_fault": Reaction(
        welding, (FAILED, ARC_OUT, status("fault", "arc"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "wire_fault": Reaction(
        welding, (FAILED, ARC_OUT, status("fault", "wire"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "gas_fault": Reaction(
        welding, (FAILED, ARC_OUT, status("fault", "gas"), ENGINE_FAILED, STANDS), within_s=1.0
    ),
    "ignition_fault": Reaction(
        at_rest,
        (FAILED, ARC_OUT, status("fault", "ignition"), ENGINE_FAILED, STANDS),
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
        welding, (error(EMERGENCY), ARC_OUT, ENGINE_FAILED, STANDS), within_s=0.5
    ),
    "axis_fault": Reaction(
        welding, (ARC_OUT, ENGINE_FAILED, STANDS), within_s=0.5, parameters={"axis": 1.0}
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
        if state.phase not in PHASES_WITH_ARC:
            return f"{place} has an arc in {state.phase}"
        mode = "WELDING" if modes is None else modes.current_mode
        return "" if mode == "WELDING" else f"{place} has an arc in mode {mode}"

    return look


PHASES_WITH_ARC = ("Ignition", "Stabilize", "Weld", "Crater", "Burnback")
PHASES = ("Idle", "PreFlow", *PHASES_WITH_ARC, "PostFlow", "Fault")
EXPLORED = Exploration(
    invariants=(arc_in_welding,),
    reach={"state": PHASES, "alarm": ("arc", "wire", "gas", "ignition")},
    reached=lambda welder, now: (
        ("state", (state := welder.status(now)).phase),
        *((("alarm", state.fault),) if state.fault else ()),
    ),
)
