"""Welding programs: waits for the arc, effects of faults, end of the arc."""

import numpy as np
import pytest
from tests.devices.welder.weld_bench import READY_POSE, SEAM, WeldingCell

from understudy.ports import state as snapshots
from understudy.units import NS_PER_SECOND


def tip_mm(cell: WeldingCell) -> np.ndarray:
    return np.array(cell.g60.tcp(cell.now)[:3]) * 1e3


def span(cell: WeldingCell, first: str, then: str) -> float:
    """Seconds from one phase to the next."""
    moments = {phase: at for at, phase in cell.phases}
    return moments[then] - moments[first]


# ── a seam ──────────────────────────────────────────────────────────────────────────────────────


def test_a_seam_of_200_mm() -> None:
    cell = WeldingCell()
    cell.run(*SEAM)
    assert cell.error == ""
    assert cell.issues == []
    assert [phase for _, phase in cell.phases] == [
        "PreFlow", "Ignition", "Stabilize", "Weld", "Crater", "Burnback", "PostFlow", "Idle",
    ]  # fmt: skip
    assert f"{cell.welder.status(cell.now).total_weld_length_mm:.2f}" == "200.00"
    trail = np.array(cell.welder.trail()) * 1e3
    assert np.abs(trail[:, 0] - 450.0).max() < 0.01
    assert (trail[0, 1], trail[-1, 1]) == pytest.approx((-100.0, 100.0), abs=1.2)
    assert np.abs(trail[:, 2] - 350.0).max() < 0.01


def test_motion_begins_only_in_weld() -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("PreFlow")
    start = tip_mm(cell)
    for phase in ("Ignition", "Stabilize", "Weld"):
        cell.until(phase)
        assert tip_mm(cell) == pytest.approx(start, abs=1e-6)
    assert span(cell, "PreFlow", "Weld") == pytest.approx(0.67, abs=1e-9), "gas came with the arc"
    cell.advance(0.1)
    assert cell.moving
    assert cell.g60.status(cell.now).line == 6


def test_after_m5_the_torch_rests_until_the_arc_is_out() -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("Crater")
    end = tip_mm(cell)
    assert end == pytest.approx([450, 100, 350], abs=1e-3)
    cell.until("PostFlow")
    assert tip_mm(cell) == pytest.approx(end, abs=1e-9)
    assert not cell.welder.status(cell.now).arc_on
    cell.advance(0.1)
    assert cell.moving, "post-flow is nothing to wait for"


def test_gas_that_flowed_during_the_approach_is_no_pre_flow() -> None:
    cell = WeldingCell()
    cell.run("M7", READY_POSE, "M3", "G91 G1 Y10 F600", "M5", "M2")
    assert span(cell, "PreFlow", "Weld") == pytest.approx(0.27, abs=1e-9)


def test_two_seams_with_one_gas() -> None:
    cell = WeldingCell()
    cell.run(READY_POSE, "M7", "M3", "G91 G1 Y20 F600", "M5", "G0 X10", "M3", "G1 Y20", "M5", "M2")
    assert cell.error == ""
    assert cell.welder.status(cell.now).total_weld_length_mm == pytest.approx(40.0, abs=0.01)
    assert cell.issues == []


def test_a_second_arc_at_once_after_the_first() -> None:
    """M3 comes at the instant at which the wait of M5 ends."""
    cell = WeldingCell()
    cell.run(READY_POSE, "M7", "M3", "M5", "M3", "G91 G1 Y20 F600", "M5", "M2")
    assert cell.error == ""
    assert [phase for _, phase in cell.phases].count("Weld") == 2


def test_auto_gas_needs_no_m7() -> None:
    cell = WeldingCell(welder={"auto_gas": True})
    cell.run(*(line for line in SEAM if line not in ("M7", "M9")))
    assert (cell.error, cell.issues) == ("", [])


# ── waiting for the arc ─────────────────────────────────────────────────────────────────────────


def test_without_arc_wait_the_program_uses_m66() -> None:
    cell = WeldingCell(arc_wait="none")
    cell.run(
        READY_POSE, "M7", "M3", "M66 P0 L3 Q7", "G4 P0.2", "G91 G1 Y20 F600", "M5", "G4 P0.6", "M2"
    )
    assert (cell.error, cell.issues) == ("", [])
    assert cell.g60.input_result() == 1.0
    assert cell.welder.status(cell.now).total_weld_length_mm == pytest.approx(20.0, abs=0.01)


