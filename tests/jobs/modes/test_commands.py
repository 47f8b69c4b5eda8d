"""Modes of operation at the operator's table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.benches import Bench
from tests.jobs.modes.cells import CELL
from tests.jobs.tools.tool_cell import CELL as TOOL_CELL

MODES = "{start: PICKPLACE, tools: {WELDING: 1, PICKPLACE: 2}}"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    file = tmp_path / "cell.yaml"
    text = CELL.format(modes=MODES, touches="false").replace("tool: 1", "tool: 2", 1)
    file.write_text(text)
    bench = Bench(str(file))
    bench.do("enable", robot="g60")
    yield bench
    bench.close()


def settled(bench: Bench) -> dict[str, Any]:
    bench.forward(3.0)
    status: dict[str, Any] = bench.do("operation_mode")
    return status


def test_an_operator_changes_the_mode_with_a_tool_by_hand(bench: Bench) -> None:
    assert bench.do("operation_mode")["mode"] == "PICKPLACE"
    assert bench.do("request_mode", mode="WELDING")["mode"] == "CHANGEOVER"
    status = settled(bench)
    assert (status["step"], status["tool"]) == ("CONFIRM_TOOL", 1)
    assert "under way" in bench.refusal("request_mode", mode="MANUAL")
    bench.do("confirm_tool", robot="g60")
    assert settled(bench)["mode"] == "WELDING"
    rows = [event.text for event in bench.do("events")["events"] if event.kind == "mode"]
    assert rows == ["PICKPLACE → CHANGEOVER", "CHANGEOVER → WELDING"]


def test_abort_and_wrong_calls(bench: Bench) -> None:
    assert "no changeover" in bench.refusal("abort_changeover")
    assert "failed" in bench.refusal("retry_changeover")
    assert "no tool" in bench.refusal("confirm_tool")
    assert "WELDING" in bench.refusal("request_mode", mode="WELDNG")
    assert "g61" in bench.refusal("operation_mode", robot="g61")
    bench.do("request_mode", mode="WELDING")
    settled(bench)
    assert bench.do("abort_changeover")["mode"] == "PICKPLACE"


def test_no_command_of_the_table_switches_the_arc_on(bench: Bench) -> None:
    program = "M7\nM3\nG1 A10 F600\nG1 A0\nM5\nM2\n"
    bench.ask("mdi", robot="g60", line="M3")
    bench.forward(2.0)
    bench.ask("mdi", robot="g60", line="M64 P0")
    bench.forward(2.0)
    bench.do("reset", robot="g60")
    bench.do("enable", robot="g60")
    bench.do("load_program", robot="g60", text=program, name="arc")
    for start in ({}, {"from_line": 3, "process": "restore"}):
        bench.ask("run_program", robot="g60", **start)
        bench.forward(10.0)
        bench.do("reset", robot="g60")
        bench.do("enable", robot="g60")
    bench.ask("run_programs")
    bench.forward(10.0)
    assert "locked in mode PICKPLACE" in bench.refusal(
        "set_output", robot="g60", pin="ARC_START", value=True
    )
    events = [event for event in bench.do("events")["events"] if event.kind == "welder"]
    assert not events
    outputs = bench.do("io", robot="g60")["digital_outputs"]
    assert not outputs[0]["value"]


def test_a_cell_without_modes_has_no_such_commands(bench_of_arm: Bench) -> None:
    names = {command["name"] for command in bench_of_arm.do("commands")}
    assert not {"operation_mode", "request_mode", "pick_place"} & names


@pytest.fixture
def bench_of_arm() -> Iterator[Bench]:
    bench = Bench("g60_welding")
    yield bench
    bench.close()


def test_an_operator_changes_the_tool_at_the_docks(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(TOOL_CELL.format(tool=1, simulation="{}", more="tool_changer: {}"))
    bench = Bench(str(file))
    bench.do("enable", robot="g60")
    assert [tool["number"] for tool in bench.do("tool_table")["tools"]] == [1, 2, 3]
    assert bench.refusal("change_tool", tool=1, check=True)
    assert bench.do("change_tool", tool=2, check=True)["phase"] == "IDLE"
    assert bench.do("change_tool", tool=2)["target"] == 2
    assert bench.refusal("change_tool", tool=1)
    bench.forward(60.0)
    assert bench.do("tool_change")["tool"] == 2
    assert "dock" in bench.refusal("change_tool", tool=3)
    bench.do("change_tool", tool=1)
    bench.forward(0.5)
    assert bench.do("cancel_tool_change")["phase"] == "FAULT"
    bench.close()
