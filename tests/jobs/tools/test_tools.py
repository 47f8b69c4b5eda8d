"""ToolManager: the tool table of an arm, tips as whole transforms, and G-code of a change."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.jobs.tools.tool_cell import ToolCell

from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.jobs.tools.manager import Change, Go, ToolManager, phases, step
from understudy.ports.tools import ChangerSettings, ToolDefinition
from understudy.robots.arm import ToolConfig
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import matrix

TORCH = ToolDefinition(1, "torch", pose_of((0, 0, 150, 0, 0, 0)), 1.5)
GRIPPER = ToolDefinition(2, "gripper", pose_of((10, -5, 80, 0, 30, 45)), 0.8, outputs=(8, 9))


def manager() -> ToolManager:
    return ToolManager([TORCH, GRIPPER])


def test_tools_are_defined_and_found() -> None:
    tools = manager()
    assert tools.define_tool(ToolDefinition(7, "cup", mass=0.2)) is None
    assert tools.get_tool(7) == ToolDefinition(7, "cup", mass=0.2)
    assert tools.get_tool(0) == ToolDefinition(0, "flange")
    assert tools.get_tool(3) == Refused("there is no tool 3; there are: T0, T1, T2, T7")
    assert tools.define_tool(ToolDefinition(0)) == Refused(
        "T0 cannot be defined; allowed: 1 and above"
    )
    assert isinstance(tools.define_tool(ToolDefinition(1, mass=-1.0)), Refused)
    assert isinstance(tools.define_tool(ToolDefinition(1, mass=math.nan)), Refused)


def test_one_tool_is_active() -> None:
    tools = manager()
    assert tools.get_active_tool() == 0
    assert tools.set_active_tool(2) is None
    assert tools.get_active_tool() == 2
    assert isinstance(tools.set_active_tool(9), Refused)
    assert tools.get_active_tool() == 2
    other = ToolManager()
    other.load(tools.save())
    assert other.status(0) == tools.status(0)


def test_only_the_ways_into_a_dock_and_out_of_it_are_straight() -> None:
    settings = ChangerSettings(5, 5, 6, 2.0, 0.1, 0.25, 0.05, 0.002)
    dock = pose_of((500, 0, 200, 180, 0, 0))
    change = Change(replace(TORCH, dock=dock), replace(GRIPPER, dock=dock), settings)
    steps = {phase: step(phase, change) for phase in phases(change)}
    moves = {phase: each.line for phase, each in steps.items() if isinstance(each, Go)}
    assert moves == {
        "APPROACH_PUT": False, "INSERT": True, "LEAVE": True,
        "APPROACH_TAKE": False, "COUPLE": True, "PULL": True,
    }  # fmt: skip


lengths, angles = st.floats(-1.0, 1.0), st.floats(-math.pi, math.pi)
poses = st.builds(Pose, lengths, lengths, lengths, angles, angles, angles)


@given(at=poses, tip=poses)
def test_the_offset_is_applied_and_removed_as_a_whole_transform(at: Pose, tip: Pose) -> None:
    tools = ToolManager([ToolDefinition(1, tcp=tip)])
    applied = tools.apply_tlo(at, 1)
    assert isinstance(applied, Pose)
    assert matrix(applied) == pytest.approx(matrix(at) @ matrix(tip), abs=1e-9)
    back = tools.remove_tlo(applied, 1)
    assert isinstance(back, Pose)
    assert matrix(back) == pytest.approx(matrix(at), abs=1e-9)
    assert matrix(tools.apply_tlo(at, 0)) == pytest.approx(matrix(at), abs=1e-12)  # type: ignore[arg-type]


def test_an_unknown_tool_has_no_offset() -> None:
    assert isinstance(manager().apply_tlo(Pose(0, 0, 0, 0, 0, 0), 5), Refused)


def test_a_change_by_hand_has_an_m6() -> None:
    tools = manager()
    assert tools.generate_tool_change_gcode(1) == "G49\nT1 M6\nG43 H1\n"
    tools.set_active_tool(2)
    assert tools.generate_tool_change_gcode(1) == "G49\nG4 P0\nM65 P8\nM65 P9\nT1 M6\nG43 H1\n"
    assert tools.generate_tool_change_gcode(0) == "G49\nG4 P0\nM65 P8\nM65 P9\nT0 M6\n"
    assert isinstance(tools.generate_tool_change_gcode(4), Refused)


# ── the table of an arm ─────────────────────────────────────────────────────────────────────────


def test_the_manager_has_the_tools_of_the_cell_file() -> None:
    cell = ToolCell()
    torch = cell.tools.get_tool(1)
    assert isinstance(torch, ToolDefinition)
    assert (torch.name, torch.mass) == ("torch", 1.5)
    assert torch.tcp.z == pytest.approx(0.15)
    assert torch.dock == pose_of((300, 400, 300, 180, 0, 0))
    assert cell.tools.get_active_tool(cell.now) == 1


def test_the_controller_moves_the_tool_that_is_set_active() -> None:
    cell = ToolCell()
    flange = cell.arm.tools.flange(cell.now)  # type: ignore[union-attr]
    assert cell.tools.set_active_tool(2, cell.now) is None
    cell.run()
    assert cell.tools.get_active_tool(cell.now) == 2
    tip = cell.tools.apply_tlo(flange, 2)
    assert isinstance(tip, Pose)
    assert matrix(cell.arm.tcp(cell.now)) == pytest.approx(matrix(tip), abs=1e-9)


def test_a_defined_tip_is_the_one_that_the_arm_moves() -> None:
    cell = ToolCell()
    torch = cell.tools.get_tool(1)
    assert isinstance(torch, ToolDefinition)
    bent = ToolDefinition(1, "bent", pose_of((0, 20, 150, 45, 0, 0)), torch.mass, torch.com)
    assert cell.tools.define_tool(bent, cell.now) is None
    tip = cell.tools.apply_tlo(cell.arm.tools.flange(cell.now), 1)  # type: ignore[union-attr]
    assert isinstance(tip, Pose)
    assert matrix(cell.arm.tcp(cell.now)) == pytest.approx(matrix(tip), abs=1e-9)
    assert isinstance(cell.tools.define_tool(ToolDefinition(9), cell.now), Refused)
    heavier = ToolDefinition(1, "torch", torch.tcp, 9.0)
    assert isinstance(cell.tools.define_tool(heavier, cell.now), Refused)


def test_the_mass_of_the_active_tool_is_in_the_torques() -> None:
    cell = ToolCell(simulation="{enable_dynamics: true}")
    torques = {}
    for number in (0, 1, 2):
        cell.tools.set_active_tool(number, cell.now)
        cell.run()
        torques[number] = cell.arm.joint_state(cell.now).torques[1]
    light, heavy = torques[2] - torques[0], torques[1] - torques[0]  # 0.8 kg and 1.5 kg
    assert 1.5 < heavy / light < 2.5


@pytest.mark.parametrize("lines", [("G43 H2",), ("G43.1 Z70",), ("T2", "G43 H2")])
def test_length_offsets_come_from_the_same_table(lines: tuple[str, ...]) -> None:
    """With the torch (150 mm) mounted, the length of the gripper (80 mm) is 70 mm less."""
    cell = ToolCell()
    x, y, z = (value * 1000 for value in cell.arm.tcp(cell.now)[:3])
    shift = 70.0 if "G43.1 Z70" in lines else -70.0
    assert cell.lines(*lines, f"G1 X{x:.6f} Y{y:.6f} Z{z:.6f} F6000") is None
    assert np.array(cell.arm.tcp(cell.now)[:3]) * 1000 == pytest.approx([x, y, z + shift], abs=1e-3)
    assert cell.lines("G49", f"G1 X{x:.6f} Y{y:.6f} Z{z:.6f} F6000") is None
    assert np.array(cell.arm.tcp(cell.now)[:3]) * 1000 == pytest.approx([x, y, z], abs=1e-3)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"outputs": [32]}, r"outputs\.0.*32"),
        ({"dock": {"x": 1, "y": 2}}, r"dock\.z"),
        ({"docks": {}}, "did you mean 'dock'"),
    ],
)
def test_wrong_keys_of_a_tool_are_named(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read(keys, ToolConfig)
