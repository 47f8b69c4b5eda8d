"""The phases of a weld as a table, and all that a power source remembers of them."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from understudy.devices.welder.config import WeldParameters
from understudy.devices.welder.seam import State as SeamState

Phase = Literal[
    "Idle", "PreFlow", "Ignition", "Stabilize", "Weld", "Crater", "Burnback", "PostFlow", "Fault"
]
ARC_START, GAS, WIRE_INCH, WIRE_RETRACT, FAULT_RESET = 0, 1, 2, 3, 4
JOB_BITS = (12, 13, 14, 15)
ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY = 0, 1, 2, 3, 4
CURRENT, VOLTAGE, WIRE_SPEED, GAS_FLOW = 0, 1, 2, 3
BURNING: tuple[Phase, ...] = ("Stabilize", "Weld", "Crater", "Burnback")
HOLDING_GAS: tuple[Phase, ...] = ("Crater", "Burnback", "PostFlow")

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

WHY: Mapping[str, str] = {
    "arc": "the arc was lost",
    "wire": "the wire is stuck",
    "gas": "there is no gas",
    "ignition": "the arc did not ignite",
}
"""The faults, in words."""

PhaseListener = Callable[[Phase, int], None]
"""Told when the power source goes over into another phase."""


class State(Struct):
    """All that the power source remembers. Times in ns; `ends`: when this phase is over.

    `strikes`: when this try ignites the arc. `arc`: it burns. `arc_ok_due`: when the debounced
    signal follows it. `flows_at`: when the gas is at the torch, or since when it is. `out_since`,
    `out_until`: an arc blown out, and when it comes back.
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
    wire_stuck: bool = False
    ignition_blocked: bool = False
    fault: str = ""
    reason: str = ""
    own_parameters: WeldParameters | None = None
    seam: SeamState = msgspec.field(default_factory=SeamState)
