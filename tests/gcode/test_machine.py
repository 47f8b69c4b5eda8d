"""The plain six-axis machine: mm and deg, single precision, requests in axis units."""

import pytest
from msgspec.structs import replace
from tests.gcode.talk import Talk

from understudy.gcode import (
    GRBLHAL_MACHINE,
    Block,
    Interpretation,
    KnownPosition,
    Modal,
    jog,
    parse,
    rotary_axes,
)
from understudy.gcode.dialect import single
from understudy.gcode.requests import (
    AxisMove,
    Coolant,
    Dwell,
    GoHome,
    Message,
    OffsetsChanged,
    Overrides,
    Probe,
    ProgramEnd,
    ProgramPause,
    SetAnalog,
    SetHome,
    SetOutput,
    Spindle,
    ToolChange,
    ToolSelect,
    WaitInput,
)


@pytest.fixture
def machine() -> Talk:
    return Talk(GRBLHAL_MACHINE)


def test_rapid_and_feed(machine: Talk) -> None:
    assert machine.say("G0 X1", "G1 Y2 A90 F300", "Z1") == [
        AxisMove((1, 0, 0, 0, 0, 0), rapid=True),
        AxisMove((1, 2, 0, 90, 0, 0), feed=300),
        AxisMove((1, 2, 1, 90, 0, 0), feed=300),
    ]


def test_targets_are_single_precision_numbers(machine: Talk) -> None:
    machine.say("G91", "G0 X0.1", "X0.2")
    assert machine.at.axes[0] == single(single(0.1) + single(0.2))


def test_inverse_time_counts_moves_per_minute(machine: Talk) -> None:
    assert machine.say("G93 G1 X10 F2") == [
        AxisMove((10, 0, 0, 0, 0, 0), feed=2, inverse_time=True)
    ]
    assert machine.refused("X20").code == 22
    assert machine.say("G0 X0") == [AxisMove((0, 0, 0, 0, 0, 0), rapid=True)]


def test_inches_scale_linear_axes_and_the_feed_only(machine: Talk) -> None:
    (move,) = machine.say("G20 G1 X1 A10 F10")
    assert isinstance(move, AxisMove)
    assert move.target == pytest.approx((25.4, 0, 0, 10, 0, 0), rel=1e-7)
    assert move.feed == pytest.approx(254)


def test_the_rotary_axes_are_a_setting() -> None:
    assert rotary_axes(7) == (False, False, False, True, True, True)
    linear_a = replace(GRBLHAL_MACHINE, rotary=rotary_axes(0b110))
    (move,) = Talk(linear_a).say("G20 G0 A1 B1")
    assert isinstance(move, AxisMove)
    assert move.target == pytest.approx((0, 0, 0, 25.4, 1, 0), rel=1e-7)


def test_feed_per_second_reaches_the_machine_per_minute() -> None:
    dialect = replace(GRBLHAL_MACHINE, feed_per_second=True)
    assert Talk(dialect).say("G1 X1 F10", "G93 X2 F10") == [
        AxisMove((1, 0, 0, 0, 0, 0), feed=600),
        AxisMove((2, 0, 0, 0, 0, 0), feed=10, inverse_time=True),
    ]


def test_work_offsets_g92_and_tool_length_add_up(machine: Talk) -> None:
    machine.say("G10 L2 P1 X10", "G92 X-1", "G43.1 X0.5")
    assert machine.say("G0 X0")[-1] == AxisMove((1.5, 0, 0, 0, 0, 0), rapid=True)
    assert machine.say("G53 G0 X0")[-1] == AxisMove((0, 0, 0, 0, 0, 0), rapid=True)
    assert machine.say("G55 X2")[-1] == AxisMove((-6.5, 0, 0, 0, 0, 0), rapid=True)


def test_every_written_offset_that_is_active_is_reported(machine: Talk) -> None:
    assert machine.say("G10 L2 P2 X3") == []
    assert machine.say("G55") == [OffsetsChanged((3, 0, 0, 0, 0, 0))]
    assert machine.say("G55") == []
    for _ in range(2):
        assert machine.say("G10 L20 P0 X1 Z2") == [OffsetsChanged((-1, 0, -2, 0, 0, 0))]
    assert machine.say("M2") == [ProgramEnd("M2"), OffsetsChanged((0, 0, 0, 0, 0, 0))]


def test_g92_can_be_suspended_and_restored(machine: Talk) -> None:
    shifted, zero = OffsetsChanged((-5, 0, 0, 0, 0, 0)), OffsetsChanged((0, 0, 0, 0, 0, 0))
    assert machine.say("G92 X5", "G92.2", "G92.3") == [shifted, zero, shifted]
    assert machine.say("G92.1", "G92.3") == [zero, zero]


def test_going_home_passes_the_waypoint_and_moves_the_named_axes(machine: Talk) -> None:
    machine.stand(axes=(10, 5, 0, 0, 0, 0))
    assert machine.say("G28.1") == [SetHome("G28", (10, 5, 0, 0, 0, 0))]
    machine.stand(axes=(1, 1, 0, 0, 0, 0))
    assert machine.say("G28 X4") == [
        AxisMove((4, 1, 0, 0, 0, 0), rapid=True),
        GoHome("G28", AxisMove((10, 1, 0, 0, 0, 0), rapid=True)),
    ]
    assert machine.say("G28") == [GoHome("G28", AxisMove((10, 5, 0, 0, 0, 0), rapid=True))]


def test_probing(machine: Talk) -> None:
    target = AxisMove((0, 0, -5, 0, 0, 0), feed=100)
    for code, toward, required in (
        ("G38.2", True, True),
        ("G38.3", True, False),
        ("G38.4", False, True),
        ("G38.5", False, False),
    ):
        machine.stand(axes=(0, 0, 0, 0, 0, 0))
        assert machine.say(f"{code} Z-5 F100") == [Probe(target, toward, required)]


