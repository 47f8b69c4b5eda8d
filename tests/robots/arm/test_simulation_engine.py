"""The design document's classes, assembled from public names."""

from pathlib import Path

import pytest

from understudy import ConfigError, Refused, SimulationConfig, SimulationEngine, VirtualController
from understudy.app.stand_in import StandIn
from understudy.units import DEG


def weld(engine: SimulationEngine) -> None:
    engine.start()
    arm = engine.controller
    arm.connect()
    arm.enable()
    for line in ("G0 X450 Y-50 Z350 A180 B0 C0", "M8", "M3", "G1 Y50 F600", "M5", "M9"):
        assert arm.send_gcode(line) is None
    engine.run_until_idle()


def weld_until_the_arc_burns(engine: SimulationEngine) -> None:
    engine.start()
    arm = engine.controller
    arm.connect()
    arm.enable()
    for line in ("G0 X450 Y-50 Z350 A180 B0 C0", "M8", "M3", "G1 Y50 F600"):
        assert arm.send_gcode(line) is None
    while engine.welder.status().arc_on_time_s < 1.0:
        engine.advance(0.1)


# ── SimulationEngine ──


def test_the_engine_has_controller_pins_and_welder_on_one_time() -> None:
    engine = SimulationEngine("g60_welding")
    weld(engine)
    assert engine.state() == "RUNNING"
    assert engine.welder.status().total_weld_length_mm == pytest.approx(100.0, abs=0.01)
    assert len(engine.welder.trail()) > 10
    assert not engine.io.digital_output("ARC_START")
    metrics = engine.metrics()
    assert metrics.simulation_time_s == engine.controller.simulation_time() > 5.0
    assert metrics.gcode_executed == 6
    assert metrics.total_distance_mm > 100.0


def test_before_start_the_engine_is_stopped_and_refuses_motion() -> None:
    engine = SimulationEngine("g60_welding")
    engine.controller.connect()
    engine.controller.enable()
    assert engine.state() == "STOPPED"
    assert isinstance(engine.controller.send_gcode("G0 A1"), Refused)
    engine.start()
    assert engine.controller.send_gcode("G0 A1") is None
    assert engine.state() == "RUNNING"


def test_a_reset_zeroes_the_counters_of_the_engine_and_of_the_welder() -> None:
    engine = SimulationEngine("g60_welding")
    weld(engine)
    assert engine.welder.status().arc_on_time_s > 1.0
    engine.reset()
    status, metrics = engine.welder.status(), engine.metrics()
    assert (status.arc_on_time_s, status.total_weld_length_mm) == (0.0, 0.0)
    assert (metrics.gcode_executed, metrics.total_distance_mm) == (0, 0.0)


def test_an_arc_that_burns_out_after_a_reset_is_not_counted() -> None:
    """The reset ends the program; the crater of its arc burns on."""
    engine = SimulationEngine("g60_welding")
    weld_until_the_arc_burns(engine)
    engine.reset()
    engine.advance(2.0)
    status = engine.welder.status()
    assert not status.arc_on
    assert (status.arc_on_time_s, status.total_weld_length_mm) == (0.0, 0.0)
    weld(engine)
    assert engine.welder.status().arc_on_time_s > 1.0, "the next arc is counted"


def test_the_metrics_have_the_time_of_the_computer() -> None:
    engine = SimulationEngine("g60_welding")
    assert (engine.metrics().real_time_s, engine.metrics().time_ratio) == (0.0, 1.0)
    engine.advance(3600.0)
    metrics = engine.metrics()
    assert metrics.real_time_s > 0.0
    assert metrics.time_ratio == pytest.approx(3600.0 / metrics.real_time_s)


def test_the_collision_detector_has_what_stands_around_now(tmp_path: Path) -> None:
    engine = SimulationEngine("g60_welding")
    into_the_table = [0.0, 60 * DEG, 60 * DEG, 0.0, 0.0, 0.0]
    assert engine.collision_detector.check_collision(into_the_table).collision
    empty = tmp_path / "empty.yaml"
    empty.write_text("objects: []")
    engine.load_environment(empty)
    assert not engine.collision_detector.check_collision(into_the_table).collision


def test_a_snapshot_brings_back_joints_pins_and_time() -> None:
    engine = SimulationEngine("g60_welding")
    before, joints = engine.snapshot(), engine.controller.joint_state().positions
    weld(engine)
    assert engine.controller.joint_state().positions != joints
    engine.restore(before)
    assert engine.controller.joint_state().positions == joints
    assert engine.controller.simulation_time() == 0.0


