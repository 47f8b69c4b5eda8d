"""A REAL machine, with the machine of a second cell in its place: over TCP and a serial port."""

import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.operator.real_pair import Operator, alive, run

from understudy.config.cell import RealPlace
from understudy.wire.dial import parse_place

NAME = "machine"
MACHINE = """
robots:
  machine:
    kind: machine
    settings: {{110: 9000, 111: 9000, 112: 9000, 120: 3000, 121: 3000, 122: 3000}}
    faces: {{grblhal: {{{wire}}}}}
"""


@pytest.fixture(params=["port: 0", "pty: true"])
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    (tmp_path / "cell.yaml").write_text(MACHINE.format(wire=request.param))
    return str(tmp_path / "cell.yaml")


@contextlib.asynccontextmanager
async def pair(cell: str) -> AsyncIterator[tuple[Operator, Operator]]:
    """The machine that is the real one, and the operator of the other cell."""
    async with alive(cell, NAME) as there:
        place: RealPlace = parse_place(there.endpoints["machine.grblhal"])
        async with alive(cell, NAME, at=place, controller="real", real=True) as here:
            operator = Operator(here, NAME)
            assert operator.facts["mode"] == "REAL"
            await operator.connected()
            yield Operator(there, NAME), operator


def mm(operator: Operator) -> list[float]:
    """X Y Z in mm, A B C in deg."""
    reading = operator.axis_reading().joints
    scales = [1000.0] * 3 + [57.29577951308232] * 3
    return [round(value * scale, 2) for value, scale in zip(reading, scales, strict=True)]


def test_a_real_machine_takes_lines_moves_steps_and_programs(cell: str) -> None:
    async def test() -> None:
        async with pair(cell) as (there, operator):
            assert {"drives", "gcode", "jog_held", "program"} <= set(operator.facts["capabilities"])
            refused = operator.refusal("send_gcode", robot=NAME, line="G0 X1")
            assert "not enabled" in refused, "connecting enables nothing"
            operator.on("enable")
            operator.on("move_to", joints_deg=[10, 20, -5, 3, 0, 0])
            await operator.at_rest()
            assert mm(there) == mm(operator) == [10.0, 20.0, -5.0, 3.0, 0.0, 0.0]
            operator.on("jog", frame="joint", axis=0, speed=50, step=2)
            await operator.at_rest()
            assert mm(there)[0] == mm(operator)[0] == 12.0
            await operator.later(
                "load_program", text="G90\n\nG2 X12 Y20 I-2 J0 F3000\nG0 X0\n", name="p"
            )
            await operator.later("run_program")
            shown = await operator.ended()
            assert (shown["state"], shown["error"]) == ("done", "")
            assert mm(there)[:2] == [0.0, 20.0]
            states = [each.text for each in operator.do("events")["events"] if each.kind == "state"]
            pairs = [text.split(" → ") for text in states]
            assert all(one[1] == after[0] for one, after in pairwise(pairs)), "each is noted once"
            view = operator.live.operator.real_views()[NAME]
            assert view.linear == (0, 1, 2)
            assert view.tcp[1] == pytest.approx(0.02)

    run(test)


def test_a_jog_a_stop_and_an_alarm_of_a_real_machine(cell: str) -> None:
    async def test() -> None:
        async with pair(cell) as (there, operator):
            operator.on("enable")
            operator.on("jog", frame="joint", axis=1, speed=20)
            await there.until(lambda facts: facts["moving"])
            operator.on("stop_jog")
            await operator.until(lambda facts: facts["state"] == "Idle")
            assert mm(there)[1] > 0.0
            operator.on("send_gcode", line="G1 X500 F3000")
            await there.until(lambda facts: facts["moving"])
            operator.on("emergency_stop")
            await there.until(lambda facts: not facts["moving"])
            assert 0.0 < mm(there)[0] < 500.0
            await operator.until(lambda facts: facts["state"] == "Alarm")
            operator.on("reset")
            await operator.connected()
            operator.on("enable")
            operator.on("send_gcode", line="M999")
            await operator.until(lambda facts: "error:20" in facts["error"])

    run(test)


@pytest.mark.parametrize("cell", ["port: 0"], indirect=True)
def test_a_real_machine_that_is_lost_stays_real(cell: str) -> None:
    async def test() -> None:
        async with pair(cell) as (there, operator):
            operator.on("enable")
            await there.live.stop()
            await operator.until(lambda facts: facts["state"] == "Unknown")
            assert operator.facts["mode"] == "REAL"
            assert "not connected" in operator.refusal("send_gcode", robot=NAME, line="G0 X1")

    run(test)
