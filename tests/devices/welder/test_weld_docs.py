"""docs/devices/welder.md against the code."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from understudy.devices.welder import FAULTS, TRANSITIONS, Config
from understudy.jobs.weld.sequencer import TRANSITIONS as JOB_TRANSITIONS

PAGE = (Path(__file__).parents[3] / "docs/devices/welder.md").read_text()


@pytest.mark.parametrize("table", [TRANSITIONS, JOB_TRANSITIONS], ids=["source", "job"])
def test_the_diagram_is_the_table(table: Mapping[tuple[str, str], str]) -> None:
    arrows = (f"    {a} --> {b}: {event}\n" for (a, event), b in table.items())
    assert "stateDiagram-v2\n" + "".join(arrows) in PAGE


@pytest.mark.parametrize("setting", Config.__struct_fields__)
def test_every_setting_is_on_the_page(setting: str) -> None:
    assert f"`{setting}`" in PAGE


def test_every_fault_is_on_the_page() -> None:
    for name in FAULTS:
        assert f"`{name}`" in PAGE
