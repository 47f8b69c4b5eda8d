"""The weld job of a cell, and the sequencer and the driver as classes of a script."""

from pathlib import Path

import pytest

import understudy
from understudy import ConfigError, GrblHalDriver, VirtualController, WeldingSequencer
from understudy.app.stand_in import StandIn

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
        assert cell.do("weld_job") == {"robot": "g60", "phase": "Done", "fault": ""}
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
