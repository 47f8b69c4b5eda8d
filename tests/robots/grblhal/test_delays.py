"""Dwells and the delays of spindle and coolant, in the running machine and offline.

The seconds were measured on the firmware itself: the pauses between two moves in its step output,
with `$394=0.52 $539=1.01 $673=0.5`. It waits in steps of 50 ms.
"""

import pytest
from tests.robots.grblhal.face.sessions import Wire
from tests.robots.grblhal.judge.partners import our_machine

from understudy.offline.cycle_time import CycleTimeEstimator
from understudy.robots.grblhal.offline import machine_of

SETTINGS = ("$394=0.52", "$539=1.01", "$673=0.5", "$110=6000", "$120=500")
MEASURED = (
    ("G4 P0", 0.0),
    ("G4 P0.001", 0.05),
    ("G4 P0.12", 0.15),
    ("G4 P0.2", 0.2),
    ("G4 P0.35", 0.35),
    ("M3 S1000", 0.55),
    ("M3 S2000", 0.0),
    ("M3", 0.0),
    ("M4", 0.55),
    ("M5", 1.05),
    ("M5", 0.0),
    ("M8", 0.5),
    ("M8", 0.0),
    ("M7", 0.5),
    ("M9", 0.0),
    ("M9", 0.0),
    ("M3 M8", 1.05),
    ("M5 M9", 1.05),
)


def prepared(wire: Wire) -> Wire:
    wire.listen(0.1)
    for setting in SETTINGS:
        assert wire.command(setting) == ["ok"]
    return wire


def seconds(wire: Wire, line: str) -> float:
    begun = wire.now
    assert wire.command(line) == ["ok"]
    return wire.now - begun


def test_a_line_is_answered_after_the_delay_of_the_firmware() -> None:
    with our_machine() as wire:
        prepared(wire)
        for line, expected in MEASURED:
            assert seconds(wire, line) == pytest.approx(expected, abs=1e-6), line


def test_laser_mode_waits_as_well() -> None:
    with our_machine() as wire:
        prepared(wire)
        wire.command("$32=1")
        assert seconds(wire, "M3 S100") == pytest.approx(0.55)
        assert seconds(wire, "M5") == pytest.approx(1.05)


def test_cycle_time_is_the_time_of_the_running_machine() -> None:
    program = [
        "G21 G90 G94",
        *(f"{line}\nG1 X{n % 2} F600" for n, (line, _) in enumerate(MEASURED)),
    ]
    estimate = CycleTimeEstimator(machine_of("\n".join(SETTINGS))).estimate("\n".join(program))
    with our_machine() as wire:
        prepared(wire)
        begun = wire.now
        wire.write(("\n".join(program) + "\nG4 P0\n").encode())
        wire.answers(2 * len(MEASURED) + 2, 60.0)
        assert wire.now - begun == pytest.approx(estimate.total_s, rel=1e-3)


def test_a_hold_stops_the_clock_of_a_delay() -> None:
    with our_machine() as wire:
        prepared(wire)
        wire.write(b"M5\nM3 S100\n")
        wire.run(0.2)
        wire.write(b"!")
        wire.run(5.0)
        assert wire.listen(0.0) == ["ok"]
        begun = wire.now
        wire.write(b"~")
        assert wire.answers(1)[-1] == "ok"
        assert wire.now - begun == pytest.approx(0.35, abs=0.01)


def test_a_dwell_takes_no_block_of_the_planner_also_in_a_hold() -> None:
    with our_machine() as wire:
        wire.listen(0.1)
        wire.write(b"G4 P2\n?")
        assert "|Bf:100," in wire.report()[-1]
        wire.run(0.2)
        wire.write(b"!")
        wire.run(0.2)
        wire.write(b"?")
        report = wire.report()[-1]
        assert report.startswith("<Hold:0|")
        assert "|Bf:100," in report
