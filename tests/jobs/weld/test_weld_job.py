"""The weld job of a cell, and the sequencer and the driver as classes of a script."""

from pathlib import Path

import pytest

import understudy
from understudy import ConfigError, GrblHalDriver, VirtualController, WeldingSequencer
from understudy.app.stand_in import StandIn
from understudy.errors import Refused
from understudy.jobs.weld.sequencer import rest_of

READY = "G0 X450 Y-50 Z350 A180 B0 C0"
SEAM = ["G91 G1 Y50 F600", "G90"]
ARM = """
robots:
  g60:
    kind: arm
    model: g60
    start_deg: [0, -40, 80, 0, 50, 0]
    welder: {}
    faces: {grblhal: {port: 0}}
"""


# ── the job of a cell ──


def test_the_shipped_cell_welds_a_seam_by_command() -> None:
    with StandIn("g60_welding") as cell:
        cell.do("enable", robot="g60")
        cell.do("send_gcode", robot="g60", line=READY)
        cell.forward(10.0)
        assert cell.do("weld_seam", lines=SEAM)["phase"] == "Starting"
        with pytest.raises(RuntimeError, match="under way"):
            cell.do("weld_seam", lines=SEAM)
        cell.forward(30.0)
        assert cell.do("weld_job") == {
            "robot": "g60",
            "phase": "Done",
            "fault": "",
            "lost_mm": None,
        }
        welded = cell.on_component("g60.welder", lambda welder, now: welder.status(now))
        assert welded.total_weld_length_mm == pytest.approx(50.0, abs=0.5)


def test_a_fault_of_the_power_source_ends_the_seam_with_its_reason() -> None:
    with StandIn("g60_welding") as cell:
        cell.do("enable", robot="g60")
        cell.inject("gas_fault", "g60.welder")
        cell.do("weld_seam", lines=SEAM)
        cell.forward(30.0)
        job = cell.do("weld_job")
        assert job["phase"] == "Fault"
        assert "there is no gas" in job["fault"]


def test_a_cell_without_a_weld_job_does_not_offer_it() -> None:
    with StandIn("text_robot") as cell, pytest.raises(RuntimeError, match="weld_seam"):
        cell.do("weld_seam", lines=SEAM)


# ── the classes of a script ──


def test_the_sequencer_welds_on_a_virtual_controller() -> None:
    arm = VirtualController("g60", welder={}, start_deg=[0, -40, 80, 0, 50, 0])
    arm.connect()
    arm.enable()
    outcome = WeldingSequencer(arm).weld(["G91 G1 U20 F600", "G90"])
    assert (outcome.phase, outcome.fault) == ("Done", "")
    assert arm.welder.status().total_weld_length_mm > 10.0


def test_the_sequencer_names_what_is_no_controller() -> None:
    with pytest.raises(ConfigError, match="no controller"):
        WeldingSequencer("g60")