def test_without_any_wait_the_seam_is_cold() -> None:
    cell = WeldingCell(arc_wait="none")
    cell.run(READY_POSE, "M7", "M3", "G91 G1 Y20 F600", "M5", "G4 P0.6", "M2")
    assert "cold" in cell.issues
    assert cell.welder.status(cell.now).total_weld_length_mm < 18.0


def test_m66_times_out_without_an_arc() -> None:
    cell = WeldingCell(arc_wait="none")
    cell.io.set_digital_input("ARC_OK", False, 0)
    cell.send("M7", "M3", "M66 P0 L3 Q7")
    cell.advance(8.0)
    assert cell.g60.input_result() == -1.0
    assert cell.welder.phase == "Weld", "it burns all the same; only the signal is forced"


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("arc_fault", "the arc was lost"),
        ("wire_fault", "the wire is stuck"),
        ("gas_fault", "there is no gas"),
    ],
)
def test_a_weld_fault_in_a_seam_stops_the_robot_with_a_reason(fault: str, why: str) -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("Weld")
    cell.advance(3.0)
    assert cell.inject(fault) is None
    cell.advance(1.0)
    status = cell.g60.status(cell.now)
    assert status.error_message == f"line 6: weld fault: {why}"
    assert status.error_code == 14
    assert not cell.moving
    assert tip_mm(cell)[1] < -60.0
    assert cell.io.digital().outputs == 0, "arc and gas are off"
    assert cell.g60.send_gcode("G0 A0", cell.now) is not None


@pytest.mark.parametrize("arc_wait", ["implicit", "none"])
def test_no_ignition_ends_the_program(arc_wait: str) -> None:
    cell = WeldingCell(
        arc_wait=arc_wait, rules={"dud": {"fault": "ignition_failure", "on": "g60.welder"}}
    )
    cell.send(READY_POSE, "M7", "M3", "M66 P0 L3 Q7", "G91 G1 Y20 F600", "M5", "M2")
    cell.advance(20.0)
    line = "line 3: M3" if arc_wait == "implicit" else "line 4: M66 P0 L3 Q7"
    assert cell.error == f"weld fault: no arc after 3 tries of 2 s ({line})"
    assert tip_mm(cell) == pytest.approx([450, -100, 450], abs=1e-3)


def test_m3_with_the_gas_closed_is_a_gas_fault() -> None:
    cell = WeldingCell()
    cell.run(READY_POSE, "M3", "G91 G1 Y20 F600", "M5", "M2")
    assert cell.error == "weld fault: the arc was started with the gas closed (line 2: M3)"
    assert cell.issues == ["gas"]


def test_m3_with_a_fault_not_reset_ends_the_program_and_does_not_wait_for_ever() -> None:
    cell = WeldingCell()
    cell.inject("wire_fault")
    cell.run("M7", "M3", "G0 A10")
    assert cell.error == "weld fault: the wire is stuck (line 2: M3)"
    assert cell.io.digital().outputs == 0
    cell.run("", "M64 P4", "M65 P4", "M7", "M3", "G91 G0 A1", "M5")
    assert cell.error == ""


def test_an_arc_switched_off_during_the_wait_ends_the_program() -> None:
    cell = WeldingCell()
    cell.send("M7", "M3", "G0 A10")
    cell.until("Ignition")
    cell.io.set_digital_output("ARC_START", False, cell.now)
    assert cell.error == "weld fault: the arc is off (line 2: M3)"


def test_a_weld_fault_without_a_program_is_not_a_robot_error() -> None:
    cell = WeldingCell()
    cell.inject("wire_fault")
    assert cell.error == ""
    cell.run("G0 A10")
    assert cell.error == ""


def test_faults_of_the_cell_file() -> None:
    rules = {"jam": {"fault": "wire_fault", "on": "g60.welder", "at_s": 4.0}}
    cell = WeldingCell(rules=rules)
    cell.send(*SEAM)
    cell.advance(10.0)
    assert cell.error == "line 6: weld fault: the wire is stuck"
    assert cell.phases[-1] == (4.0, "Fault")


