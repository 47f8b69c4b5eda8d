"""The welding job: the same lines for a real controller and a simulated one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.devices.welder.weld_bench import READY_POSE, WeldingCell

from understudy.agenda import Wakes, advance
from understudy.errors import Refused
from understudy.jobs.weld.sequencer import (
    POLL,
    STEEL,
    TRANSITIONS,
    JobStatus,
    WeldingSequencer,
    WeldSettings,
    closing,
    opening,
    seam_lines,
)
from understudy.ports import ControllerStatus, TimedComponent
from understudy.ports import state as snapshots
from understudy.simulation.cell import read_snapshot, write_snapshot
from understudy.space.pose import ORIGIN, Pose
from understudy.units import NS_PER_MS, nanoseconds

SEAM = ["G91 G1 Y50 F600", "G90"]


# ── the lines ───────────────────────────────────────────────────────────────────────────────────


def test_the_lines_for_steel() -> None:
    assert opening(STEEL) == ["M7", "M3", "M66 P0 L3 Q7"]
    assert seam_lines(["G1 Y50"], STEEL) == [
        "G4 P0.2", "G1 Y50", "M5", "G4 P1.58", "M9", "M66 P0 L0",
    ]  # fmt: skip


def test_set_values_go_out_before_the_arc() -> None:
    settings = WeldSettings(job=5, wire_speed_m_min=9.0, voltage_volts=21.0, arc_timeout_s=8.5)
    assert opening(settings) == [
        "M7", "M64 P12", "M65 P13", "M64 P14", "M65 P15",
        "M68 E0 Q4.5", "M68 E1 Q5.25", "M3", "M66 P0 L3 Q8.5",
    ]  # fmt: skip
    assert closing(WeldSettings(crater_s=0.0, post_flow_s=2.5))[1] == "G4 P2.5"


# ── on a scripted controller ────────────────────────────────────────────────────────────────────


class Listener:
    """A controller that keeps the lines; the test sets its reported values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = ControllerStatus(connected=True, enabled=True)
        self.result = 0.0
        self.refuses: str | None = None

    def send_gcode(self, text: str, now: int) -> Refused | None:
        if text == self.refuses:
            return Refused(f"{text} is refused")
        self.lines.append(text)
        self.now = replace(self.now, moving=True)
        return None

    def input_result(self) -> float:
        return self.result

    def status(self, now: int) -> ControllerStatus:
        return self.now

    def tcp(self, now: int) -> Pose:
        return ORIGIN

    def rest(self, result: float) -> None:
        """All lines are done."""
        self.now, self.result = replace(self.now, moving=False), result


def started() -> tuple[Listener, WeldingSequencer]:
    controller = Listener()
    job = WeldingSequencer(controller)
    assert job.start(SEAM, 0) is None
    return controller, job


def poll(job: WeldingSequencer, count: int = 1) -> None:
    for _ in range(count):
        at = job.next_wake()
        assert at is not None
        job.wake(at)


def test_the_seam_is_sent_only_after_the_result_of_m66() -> None:
    controller, job = started()
    poll(job, 300)
    assert controller.lines == opening(STEEL)
    assert job.status(0).phase == "Starting"
    controller.rest(1.0)
    poll(job)
    assert controller.lines == opening(STEEL) + seam_lines(SEAM, STEEL)
    assert job.status(0).phase == "Welding"
    poll(job, 5)
    assert job.busy()
    controller.rest(0.0)
    poll(job)
    assert (job.status(0).phase, job.status(0).fault) == ("Done", "")
    assert job.next_wake() is None


def test_no_arc_ends_the_job() -> None:
    controller, job = started()
    controller.rest(-1.0)
    poll(job)
    assert (job.status(0).phase, job.status(0).fault) == ("Fault", "no arc within 7 s")
    assert controller.lines == [*opening(STEEL), "", "M5", "M9"]
    assert job.next_wake() is None


