"""`understudy.VirtualController`: the controller of a cell with a clock of its own."""

import inspect
import math
import subprocess
import sys
from typing import Any

import pytest

import understudy
from understudy.robots.arm import Config
from understudy.robots.arm.controller import ArmController as OfTheCell
from understudy.simulation.cell import read_snapshot, write_snapshot

OF_A_PART = {
    "mount",
    "postponed",
    "process_lost",
    "busy",
    "fault",
    "faults",
    "guard",
    "inhibit_motion",
    "inject",
    "load",
    "next_wake",
    "obey",
    "permit_motion",
    "save",
    "view",
    "wake",
}


HEAVY = ["numba", "ruckig", "trimesh", "nicegui", "zmq", "eaik"]


def methods(kind: type) -> dict[str, list[str]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {
        name: [word for word in inspect.signature(method).parameters if word != "now"]
        for name, method in found
        if not name.startswith("_")
    }


def test_it_has_the_methods_of_the_controller_without_the_time() -> None:
    own, inner = methods(understudy.VirtualController), methods(OfTheCell)
    for name in inner.keys() - OF_A_PART:
        assert len(own[name]) == len(inner[name]), name


def test_time_passes_in_advance_and_wait() -> None:
    controller = understudy.VirtualController()
    assert controller.simulation_time() == 0.0
    controller.advance(0.25)
    controller.wait(0.5)
    assert controller.simulation_time() == 0.75


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_wrong_duration_is_a_value_error(seconds: float) -> None:
    for clock in (understudy.VirtualController(), understudy.load_cell("text_robot")):
        with pytest.raises(ValueError, match="cannot wait"):
            clock.advance(seconds)


def test_run_until_idle_runs_until_the_status_is_idle() -> None:
    controller = understudy.VirtualController()
    controller.connect()
    controller.enable()
    controller.send_gcode("G0 A90")
    controller.send_gcode("G4 P2")
    controller.run_until_idle()
    assert controller.status().state == "Idle"
    assert controller.joint_state().positions[0] == pytest.approx(1.5707963267948966)


def test_run_until_idle_has_a_timeout() -> None:
    controller = understudy.VirtualController()
    controller.connect()
    controller.enable()
    controller.send_gcode("G4 P100")
    with pytest.raises(TimeoutError, match="10 simulated seconds"):
        controller.run_until_idle(timeout=10.0)
    assert controller.simulation_time() == 10.0
    assert controller.status().moving


def test_its_arguments_are_the_keys_of_a_cell_file() -> None:
    for name in Config.__struct_fields__:
        assert name in str(_problem(colour="red"))
    assert "allowed: a number ≥ 0.001" in str(_problem(simulation={"update_rate_hz": "fast"}))
    assert "did you mean 'dialect'" in str(_problem(dialekt="seed"))


def _problem(**settings: Any) -> understudy.ConfigError:
    with pytest.raises(understudy.ConfigError) as raised:
        understudy.VirtualController(**settings)
    return raised.value


def test_every_shipped_robot_can_be_used() -> None:
    controller = understudy.VirtualController("kr6_r900")
    assert controller.tcp().x == pytest.approx(0.98)
    with pytest.raises(understudy.ConfigError, match="did you mean 'g60'"):
        understudy.VirtualController("g600")


def test_a_snapshot_can_be_restored_into_the_same_arm_only() -> None:
    controller = understudy.VirtualController()
    controller.connect()
    controller.enable()
    controller.jog(0, 0.3)
    controller.advance(0.5)
    data = write_snapshot(controller.snapshot())
    controller.advance(0.5)
    same, other = understudy.VirtualController(), understudy.VirtualController("kr6_r900")
    same.restore(read_snapshot(data))
    same.advance(0.5)
    assert same.joint_state() == controller.joint_state()
    with pytest.raises(understudy.ConfigError, match="another configuration"):
        other.restore(read_snapshot(data))


def test_the_class_is_imported_lazily() -> None:
    code = (
        "import sys, understudy; assert 'numpy' not in sys.modules; "
        "understudy.VirtualController; assert 'numpy' in sys.modules; "
        "assert set(understudy.__all__) == set(understudy._OFFERED) <= set(dir(understudy))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_classes_of_the_pick_and_place_document_are_at_the_top() -> None:
    document = """PalletPattern PickPlaceManager GripperController ToolManager ModeManager
        PickPlaceSafety VisionServer VisionBridge HandEyeCalibrator"""
    for name in document.split():
        assert name in dir(understudy)
        assert getattr(understudy, name).__name__ == name


@pytest.mark.parametrize("room", ["understudy.cli", "understudy.app.live"])
def test_nothing_heavy_is_imported_before_it_is_needed(room: str) -> None:
    """A cell without an arm starts without a compiler, a command without a page."""
    ask = f"import sys, {room}; print([m for m in {HEAVY} if m in sys.modules])"
    reported = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True
    )
    assert reported.stdout.strip() == "[]"


def test_a_line_that_is_wrong_in_its_turn_is_in_the_status_and_refuses_the_next() -> None:
    """As docs/robots/arm.md says: what cannot be read is refused at once, the rest at its turn."""
    arm = understudy.VirtualController("g60")
    arm.connect()
    arm.enable()
    unreadable = arm.send_gcode("G1 Xa")
    assert unreadable is not None
    assert "X needs a number" in unreadable.reason
    assert arm.send_gcode("G1 Q7") is None
    assert not arm.status().error
    arm.run_until_idle()
    assert (arm.status().error, arm.status().error_code) == (True, 22)
    refused = arm.send_gcode("G0 A5")
    assert refused is not None
    assert refused.reason == arm.status().error_message
