"""Rules that are triggered by commands on every face, and by contacts."""

import pytest
from tests.parts import part

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.errors import ConfigError
from understudy.gcode.blocks import commands_in
from understudy.robots.kuka.frames import COMMAND
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.scenario import Scenario
from understudy.units import seconds
from understudy.wire.exchange import InProcessCell

CELL = """
robots:
  arm: {kind: arm, faces: {grblhal: {}}}
  kuka: {kind: kuka, faces: {kuka_eki: {}}}
environment:
  objects:
    - {name: post, type: cylinder, position_mm: [0, 620, 995], radius_mm: 20, height_mm: 400}
scenario:
  rules:
    panic: {fault: emergency_stop, on: %s, when: {of: %s, %s}}
"""


def cell(on: str, of: str, when: str) -> InProcessCell:
    return InProcessCell(build_cell(read_config(CELL % (on, of, when), "rules.yaml")))


def strikes(cell: InProcessCell) -> int:
    return part(cell, "scenario", Scenario).status(0)["panic"].strikes


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("G1 X10 F100", ["G1"]),
        ("N10 g01x1.5 m03 s100", ["G1", "M3"]),
        ("M6T2 (M30)", ["M6", "T2"]),
        ("G38.20 Z-1 ; M5", ["G38.2"]),
        ("G00", ["G0"]),
        ("$H", ["$H"]),
        ("$J=G91 X10", ["$J"]),
        ("", []),
        ("X10", []),
    ],
)
def test_commands_of_a_line(line: str, names: list[str]) -> None:
    assert [name.removesuffix("0") if "." in name else name for name in commands_in(line)] == names


@pytest.mark.parametrize(
    ("command", "line", "strikes_"),
    [("M3", b"M3 S100\n", 1), ("g1", b"X10 G01 F600\n", 1), ("$J", b"$J=X10 F600\n", 1),
     ("M5", b"M3 S100\n", 0)],
)  # fmt: skip
def test_lines_over_a_grblhal_wire_trigger_rules(command: str, line: bytes, strikes_: int) -> None:
    here = cell("arm", "arm.grblhal", f'command: "{command}"')
    here.connect("arm.grblhal").say(line)
    here.advance(0.1)
    assert strikes(here) == strikes_


@pytest.mark.parametrize(
    ("command", "kind", "strikes_"),
    [("HOME", 28, 1), ("home", 30, 1), ("MOVE", 0, 1), ("TOOL", 2, 1), ("TOOL 2", 2, 1),
     ("TOOL 1", 2, 0), ("BASE 1", 54, 1), ("MOVE", 99, 0)],
)  # fmt: skip
def test_records_for_a_kuka_trigger_rules(command: str, kind: int, strikes_: int) -> None:
    here = cell("kuka", "kuka.kuka_eki.command", f"command: {command}")
    fields = COMMAND.unpack(bytes(COMMAND.size))
    frame = COMMAND.pack(*(kind if place == 1 else value for place, value in enumerate(fields)))
    here.connect("kuka.kuka_eki.command").say(frame)
    here.advance(0.1)
    assert strikes(here) == strikes_


@pytest.mark.parametrize(("what", "strikes_"), [("any", 2), ("post", 2), ("flange", 1), ("x", 0)])
def test_a_contact_triggers_a_rule(what: str, strikes_: int) -> None:
    here = cell("kuka", "arm", f"collision: {what}, after_s: 0.5")
    here.connect("arm.grblhal").say(b"G1 X90 F3000\n")
    here.advance(4.0)
    assert strikes(here) == strikes_
    assert part(here, "kuka", KukaGcodeServer).stopped() == (strikes_ > 0)
    assert seconds(here.timed_cell.now) == 4.0


def test_a_line_over_the_wire_is_reported_by_its_count() -> None:
    here = cell("kuka", "arm", "collision: any")
    found: list[int] = []
    watch = part(here, "arm.collision", CollisionWatch)
    watch.on_collision(lambda contact: found.append(contact.line))
    here.connect("arm.grblhal").say(b"G1 X10 F3000\nG1 X90\n")
    here.advance(4.0)
    assert found == [2, 2]


def test_a_contact_trigger_needs_a_watched_robot() -> None:
    with pytest.raises(ConfigError, match=r"when.of: is not watched for contacts \(got 'arm.grbl"):
        cell("arm", "arm.grblhal", "collision: any")
    with pytest.raises(ConfigError, match="one of command, pin, near_mm, collision"):
        cell("arm", "arm", "collision: any, near_mm: [0, 0, 0]")