@pytest.mark.parametrize(("welding", "result"), [(False, 0.0), (True, 1.0)])
def test_a_controller_that_was_stopped_has_not_welded_the_seam(
    welding: bool, result: float
) -> None:
    controller, job = started()
    if welding:
        controller.rest(1.0)
        poll(job)
    controller.rest(result)
    poll(job)
    assert job.status(0).fault == "the seam was stopped before its end"
    assert controller.lines[-3:] == ["", "M5", "M9"]


@pytest.mark.parametrize("welding", [False, True])
def test_an_error_of_the_controller_ends_the_job(welding: bool) -> None:
    controller, job = started()
    if welding:
        controller.rest(1.0)
        poll(job)
    controller.now = ControllerStatus(error=True, error_message="line 9: weld fault: no gas")
    poll(job)
    assert job.status(0).phase == "Fault"
    assert job.status(0).fault == "line 9: weld fault: no gas"
    assert controller.lines[-3:] == ["", "M5", "M9"]


def test_a_line_that_is_refused_ends_the_job() -> None:
    controller = Listener()
    controller.refuses = "M3"
    job = WeldingSequencer(controller)
    assert job.start(SEAM, 0) == Refused("M3 is refused")
    assert not job.busy()
    assert controller.lines == ["M7", "", "M5", "M9"]
    controller.refuses = None
    assert job.start(SEAM, 0) is None, "and another can follow"


def test_one_seam_at_a_time() -> None:
    _, job = started()
    assert job.start(SEAM, 1) == Refused("a seam is already running")


def test_it_polls_every_10_ms_while_a_seam_runs() -> None:
    assert WeldingSequencer(Listener()).next_wake() is None
    _, job = started()
    assert job.next_wake() == POLL == 10 * NS_PER_MS
    job.wake(POLL - 1)
    assert job.next_wake() == POLL
    job.wake(POLL)
    assert job.next_wake() == 2 * POLL


def test_its_state_survives_json() -> None:
    controller, job = started()
    other = WeldingSequencer(controller)
    snapshots.load(other, msgspec.json.decode(msgspec.json.encode(snapshots.saved(job))))
    controller.rest(1.0)
    poll(other)
    assert controller.lines == opening(STEEL) + seam_lines(SEAM, STEEL)


def test_every_phase_can_be_reached_and_left_as_the_table_says() -> None:
    ends = {phase for phase, _ in TRANSITIONS} | set(TRANSITIONS.values())
    assert ends == {"Idle", "Starting", "Welding", "Done", "Fault"}
    assert {phase for phase, event in TRANSITIONS if event == "start"} == {"Idle", "Done", "Fault"}


# ── on the simulated cell ───────────────────────────────────────────────────────────────────────


def timed(cell: WeldingCell) -> list[TimedComponent]:
    return [part for part in cell.parts.values() if isinstance(part, TimedComponent)]


def run_on(cell: WeldingCell, job: WeldingSequencer, to: int) -> None:
    _run_parts(cell, [*timed(cell), job], to)


def _run_parts(cell: WeldingCell, parts: Sequence[Wakes], to: int) -> None:
    advance(parts, to)
    cell.virtual_cell.advance_to(to)


def weld(cell: WeldingCell, job: WeldingSequencer) -> None:
    """Let time pass until the seam is done."""
    parts = [*timed(cell), job]
    while job.busy():
        moments = (part.next_wake() for part in parts)
        _run_parts(cell, parts, min(at for at in moments if at is not None))


def ready(**settings: Any) -> WeldingCell:
    cell = WeldingCell(**settings)
    cell.run(READY_POSE)
    cell.advance(0.01)
    return cell


