"""No way leads to an arc outside WELDING; in MANUAL the tool moves at 250 mm/s at most."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jobs.modes.cells import ModeCell

from understudy.gcode.requests import JointMove
from understudy.motion.path import Path
from understudy.motion.tool_path import with_tip_speed
from understudy.robots.arm.mover import ArmMover
from understudy.units import DEG, NS_PER_MS

OTHERS = ("PICKPLACE", "SCAN_TO_PATH", "MANUAL", "CHANGEOVER")
TOP_SPEED = 0.25


def in_mode(mode: str) -> ModeCell:
    """A cell in a mode; CHANGEOVER: it waits for a tool."""
    if mode != "CHANGEOVER":
        return ModeCell(f"{{start: {mode}}}")
    cell = ModeCell("{start: WELDING, tools: {PICKPLACE: 2}}")
    cell.request("PICKPLACE")
    cell.settle()
    assert cell.step() == "CONFIRM_TOOL"
    return cell


def over_wire(cell: ModeCell, data: bytes) -> bytes:
    client = cell.cell.connect("g60.grblhal")
    client.say(data)
    cell.cell.advance(1.0)
    return client.received()


DOORS: dict[str, Callable[[ModeCell], object]] = {
    "M3": lambda cell: cell.lines("M3"),
    "M4": lambda cell: cell.lines("M4"),
    "M3 with a move": lambda cell: cell.lines("M3 G1 A1 F600", "G1 A2"),
    "M64": lambda cell: cell.lines("M64 P0"),
    "M62 with a move": lambda cell: cell.lines("M62 P0", "G1 A1 F600"),
    "M3 over the wire": lambda cell: over_wire(cell, b"M3 S100\n"),
    "M4 over the wire": lambda cell: over_wire(cell, b"M4\n"),
    "M64 over the wire": lambda cell: over_wire(cell, b"M64 P0\n"),
    "M3 in check mode": lambda cell: over_wire(cell, b"$C\nM3 S100\n$C\n"),
    "start-up line": lambda cell: over_wire(cell, b"$N0=M3\n\x18"),
    "spindle stop override": lambda cell: over_wire(cell, b"M3\n!\x9e\x9e~"),
    "saved modes": lambda cell: cell.lines("M70", "M3", "M72"),
    "output of the controller": lambda cell: cell.arm.set_digital_output("ARC_START", True, 0),
    "pin": lambda cell: cell.arm.io.set_digital_output(0, True, cell.now),
}


@pytest.mark.parametrize("mode", OTHERS)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_leads_to_an_arc_outside_welding(mode: str, door: str) -> None:
    cell = in_mode(mode)
    DOORS[door](cell)
    cell.cell.advance(2.0)
    assert not [change for change in cell.arm.io.history() if change[1:3] == ("DO", 0)]
    assert cell.arm.firmware.reading(cell.now).spindle == "M5"
    assert cell.components["g60.welder"].status(cell.now).phase == "Idle"


@pytest.mark.parametrize("door", ["M3", "M4", "M64", "M3 over the wire", "pin"])
def test_the_same_doors_switch_the_arc_on_in_welding(door: str) -> None:
    cell = in_mode("WELDING")
    DOORS[door](cell)
    assert any(change.value for change in cell.arm.io.history() if change.bank == "DO")


def test_the_refusal_names_mode_and_line() -> None:
    cell = in_mode("PICKPLACE")
    refused = cell.lines("M3")
    assert refused is not None
    assert "M3: the arc is locked in mode PICKPLACE" in refused.reason
    assert refused.code == 9
    assert b"error:9" in over_wire(in_mode("PICKPLACE"), b"M3\n")


def test_a_relay_cannot_switch_the_arc_on() -> None:
    text = "{start: %s}\n    io: {relays: [{input: 12, output: ARC_START}]}"
    for mode, arc in (("PICKPLACE", False), ("WELDING", True)):
        cell = ModeCell(text % mode)
        cell.arm.io.inject("force_input", {"pin": 12.0, "value": 1.0}, cell.now)
        assert cell.arc is arc


# ── speed ──


def top_speed(cell: ModeCell, until: Callable[[], bool] | None = None) -> float:
    """The highest speed of the tip, by the distance between samples a millisecond apart."""
    until = until or (lambda: not cell.arm.busy())
    fastest, last = 0.0, np.array(cell.arm.tcp(cell.now)[:3])
    while not until():
        cell.cell.advance_to(cell.now + NS_PER_MS)
        here = np.array(cell.arm.tcp(cell.now)[:3])
        fastest, last = max(fastest, float(np.linalg.norm(here - last)) * 1e3), here
    return fastest


MOVES = ("G0 A40", "G1 B-20 C70 F36000", "G0 Z600", "G1 X300 F60000", "G2 X550 Y50 I50 J0 F60000")


@pytest.mark.parametrize("line", MOVES)
def test_lines_are_limited_in_manual_only(line: str) -> None:
    speeds = {}
    for mode in ("MANUAL", "WELDING"):
        cell = in_mode(mode)
        cell.arm.override_feed(200.0, cell.now)
        assert cell.lines("G64", "G1 X500 Y0 Z400 F3000") is None
        assert cell.arm.send_gcode(line, cell.now) is None
        speeds[mode] = top_speed(cell)
        assert not cell.arm.status(cell.now).error
    assert speeds["MANUAL"] <= TOP_SPEED * 1.0001
    assert speeds["MANUAL"] > TOP_SPEED * 0.5
    assert speeds["WELDING"] > TOP_SPEED * 1.1


def test_the_override_acts_below_the_limit() -> None:
    cell = in_mode("MANUAL")
    cell.arm.override_feed(50.0, cell.now)
    cell.arm.send_gcode("G1 Z600 F60000", cell.now)
    assert top_speed(cell) == pytest.approx(TOP_SPEED / 2, rel=0.01)


@pytest.mark.parametrize("axis", range(6))
def test_jogs_are_limited(axis: int) -> None:
    cell = in_mode("MANUAL")
    assert cell.arm.jog(axis, 3.0, cell.now) is None
    cell.cell.advance(0.1)
    refused = cell.arm.jog((axis + 1) % 6, 1.0, cell.now)
    assert refused is not None
    assert "one axis" in refused.reason
    ends = cell.now + 600 * NS_PER_MS
    assert top_speed(cell, lambda: cell.now > ends) <= TOP_SPEED * 1.0001


def test_homing_is_limited() -> None:
    cell = in_mode("MANUAL")
    cell.arm.home(cell.now)
    assert top_speed(cell) <= TOP_SPEED * 1.0001


def test_the_limit_comes_and_goes_with_the_mode() -> None:
    cell = in_mode("MANUAL")
    cell.request("PICKPLACE")
    cell.settle()
    cell.arm.send_gcode("G0 A40", cell.now)
    assert top_speed(cell) > TOP_SPEED


ANGLES = st.lists(st.floats(-60.0, 60.0), min_size=6, max_size=6)


@settings(max_examples=60, deadline=None)
@given(start=ANGLES, end=ANGLES, limit=st.floats(0.01, 1.0))
def test_a_line_of_the_joints_holds_the_limit_everywhere(
    start: list[float], end: list[float], limit: float
) -> None:
    mover = ARM
    q = np.array(start) * DEG
    a, b, c, u, v, w = (angle * DEG for angle in end)
    path = mover.path(JointMove((a, b, c, u, v, w)), q, line=1)
    assert isinstance(path, Path)
    slow = with_tip_speed(path, limit, mover.chain, mover.frames.tool)
    for piece in range(len(slow)):
        for s in np.linspace(0.0, slow.length[piece], 997):
            jacobian = mover.chain.jacobian(slow.position(piece, s), mover.frames.tool)[:3]
            speed = np.linalg.norm(jacobian @ slow.tangent(piece, s)) * slow.fastest[piece]
            assert speed <= limit * (1.0 + 1e-9)


_BENCH = ModeCell("{start: WELDING}").arm
_MOVER = _BENCH.tool_offsets.mover(1)
assert isinstance(_MOVER, ArmMover)
ARM = _MOVER
