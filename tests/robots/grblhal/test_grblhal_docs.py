"""docs/robots/grblhal.md agrees with the code."""

from pathlib import Path

import pytest

from understudy.robots.grblhal.driver import Config
from understudy.robots.grblhal.driver.connection import RECOVERY
from understudy.robots.grblhal.firmware.conditions import TRANSITIONS, diagram
from understudy.robots.grblhal.machine import Config as MachineConfig
from understudy.robots.grblhal.numbers import OVERRIDES

PAGE = (Path(__file__).parents[3] / "docs" / "robots" / "grblhal.md").read_text()


def test_the_diagram_of_conditions_is_the_table() -> None:
    assert f"```mermaid\n{diagram()}```\n" in PAGE


def test_every_transition_is_in_the_diagram() -> None:
    arrows = [line.strip() for line in diagram().splitlines() if "-->" in line]
    for (before, event), after in TRANSITIONS.items():
        ends = (before.replace(":", "_"), after.replace(":", "_"))
        starts = (f"{ends[0]} --> {ends[1]}: ", f"AtWork --> {ends[1]}: ")
        events = [e for a in arrows if a.startswith(starts) for e in a.split(": ")[1].split(", ")]
        assert event in events


def test_the_diagram_of_recovery_is_the_table() -> None:
    arrows = (f"    {a} --> {b}: {event}\n" for (a, event), b in RECOVERY.items())
    assert "stateDiagram-v2\n" + "".join(arrows) in PAGE


@pytest.mark.parametrize("condition", sorted({condition for condition, _ in TRANSITIONS}))
def test_every_condition_is_explained(condition: str) -> None:
    assert condition in PAGE.split("## Conditions")[1].split("```mermaid")[0]


@pytest.mark.parametrize("setting", [*Config.__struct_fields__, *MachineConfig.__struct_fields__])
def test_every_setting_is_on_the_page(setting: str) -> None:
    assert f"`{setting}`" in PAGE or f"    {setting}: " in PAGE


def test_the_bytes_of_overrides_are_on_the_page() -> None:
    for byte in (min(OVERRIDES), 0x95, 0x97, 0x99):
        assert f"0x{byte:02X}" in PAGE