# ── stops ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "phase", ["PreFlow", "Ignition", "Stabilize", "Weld", "Crater", "Burnback", "PostFlow"]
)
def test_an_emergency_stop_ends_the_arc_at_once(phase: str) -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until(phase)
    cell.advance(0.06 if phase in ("Ignition", "Burnback") else 0.15)
    assert cell.welder.phase == phase
    at = cell.now
    cell.g60.emergency_stop(at)
    status = cell.welder.status(at)
    assert (status.arc_on, status.wire_feeding) == (False, False)
    assert (status.current_amps, cell.io.analog(at).inputs[0]) == (0.0, 0.0)
    assert status.phase == "PostFlow"
    assert cell.io.digital().outputs == 0
    assert not cell.g60.is_enabled()
    cell.advance(5.0)
    assert cell.welder.phase == "Idle"
    assert not cell.io.digital_input("ARC_OK")
    assert cell.welder.status(cell.now).arc_on_time_s == cell.welder.status(at).arc_on_time_s
    assert cell.error == "emergency stop: reset first"


def test_after_an_emergency_stop_another_seam() -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("Weld")
    cell.g60.emergency_stop(cell.now)
    cell.g60.reset(cell.now)
    cell.g60.enable(cell.now)
    cell.welder.clear_trail(cell.now)
    before = cell.welder.status(cell.now).total_weld_length_mm
    cell.run(*SEAM)
    assert cell.error == ""
    assert cell.welder.status(cell.now).total_weld_length_mm - before == pytest.approx(
        200, abs=0.01
    )


@pytest.mark.parametrize("what", ["stop", "disable"])
def test_stop_and_disable_end_the_weld_as_m5_does(what: str) -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("Weld")
    cell.advance(1.0)
    getattr(cell.g60, what)(cell.now)
    cell.virtual_cell.run_while_busy()
    assert [phase for _, phase in cell.phases[-4:]] == ["Crater", "Burnback", "PostFlow", "Idle"]
    assert cell.io.digital().outputs == 0


# ── process issues ──────────────────────────────────────────────────────────────────────────────


def test_an_arc_left_on_at_the_end() -> None:
    cell = WeldingCell()
    cell.run(*(line for line in SEAM if line != "M5"))
    assert cell.issues == ["gas"], "M9 first: that is a gas fault"
    cell = WeldingCell()
    cell.run(*(line for line in SEAM[:6]), "M2")
    assert cell.issues == ["left_on"]
    assert cell.welder.phase == "Idle", "and the end of the program has put it out"


def test_the_end_of_the_program_waits_for_the_arc_to_be_out() -> None:
    cell = WeldingCell()
    cell.send(*SEAM[:6], "M2", "G0 A0")
    cell.until("Burnback")
    assert not cell.moving


def test_a_hold_in_a_seam_is_a_standing_arc() -> None:
    cell = WeldingCell()
    cell.send(*SEAM)
    cell.until("Weld")
    cell.advance(1.0)
    cell.g60.hold(cell.now)
    cell.advance(3.0)
    assert cell.issues == ["standing"]
    cell.g60.cycle_start(cell.now)
    cell.virtual_cell.run_while_busy()
    assert cell.issues == ["standing"]
    assert f"{cell.welder.status(cell.now).total_weld_length_mm:.2f}" == "200.00"


# ── jog ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_seam_jogged_by_hand_counts_every_millimetre() -> None:
    """The jog's plan changes often; no distance is lost."""
    cell = WeldingCell()
    cell.run(READY_POSE, "M7", "M3")
    before = cell.welder.status(cell.now).total_weld_length_mm
    points = [tip_mm(cell)]
    for speed in (0.02, 0.05, 0.03, -0.02):
        cell.g60.jog(0, speed, cell.now)
        for _ in range(330):
            cell.advance(0.001)
            points.append(tip_mm(cell))
    cell.g60.stop_jog(cell.now)
    for _ in range(100):
        cell.advance(0.001)
        points.append(tip_mm(cell))
    way = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    length = cell.welder.status(cell.now).total_weld_length_mm - before
    assert length == pytest.approx(way, abs=0.06), "a turn within 10 ms is seen coarsely"
    assert way > 15.0


def test_time_slices_and_readings_change_nothing() -> None:
    """Reading more often changes nothing: same phases, same pins, same length."""
    ends = []
    for step in (1.0, 0.0137, None):
        cell = WeldingCell(rules={"n": {"fault": "weld_noise", "on": "g60.welder"}})
        cell.send(*SEAM[:4], "M3", "G1 Y-80 F600", *SEAM[6:])
        while cell.now < 12 * NS_PER_SECOND:
            cell.advance(step or 12.0)
            if step:
                cell.g60.status(cell.now), cell.welder.status(cell.now), cell.io.analog(cell.now)
        ends.append((cell.phases, cell.io.history(), snapshots.saved(cell.welder)))
    assert ends[0] == ends[1] == ends[2]