@pytest.mark.parametrize("arc_wait", ["implicit", "none"])
def test_a_seam_on_the_simulated_controller(arc_wait: str) -> None:
    cell = ready(arc_wait=arc_wait)
    job = WeldingSequencer(cell.g60, WeldSettings(wire_speed_m_min=9.0))
    assert job.start(SEAM, cell.now) is None
    weld(cell, job)
    status = cell.welder.status(cell.now)
    assert job.status(cell.now) == JobStatus("Done", "")
    assert (cell.error, cell.issues) == ("", [])
    assert status.total_weld_length_mm == pytest.approx(50.0, abs=0.01)
    assert cell.io.digital().outputs == 0
    assert cell.io.analog_output("WIRE_FEED_SET") == 4.5
    arc = {phase: at for at, phase in cell.phases}
    assert arc["Crater"] - arc["Weld"] >= 5.0
    assert job.start(SEAM, cell.now) is None
    weld(cell, job)
    assert cell.welder.status(cell.now).total_weld_length_mm == pytest.approx(100.0, abs=0.01)


def test_without_arc_ok_nothing_moves() -> None:
    cell = ready(arc_wait="none")
    before = cell.g60.joint_state(cell.now).positions
    cell.io.set_digital_input("ARC_OK", False, cell.now)
    job = WeldingSequencer(cell.g60)
    begun = cell.now
    job.start(SEAM, cell.now)
    weld(cell, job)
    assert job.status(cell.now).fault == "no arc within 7 s"
    assert (cell.now - begun) / 1e9 == pytest.approx(7.0, abs=0.02)
    cell.advance(5.0)
    assert cell.g60.joint_state(cell.now).positions == before
    assert cell.welder.phase == "Idle"
    assert cell.io.digital().outputs == 0


@pytest.mark.parametrize("fault", ["ignition_fault", "gas_fault"])
def test_a_power_source_that_fails_to_start(fault: str) -> None:
    cell = ready(arc_wait="none")
    cell.inject(fault)
    job = WeldingSequencer(cell.g60)
    job.start(SEAM, cell.now)
    weld(cell, job)
    assert "weld fault: " in job.status(cell.now).fault
    cell.advance(1.0)
    assert (cell.error, cell.io.digital().outputs) == ("", 0)


@pytest.mark.parametrize(
    ("fault", "reported"),
    [
        ("arc_fault", "weld fault: the arc was lost"),
        ("wire_fault", "weld fault: the wire is stuck"),
    ],
)
def test_a_fault_in_the_seam(fault: str, reported: str) -> None:
    cell = ready(arc_wait="none")
    job = WeldingSequencer(cell.g60)
    job.start(SEAM, cell.now)
    run_on(cell, job, cell.now + nanoseconds(3.0))
    assert job.status(cell.now).phase == "Welding"
    cell.inject(fault)
    weld(cell, job)
    assert reported in job.status(cell.now).fault


@pytest.mark.parametrize("how", ["stop", "emergency_stop"])
def test_a_stop_by_the_operator_fails_the_seam(how: str) -> None:
    cell = ready(arc_wait="none")
    job = WeldingSequencer(cell.g60)
    job.start(SEAM, cell.now)
    run_on(cell, job, cell.now + nanoseconds(3.0))
    getattr(cell.g60, how)(cell.now)
    weld(cell, job)
    assert job.status(cell.now).phase == "Fault"
    cell.advance(3.0)
    assert cell.welder.phase == "Idle"


def test_cell_and_job_are_saved_together() -> None:
    whole, paused = ready(), ready()
    ends = []
    for cell in (whole, paused):
        job = WeldingSequencer(cell.g60)
        job.start(SEAM, cell.now)
        run_on(cell, job, cell.now + nanoseconds(2.5))
        if cell is paused:
            cell = WeldingCell()
            cell.virtual_cell.restore(read_snapshot(write_snapshot(paused.virtual_cell.snapshot())))
            saved, job = snapshots.saved(job), WeldingSequencer(cell.g60)
            snapshots.load(job, msgspec.json.decode(msgspec.json.encode(saved)))
        weld(cell, job)
        ends.append((cell.now, job.status(cell.now), cell.welder.status(cell.now)))
    assert ends[0] == ends[1]
