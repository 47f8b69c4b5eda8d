"""Several robots in one proof, compared with the running cell."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.parts import components_of

from understudy.app.build import build_cell
from understudy.app.validate_several import (
    RobotProgram,
    own_programs,
    timing_of,
    validate_together,
)
from understudy.app.virtual_run import start_program
from understudy.config import CellConfig, load_config
from understudy.config.files import ProgramFile
from understudy.errors import ConfigError
from understudy.gcode.requests import WaitInput
from understudy.offline.shared_pins import InputWait, PinEdge, SharedPins, handshakes
from understudy.simulation.io.robot_links import RobotWire
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell


@cache
def two_arms() -> CellConfig:
    return load_config("two_arms")


def programs(**changes: tuple[str, str]) -> list[RobotProgram]:
    """The programs of the cell; of some robots with a text replaced."""
    found = []
    for each in own_programs(two_arms()):
        text = str(each.text)
        if each.robot in changes:
            old, new = changes[each.robot]
            assert old in text
            text = text.replace(old, new)
        found.append(each._replace(text=text))
    return found


NO_WAIT = {"right": ("M66 P20 L3 Q60  ", "(does not wait)  ")}
"""The planted collision: the right arm enters the middle without a signal."""


def run_in_cell(given: list[RobotProgram]) -> tuple[list[Any], dict[str, float]]:
    """The contacts of the running cell, and how long each program took."""
    cell = build_cell(two_arms())
    running, took = InProcessCell(cell), dict[str, float]()
    parts: Any = components_of(running)
    controls = {each.robot: parts[f"{each.robot}.program"] for each in given}
    for each in given:
        file = ProgramFile(each.name, str(each.text))
        assert start_program(two_arms(), cell, each.robot, file) is None
    while len(took) < len(controls) and running.now < 120.0:
        running.advance(0.01)
        for name, control in controls.items():
            if name not in took and not control.under_way():
                took[name] = running.now
    watches = [parts[f"{name}.collision"] for name in controls]
    return [contact for watch in watches for contact in watch.uncleared()], took


def test_the_shipped_cell_is_proven_and_runs_as_planned() -> None:
    reports = validate_together(programs(), two_arms())
    assert [each.robot for each in reports] == ["left", "right"]
    for report in reports:
        assert report.passed, report.violations
        (other,) = report.robots
        assert other.clearance is not None
        assert 0.9 * other.seen <= other.clearance <= other.seen
        assert "only" not in " ".join(report.notes)
    contacts, took = run_in_cell(programs())
    assert contacts == []
    for report in reports:
        assert took[report.robot] == pytest.approx(report.total_s, abs=0.05)


def test_a_missing_handshake_is_found_as_in_the_running_cell() -> None:
    """Both see the first contact of the same parts, on the same lines, at the same time."""
    given = programs(**NO_WAIT)
    left, right = validate_together(given, two_arms())
    contacts, _ = run_in_cell(given)
    first = min(contacts, key=lambda each: each.at)
    found = min(left.violations, key=lambda each: each.time_s)
    assert found.contact is not None
    assert found.meeting is not None
    assert found.contact.objects == first.names
    assert found.line == first.line
    # The running cell compares at most every 2 ms.
    assert found.time_s == pytest.approx(first.at / NS_PER_SECOND, abs=0.005)
    mirrored = min(right.violations, key=lambda each: each.time_s)
    assert mirrored.meeting is not None
    assert (mirrored.line, mirrored.meeting.line) == (found.meeting.line, found.line)
    assert (mirrored.meeting.robot, found.meeting.robot) == ("left", "right")


@pytest.mark.parametrize("timing_s", [0.5, math.inf])
def test_handshakes_allow_any_delay(timing_s: float) -> None:
    for report in validate_together(programs(), two_arms(), timing_s=timing_s):
        assert report.passed
        assert report.robots[0].handshakes == 2
        assert (report.robots[0].clearance or 0.0) > 0.1


def test_a_finding_names_both_lines_and_the_shift() -> None:
    """Without its handshake the left arm must be late to touch the right one on its way back."""
    wait = ("M66 P20 L3 Q60  ", "G4 P14  (a pause in place of the signal)  ")
    given = programs(left=wait)
    planned = validate_together(given, two_arms())
    assert all(each.passed for each in planned)
    left, right = validate_together(given, two_arms(), timing_s=10.0)
    (found,) = [each for each in left.violations if each.line == 17]
    assert found.meeting is not None
    assert found.meeting.shift_s > 0.0
    assert "if right is" in found.message
    assert f"on line {found.meeting.line} of right_arm" in found.message
    mirrored = [e for e in right.violations if e.meeting and e.meeting.line == found.line]
    assert mirrored[0].meeting is not None
    assert mirrored[0].meeting.shift_s == pytest.approx(-found.meeting.shift_s)
    shorter = validate_together(given, two_arms(), timing_s=found.meeting.shift_s - 0.01)
    assert not any(each.line == 17 for each in shorter[0].violations)


def test_a_robot_without_a_program_stands() -> None:
    (report,) = validate_together([programs()[0]], two_arms())
    assert report.robots[0].robot == "right"
    assert report.robots[0].program == ""
    # The left arm waits in vain for the right one.
    assert [each.kind for each in report.violations] == ["io"]


def test_all_report_files_have_the_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.test_cli_validate import run

    right = tmp_path / "right.gcode"
    right.write_text(str(programs(**NO_WAIT)[1].text))
    left = tmp_path / "left.gcode"
    left.write_text(str(programs()[0].text))
    kinds = ("json", "junit", "sarif", "html")
    files = {kind: tmp_path / f"report.{kind}" for kind in kinds}
    options = [each for kind, file in files.items() for each in (f"--{kind}", file)]
    words = (f"left={left}", f"right={right}", "--cell", "two_arms", "--timing", "0.5")
    assert run(monkeypatch, "validate", *words, *options) == 1
    shown = capsys.readouterr().out
    assert "touches right." in shown
    assert "in any timing within ±0.5 s" in shown
    documents = json.loads(files["json"].read_text())
    found = documents[0]["violations"][0]
    assert found["meeting"]["robot"] == "right"
    assert found["meeting"]["program"] == str(right)
    assert documents[0]["robots"][0]["timing_s"] == 0.5
    message = found["message"]
    suites = ElementTree.parse(files["junit"]).getroot()
    assert int(suites[0].get("failures") or 0) == 1
    results = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert message in [each["message"]["text"] for each in results]
    assert message in json.loads(json.dumps(files["html"].read_text()))


@pytest.mark.parametrize(
    ("given", "seconds"), [("", None), ("0.5", 0.5), ("±2", 2.0), ("1.5s", 1.5), ("any", math.inf)]
)
def test_timings(given: str, seconds: float | None) -> None:
    assert timing_of(given) == seconds


@pytest.mark.parametrize("given", ["soon", "-1", "nan", "4000"])
def test_a_wrong_timing_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="no timing"):
        timing_of(given)


# ── handshakes ────────────────────────────────────────────────────────────────────────────────────


def wait(mode: Any, ended: int, *, timed_out: bool = False) -> InputWait:
    return InputWait(ended, WaitInput("digital", 1, mode, 5.0), 0, ended * NS, timed_out)


NS = NS_PER_SECOND
WIRE = RobotWire("one", 3, "two", 1, 0)


@pytest.mark.parametrize(
    ("waits", "signals"),
    [
        # Up at 2 s, down at 4 s, up at 6 s.
        ([wait("high", 2)], [2.0]),
        ([wait("rise", 2), wait("fall", 4), wait("rise", 6)], [2.0, 4.0, 6.0]),
        ([wait("high", 2), wait("low", 4), wait("high", 6)], [2.0, 4.0, 6.0]),
        # A level that was there before may be seen again by a robot that is early.
        ([wait("high", 2), wait("high", 6)], [2.0, 2.0]),
        ([wait("low", 1)], []),
        ([wait("read", 1), wait("rise", 2)], [2.0]),
        ([wait("high", 5, timed_out=True), wait("high", 6)], []),
    ],
)
def test_the_earliest_signal_that_can_end_a_wait(
    waits: list[InputWait], signals: list[float]
) -> None:
    edges = [PinEdge(2 * NS, 3, True), PinEdge(4 * NS, 3, False), PinEdge(6 * NS, 3, True)]
    shared = {
        "one": SharedPins(frozenset(), outputs=edges),
        "two": SharedPins(frozenset({1}), waits=waits),
    }
    found = handshakes([WIRE], shared)
    assert [each.signal for each in found] == signals
    assert all(each.waits == "two" and each.signals == "one" for each in found)
