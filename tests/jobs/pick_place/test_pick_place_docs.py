"""docs/jobs/pick_place.md against the code."""

from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.jobs.pick_place.config import CycleConfig, Handshake, SafetyConfig
from understudy.jobs.pick_place.state import TRANSITIONS, diagram
from understudy.jobs.pick_place.status import ADVICE

PAGE = (Path(__file__).parents[3] / "docs/jobs/pick_place.md").read_text()


def test_the_diagram_is_the_table() -> None:
    assert f"```mermaid\n{diagram()}\n```" in PAGE


@pytest.mark.parametrize("section", [CycleConfig, SafetyConfig, Handshake])
def test_every_key_is_on_the_page(section: type) -> None:
    for key in section.__struct_encode_fields__:  # type: ignore[attr-defined]
        assert f"`{key}`" in PAGE


def test_every_fault_and_state_is_on_the_page() -> None:
    for code in ADVICE:
        assert f"| `{code}` |" in PAGE
    for state, _ in TRANSITIONS:
        assert state in PAGE


def test_the_cell_of_the_page_runs_a_cycle() -> None:
    text = PAGE.split("```yaml\n")[1].split("```")[0]
    cell = build_cell(read_config(text, "page.yaml"))
    robot, job = cell.components["g60"], cell.components["g60.pick_place"]
    robot.connect(0)  # type: ignore[attr-defined]
    robot.enable(0)  # type: ignore[attr-defined]
    assert job.start(0, max_cycles=1) is None  # type: ignore[attr-defined]
    cell.advance(20_000_000_000)
    assert job.status(20_000_000_000).success_count == 1