def test_faults_are_injected_and_reset() -> None:
    engine = SimulationEngine("g60_welding")
    assert engine.inject("gas_fault", "g60.welder") is None
    assert isinstance(engine.inject("gas_fault", "nowhere"), Refused)
    engine.start()
    engine.inject("emergency_stop")
    assert engine.state() == "ERROR"
    engine.reset()
    assert engine.state() == "RUNNING"
    assert not engine.welder.active_faults()


def test_the_time_scale_is_the_factor_of_wait() -> None:
    engine = SimulationEngine("g60_welding")
    engine.start()
    engine.set_time_scale(5.0)
    engine.wait(2.0)
    assert engine.time_scale() == 5.0
    assert engine.controller.simulation_time() == 10.0
    engine.pause()
    engine.wait(2.0)
    assert (engine.state(), engine.controller.simulation_time()) == ("PAUSED", 10.0)


def test_an_environment_file_replaces_what_stands_around(tmp_path: Path) -> None:
    engine = SimulationEngine("g60_welding")
    file = tmp_path / "around.yaml"
    file.write_text(
        "objects: [{name: post, type: sphere, position_mm: [400, 0, 300], radius_mm: 9}]"
    )
    engine.load_environment(file)
    assert [thing.name for thing in engine.controller.surroundings.environment.objects] == ["post"]
    file.write_text("objects: [{name: post, type: bix}]")
    with pytest.raises(ConfigError, match=r"around\.yaml:1"):
        engine.load_environment(file)
    assert [thing.name for thing in engine.controller.surroundings.environment.objects] == ["post"]


def test_a_cell_without_an_arm_is_refused() -> None:
    with pytest.raises(ConfigError, match="the cell text_robot has no arm"):
        SimulationEngine("text_robot")
    with pytest.raises(ConfigError, match="unknown arm"):
        SimulationEngine("default", robot="kuka")


# ── VirtualController ──


def test_the_document_s_names_configure_a_controller() -> None:
    config = SimulationConfig(
        update_rate_hz=100,
        time_scale=2.0,
        max_velocity=[0.1] * 6,
        max_acceleration=[10.0] * 6,
        command_delay_ms=7.0,
        joint_friction=[0.1] * 6,
        enable_dynamics=True,
    )
    arm = VirtualController(config)
    arm.connect()
    arm.enable()
    arm.send_gcode(f"G0 A{1.0 / DEG}")
    arm.run_until_idle()
    assert arm.simulation_time() == pytest.approx(10.0, abs=0.1)
    arm.wait(1.0)
    assert arm.simulation_time() == pytest.approx(12.0, abs=0.1)


def test_pins_links_pulses_and_ramps_need_no_time() -> None:
    arm = VirtualController("g60")
    arm.io.link(0, 3, 50)
    arm.set_digital_output(0, True)
    arm.advance(0.049)
    assert not arm.digital_io().inputs & 1 << 3
    arm.advance(0.001)
    assert arm.digital_io().inputs & 1 << 3
    arm.io.simulate_sensor_trigger(5, True, 100.0)
    assert arm.io.digital_input(5)
    arm.advance(0.1)
    assert not arm.io.digital_input(5)
    assert isinstance(arm.io.set_digital_output(99, True), Refused)


def test_devices_are_attributes_of_the_controller() -> None:
    arm = VirtualController("g60", welder={})
    assert arm.welder.set_weld_parameters(180.0, 24.0, 7.5) is None
    assert arm.welder.set_values().current_amps == 180.0
    with pytest.raises(AttributeError, match="its devices: welder"):
        _ = arm.gripper


# ── the same on the wire ──


def test_weld_parameters_are_an_operator_command() -> None:
    with StandIn("g60_welding") as cell:
        values = {"current_a": 150.0, "voltage_v": 21.0, "wire_speed_m_min": 6.0}
        assert cell.do("set_weld_parameters", **values)["name"] == "g60.welder"
        with pytest.raises(RuntimeError, match=r"there are: g60\.welder"):
            cell.do("set_weld_parameters", device="x", **values)
        with pytest.raises(RuntimeError, match="cannot be set on a power source"):
            cell.do("set_weld_parameters", **{**values, "current_a": -1.0})
