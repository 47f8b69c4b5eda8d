"""docs/devices/gripper.md against the code."""

from pathlib import Path

import pytest
from tests.devices.gripper.gripper_cell import GripperCell

from understudy.devices.gripper import TRANSITIONS, Calibration, Config, Cup, Fingers, Pins
from understudy.devices.gripper.hardware import CUP_FAULTS, FINGER_FAULTS

PAGE = (Path(__file__).parents[3] / "docs/devices/gripper.md").read_text()


def test_the_diagram_is_the_table() -> None:
    rows = {
        (a, event): b for (a, event), b in TRANSITIONS.items() if event not in ("grip", "release")
    }
    arrows = (f"    {a} --> {b}: {event}\n" for (a, event), b in rows.items())
    assert "stateDiagram-v2\n" + "".join(arrows) + "```" in PAGE


@pytest.mark.parametrize("config", [Config, Pins, Calibration, Fingers, Cup])
def test_every_key_is_on_the_page(config: type[Config]) -> None:
    missing = [key for key in config.__struct_fields__ if f"`{key}`" not in PAGE]
    assert [key for key in missing if key not in ("fingers", "cup")] == []


def test_every_fault_and_command_is_on_the_page() -> None:
    actions = GripperCell({"type": "PNEUMATIC_VACUUM"}).gripper.actions()
    for name in (*FINGER_FAULTS, *CUP_FAULTS, *actions):
        assert f"`{name}`" in PAGE
