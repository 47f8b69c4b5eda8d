"""The section about servo grippers in docs/devices/gripper.md against the code."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.devices.gripper.modbus.servo_cell import config_of

from understudy.app.live import Live, Options
from understudy.devices.gripper.modbus import FAULTS, ServoConfig, dh, robotiq
from understudy.devices.gripper.modbus.assembly import MAKES

PAGE = (Path(__file__).parents[4] / "docs/devices/gripper.md").read_text()


@pytest.mark.parametrize("table", [robotiq.TRANSITIONS, dh.TRANSITIONS], ids=["robotiq", "dh"])
def test_the_diagrams_are_the_tables(table: Mapping[tuple[str, str], str]) -> None:
    arrows = "".join(f"    {a} --> {b}: {event}\n" for (a, event), b in table.items())
    assert f"```mermaid\nstateDiagram-v2\n{arrows}```" in PAGE


def test_every_key_make_and_fault_is_on_the_page() -> None:
    names = (*ServoConfig.__struct_fields__, *MAKES, *FAULTS)
    assert [name for name in names if f"`{name}`" not in PAGE] == []


async def _run_example(code: str) -> None:
    live = Live(config_of(faces={"gripper": {"tcp": {"port": 0}}}), Options(ephemeral=True))
    await live.start()
    try:
        port = live.endpoints["g60.gripper.tcp"].rpartition(":")[2]
        program = compile(code.replace("port=5020", f"port={port}"), "gripper.md", "exec")
        names: dict[str, Any] = {}
        await asyncio.to_thread(exec, program, names)
        names["client"].close()
    finally:
        await live.stop()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(from pymodbus.*?)```", PAGE, re.DOTALL)
    assert found is not None
    asyncio.run(_run_example(found[1]))
    assert re.fullmatch(r"\[\d+, \d+, \d+\]\n", capsys.readouterr().out)