def test_the_driver_and_the_sequencer_weld_on_a_real_controller(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(ARM)
    with StandIn(str(file), rate="max") as cell:
        host, port = cell.address("g60.grblhal")
        with GrblHalDriver(f"{host}:{port}") as driver:
            assert driver.connect() is None
            assert driver.enable() is None
            assert driver.send_gcode("G0 A0 B-40 C80 U0 V50 W0") is None
            driver.run_until_idle(60.0)
            outcome = WeldingSequencer(driver).weld(["G91 G1 U20 F600", "G90"], 60.0)
            assert (outcome.phase, outcome.fault) == ("Done", "")
        welded = cell.on_component("g60.welder", lambda welder, now: welder.status(now))
        assert welded.total_weld_length_mm > 10.0


def test_a_port_without_a_controller_is_named(tmp_path: Path) -> None:
    with GrblHalDriver(str(tmp_path / "ttyACM0")) as driver:
        refused = driver.connect(timeout_s=0.5)
        assert refused is not None
        assert "ttyACM0" in refused.reason
        with pytest.raises(AttributeError, match="has no 'weld'"):
            _ = driver.weld


def test_the_classes_are_public_names() -> None:
    assert {"GrblHalDriver", "WeldingSequencer"} <= set(understudy.__all__)


# ── after a lost arc ──


def test_a_seam_goes_on_where_its_arc_was_lost() -> None:
    with StandIn("g60_welding") as cell:
        cell.do("enable", robot="g60")
        cell.do("send_gcode", robot="g60", line=READY)
        cell.forward(10.0)
        cell.do("weld_seam", lines=SEAM)

        def welded() -> float:
            status = cell.on_component("g60.welder", lambda welder, now: welder.status(now))
            return float(status.total_weld_length_mm)

        while welded() < 20.0:
            cell.forward(0.05)
        cell.inject("arc_fault", "g60.welder")
        cell.forward(3.0)
        job = cell.do("weld_job")
        assert job["phase"] == "Fault"
        assert job["lost_mm"] == pytest.approx(20.0, abs=1.5)
        cell.do("reset", robot="g60")
        cell.do("reset")
        cell.do("enable", robot="g60")
        cell.do("jog", robot="g60", frame="base", axis=2, speed=20.0, step=30.0)
        cell.forward(5.0)
        cell.do("restore", **cell.do("snapshot"))
        cell.do("continue_seam", overlap_mm=4.0)
        cell.forward(40.0)
        assert cell.do("weld_job")["phase"] == "Done"
        assert welded() == pytest.approx(50.0 - job["lost_mm"] + 4.0, abs=1.0)
        tip = cell.on_component("g60", lambda arm, now: arm.tcp(now))
        assert tip[:3] == pytest.approx((0.45, 0.0, 0.35), abs=0.001)
        with pytest.raises(RuntimeError, match="no arc"):
            cell.do("continue_seam")


def test_the_sequencer_of_a_script_goes_on() -> None:
    arm = VirtualController("g60", welder={}, start_deg=[0, -40, 80, 0, 50, 0])
    arm.connect()
    arm.enable()
    assert "no arc" in WeldingSequencer(arm)._job.go_on(0.005, 0).reason  # type: ignore[union-attr]


def test_a_seam_goes_on_behind_the_driver_of_a_real_controller(tmp_path: Path) -> None:
    """The driver does not know when the arc was lost: the place is that of the tool at the alarm.
    The seam ends where it would have ended."""
    file = tmp_path / "cell.yaml"
    file.write_text(ARM)
    with StandIn(str(file), rate=1.0) as cell:
        host, port = cell.address("g60.grblhal")
        with GrblHalDriver(f"{host}:{port}") as driver:
            assert driver.connect() is None
            assert driver.enable() is None
            assert driver.send_gcode("G0 A0 B-40 C80 U0 V50 W0") is None
            driver.run_until_idle(60.0)
            begins = driver.tcp()
            sequencer, now = WeldingSequencer(driver), 0
            job = sequencer._job
            assert job.start(["G91 G1 X60 F300", "G90"], 0) is None
            lost = False
            while job.busy():
                arc = cell.on_component("g60.welder", lambda welder, now: welder.status(now))
                if not lost and arc.total_weld_length_mm > 5.0:
                    cell.inject("arc_fault", "g60.welder")
                    lost = True
                driver.wait(0.01)
                now += 10_000_000
                job.wake(now)
            first = job.status(now)
            assert first.phase == "Fault"
            assert first.lost_mm is not None
            cell.do("rate", rate="max")
            assert driver.reset() is None
            driver.run_until_idle(60.0)
            assert driver.enable() is None
            outcome = sequencer.go_on(4.0, 60.0)
            assert (outcome.phase, outcome.fault) == ("Done", "")
            ends = driver.tcp()
            assert ends.x - begins.x == pytest.approx(0.060, abs=0.0005)


@pytest.mark.parametrize(
    ("seam", "line", "along", "rest"),
    [
        (["G91 G1 Y50 F600", "G90"], 0, 0.02, ["F600 G91 G1 Y30.000", "G90"]),
        (["G90 G1 F600", "Y50", "Y90"], 1, 0.02, ["F600 G90 G1", "Y50", "Y90"]),
        (["G1 Y50 F600", "G91 X30 Y40"], 1, 0.025, ["F600 G91 G1 X15.000 Y20.000"]),
        (["G1 F600", "G2 X10 Y10 I5 J5"], 1, 0.01, "an arc"),
        (["G91 G1 Y50 C20 F600"], 0, 0.02, "no straight line"),
    ],
)
def test_the_rest_of_a_seam(
    seam: list[str], line: int, along: float, rest: list[str] | str
) -> None:
    found = rest_of(seam, line, along)
    if isinstance(rest, str):
        assert isinstance(found, Refused)
        assert rest in found.reason
    else:
        assert found == rest