def test_pins(machine: Talk) -> None:
    assert machine.say(
        "M62 P1", "M63 P1", "M64 P7", "M65 P7", "M67 E1 Q2.5", "M68 E3 Q1", "M68 Q1"
    ) == [
        SetOutput(1, on=True, with_motion=True),
        SetOutput(1, on=False, with_motion=True),
        SetOutput(7, on=True, with_motion=False),
        SetOutput(7, on=False, with_motion=False),
        SetAnalog(1, 2.5, with_motion=True),
        SetAnalog(3, 1, with_motion=False),
        SetAnalog(0, 1, with_motion=False),
    ]
    assert machine.say("M66 P2 L3 Q0.5", "M66 E1 L0", "M66 P2 L1 Q2") == [
        WaitInput("digital", 2, "high", 0.5),
        WaitInput("analog", 1, "read", 0),
        WaitInput("digital", 2, "rise", 2),
    ]


def test_spindle_coolant_and_dwell_come_in_their_order(machine: Talk) -> None:
    assert machine.say("G4 P0.5 M8 M3 S100 (MSG,go)") == [
        Message("go"),
        Spindle("M3", 100),
        Coolant(mist=False, flood=True),
        Dwell(0.5),
    ]
    assert machine.say("S200", "M7", "M9", "M5", "S300") == [
        Spindle("M3", 200, turned=False),
        Coolant(mist=True, flood=True),
        Coolant(mist=False, flood=False),
        Spindle("M5", 200),
    ]


def test_a_tool_is_selected_and_then_changed(machine: Talk) -> None:
    assert machine.say("T2", "M6", "M6") == [ToolSelect(2), ToolChange(2, 0)]
    assert machine.say("T3 M6") == [ToolSelect(3), ToolChange(3, 2)]
    assert machine.say("M61 Q5") == [ToolChange(5, 3, physical=False)]
    assert (machine.modal.tool, machine.modal.selected) == (5, 5)


def test_overrides_can_be_locked(machine: Talk) -> None:
    assert machine.say("M49", "M50", "M53 P0", "M48") == [
        Overrides(feed=False, speed=False, hold=True, rests=True),
        Overrides(feed=True, speed=False, hold=True),
        Overrides(feed=True, speed=False, hold=False, rests=True),
        Overrides(feed=True, speed=True, hold=False, rests=True),
    ]


def test_pause_and_end(machine: Talk) -> None:
    assert machine.say("M0", "M1", "M60", "M30") == [
        ProgramPause("M0"),
        ProgramPause("M1"),
        ProgramPause("M60"),
        ProgramEnd("M30"),
    ]


def test_pause_and_end_come_after_the_motion_of_the_line(machine: Talk) -> None:
    moved, ended = machine.say("G0 X1 M2")
    assert isinstance(moved, AxisMove)
    assert ended == ProgramEnd("M2")


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("G1 X1", 22, "G1"),
        ("G5 X1", 22, "G5"),
        ("F1 G5 X1 Y1 I1 J1 P1", 28, "G5"),
        ("G76", 20, "G76"),
        ("G65 P100", 39, "G65"),
        ("M98", 28, "M98"),
        ("G51 P2", 26, "G51"),
        ("G10 L2 P1 X1 R45", 20, "R45"),
        ("G10 L1 P1 Z1", 20, "L1"),
        ("T1.5", 23, "T1.5"),
        ("G0 H1", 36, "H1"),
        ("G0 X1 P1 Q2", 36, "P1"),
        ("M62 P1 G4", 28, "G4"),
        ("M61 Q1.5", 23, "Q1.5"),
        ("M3 $1", 39, "$1"),
        ("M50 P-1", 4, "P-1"),
        ("F1 G38.2 X1 P1", 39, "P1"),
        ("F1 G2 X2 I1 P1.5", 23, "P1.5"),
        ("F1 G2 X2 I1 P0", 39, "P0"),
    ],
)
def test_refusals_beyond_the_recordings(machine: Talk, line: str, code: int, word: str) -> None:
    refused = machine.refused(line, number=12)
    assert refused.code == code
    assert refused.reason.startswith(f"line 12, column {line.find(word) + 1}: {word}: ")


def test_a_refused_line_changes_nothing(machine: Talk) -> None:
    before = machine.modal
    machine.refused("G20 G91 T5 M3 S100 G1 X1 Q9 F5")
    assert machine.modal is before


def test_the_only_spindle_has_address_zero(machine: Talk) -> None:
    assert machine.say("M3 S10 $0") == [Spindle("M3", 10)]


# ── jog ─────────────────────────────────────────────────────────────────────────────────────────


def jogged(line: str, modal: Modal, axes: tuple[float, ...] = (0.0,) * 6) -> Interpretation:
    block = parse(line, GRBLHAL_MACHINE)
    assert isinstance(block, Block)
    x, y, z, a, b, c = axes
    step = jog(block, modal, dialect=GRBLHAL_MACHINE, position=KnownPosition((x, y, z, a, b, c)))
    assert isinstance(step, Interpretation), step
    return step


def test_a_jog_has_its_own_modes(machine: Talk) -> None:
    machine.say("G20 G93")
    step = jogged("G91 G21 X5 F100", machine.modal, (1, 2, 0, 0, 0, 0))
    assert step.requests == (AxisMove((6, 2, 0, 0, 0, 0), feed=100),)
    assert step.modal is machine.modal


def test_a_jog_without_axes_has_no_requests(machine: Talk) -> None:
    assert jogged("F100", machine.modal).requests == ()
