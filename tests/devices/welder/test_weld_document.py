"""The design document's checklist, headings and all: virtual I/O and welding simulation."""

from importlib import resources

import pytest
from tests.devices.welder.weld_bench import SEAM, WeldingCell
from tests.parts import part

import understudy
from understudy.agenda import advance
from understudy.devices.welder.welder import Welder
from understudy.robots.arm.controller import ArmController
from understudy.simulation.io.virtual_io import Config, Link, VirtualIO
from understudy.units import NS_PER_MS, NS_PER_SECOND


class TestVirtualIO:
    """[ ] Virtual I/O"""

    def test_digital_input_simulation(self) -> None:
        """The program sees what is injected: M66 waits for the part sensor."""
        cell = WeldingCell()
        cell.send("M66 P10 L3 Q5", "M64 P20")
        cell.advance(1.0)
        assert not cell.io.digital_output(20)
        cell.io.simulate_sensor_trigger("PART_DETECTED", True, cell.now)
        assert cell.io.digital_output(20)
        cell.advance(0.2)
        assert not cell.io.digital_input("PART_DETECTED")

    def test_digital_output_response(self) -> None:
        """Outputs that the program sets can be read, and subscribers are informed."""
        cell = WeldingCell()
        reported: list[tuple[str, int, bool]] = []
        cell.io.subscribe(lambda change: reported.append((change.bank, change.pin, change.value)))
        cell.run("M64 P20", "M65 P20")
        assert reported == [("DO", 20, True), ("DO", 20, False)]

    def test_analog_io(self) -> None:
        cell = WeldingCell()
        cell.run("M68 E3 Q7.5")
        assert cell.g60.analog_io(cell.now).outputs[3] == 7.5
        cell.io.simulate_analog_sensor("GRIPPER_FORCE", 6.0, cell.now, ramp_s=2.0)
        cell.advance(1.0)
        assert cell.g60.analog_io(cell.now).inputs[4] == pytest.approx(3.0)
        cell.run("M66 E4 L0")
        assert cell.g60.input_result() == pytest.approx(3.0, abs=0.01)

    def test_linked_io(self) -> None:
        """Output triggers input, after 50 and 100 ms."""
        io = VirtualIO(Config(links=[Link(0, 0, 50), Link(1, 1, 100)]))
        io.set_digital_output(0, True, 0)
        io.set_digital_output(1, True, 0)
        seen = []
        for ms in (49, 50, 99, 100):
            advance([io], ms * NS_PER_MS)
            seen.append(io.digital().inputs)
        assert seen == [0b00, 0b01, 0b01, 0b11]


class TestWeldingSimulation:
    """[ ] Welding Simulation"""

    def test_arc_on_off(self) -> None:
        cell = WeldingCell()
        cell.send(*SEAM)
        cell.until("Weld")
        assert cell.io.digital_input("ARC_OK")
        assert cell.welder.status(cell.now).arc_on
        assert cell.welder.status(cell.now).current_amps == pytest.approx(171.0)
        cell.until("PostFlow")
        assert not cell.welder.status(cell.now).arc_on
        cell.advance(0.05)
        assert not cell.io.digital_input("ARC_OK")

    def test_gas_flow_simulation(self) -> None:
        cell = WeldingCell()
        cell.run("M7")
        opened = cell.now
        cell.advance(0.099)
        assert not cell.welder.status(cell.now).gas_flowing
        cell.advance(0.001)
        assert cell.now == opened + NS_PER_SECOND // 10
        assert cell.io.digital_input("GAS_OK")
        assert cell.welder.status(cell.now).gas_flow_l_min == 15.0
        cell.run("M9")
        assert not cell.welder.status(cell.now).gas_flowing

    def test_wire_feed_simulation(self) -> None:
        cell = WeldingCell()
        cell.run("M68 E0 Q5", "M64 P2")
        assert cell.welder.status(cell.now).wire_speed_m_min == 10.0
        cell.run("M65 P2")
        assert not cell.welder.status(cell.now).wire_feeding

    def test_weld_trail_visualization(self) -> None:
        """What the page draws: a point for every millimetre of seam."""
        cell = WeldingCell()
        cell.run(*SEAM)
        trail = cell.welder.trail()
        assert 180 <= len(trail) <= 201
        cell.welder.clear_trail(cell.now)
        assert cell.welder.trail() == ()

    def test_faults_of_the_panel(self) -> None:
        """simulateArcFault, simulateWireFault, simulateGasFault."""
        for fault in ("arc_fault", "wire_fault", "gas_fault"):
            cell = WeldingCell()
            cell.send(*SEAM)
            cell.until("Weld")
            assert cell.inject(fault) is None
            cell.advance(0.5)
            assert cell.welder.phase == "Fault"
            assert cell.io.digital_input("WELD_ERROR")


def test_the_shipped_seam_welds_on_the_shipped_cell() -> None:
    program = resources.files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
    cell = understudy.load_cell("g60_welding")
    robot = part(cell, "g60", ArmController)
    welder = part(cell, "g60.welder", Welder)
    robot.connect(0)
    robot.enable(0)
    for line in program.splitlines():
        assert robot.send_gcode(line, 0) is None, line
    cell.run_while_busy()
    assert robot.status(cell.timed_cell.now).error_message == ""
    assert welder.issues() == ()
    assert f"{welder.status(cell.timed_cell.now).total_weld_length_mm:.2f}" == "200.00"
    assert robot.io.digital().outputs == 0
