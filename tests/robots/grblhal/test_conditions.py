"""The firmware follows its table of conditions: every event in every condition."""

from collections.abc import Callable

import pytest
from tests.robots.grblhal.face.bench import Bench

from understudy.robots.grblhal.firmware.conditions import (
    HELD_JOG,
    SAMPLED,
    TRANSITIONS,
    Condition,
    Event,
    reported,
)
from understudy.robots.grblhal.numbers import AlarmCode

RECIPES: dict[Condition, list[bytes | float | str]] = {
    "Idle": [],
    "Run": [b"G1 X50 F3000\n", 0.3],
    "Jog": [b"$J=G91 X50 F3000\n", 0.3],
    "Jog:Held": [b"$J=G91 X50 F3000\n", 0.3, b"\x84", 1.0],
    "Jog:Stuck": [b"$J=G91 X50 F3000\n", 0.3, b"\x84", 1.0, b"\x84"],
    "Home": [b"$10=4607\n$H\n", 0.3],
    "Hold:0": [b"G1 X50 F3000\n", 0.3, b"!", 2.0],
    "Hold:1": [b"G1 X50 F3000\n", 0.3, b"!"],
    "Tool": [b"T1 M6\n"],
    "Door:0": [b"\x84", 0.5],
    "Door:2": [b"G1 X50 F3000\n", 0.3, b"\x84"],
    "Door:4": [b"M3 S500\nG1 X50 F3000\n", 5.0, b"\x84", 2.0, b"~", 0.1],
    "Check": [b"$C\n"],
    "Alarm": [b"G1 X50 F3000\n", 0.3, b"\x18"],
    "Critical": [b"G1 X900 F3000\n"],
    "EStop": ["emergency_stop"],
    "Inhibited": [b"G1 X50 F3000\n", 0.3, "inhibit", 1.0],
    "Sleep": [b"$SLP\n"],
    "Sleep:Alarm": [b"G1 X50 F3000\n", 0.3, b"\x18$SLP\n"],
    "Sleep:EStop": [b"$SLP\n", "emergency_stop"],
}
MOVING = ("Run", "Jog", "Jog:Held", "Jog:Stuck", "Home", "Hold:1", "Door:2")


def bench_in(condition: Condition) -> Bench:
    """A machine that the recipe has brought into this condition."""
    bench = Bench().fast()
    homed = b"$22=33\n$44=0\n$45=0\n$H\n$20=1\n"
    bench.say(b"$62=1\n" + (homed if condition == "Critical" else b"$22=1\n"))
    for step in RECIPES[condition]:
        if isinstance(step, bytes):
            bench.say(step)
        elif step == "inhibit":
            bench.robot.inhibit_motion(bench.virtual_cell.timed_cell.now)
        elif isinstance(step, str):
            bench.inject(step)
        else:
            bench.wait(step)
    assert condition_of(bench) == condition
    return bench


def condition_of(bench: Bench) -> Condition:
    core = bench.robot.firmware._core
    found: Condition = core.condition(bench.virtual_cell.timed_cell.now)
    return found


def cause(bench: Bench, event: Event) -> None:
    firmware, now = bench.robot.firmware, bench.virtual_cell.timed_cell.now
    causes: dict[Event, Callable[[], object]] = {
        "jog": lambda: firmware.lines.jog("G91 X5 F3000", now),
        "home": lambda: firmware.lines.home("", now),
        "hold": lambda: firmware.realtime.hold(now),
        "start": lambda: firmware.realtime.start(now),
        "door": lambda: firmware.realtime.door(now),
        "check": lambda: firmware.switches.check(now),
        "sleep": lambda: firmware.switches.sleep(now),
        "unlock": lambda: firmware.switches.unlock(now),
        "stop": lambda: firmware.realtime.stop(now),
        "reset": lambda: firmware.realtime.reset(now),
        "emergency stop": lambda: firmware.emergency_stop(AlarmCode.ESTOP, now),
        "inhibit": lambda: firmware.inhibit(now),
        "permit": lambda: firmware.permit(now),
    }
    causes[event]()


COMMANDS: tuple[Event, ...] = (
    "jog",
    "home",
    "hold",
    "start",
    "door",
    "check",
    "sleep",
    "unlock",
    "stop",
    "reset",
    "emergency stop",
    "inhibit",
    "permit",
)


@pytest.mark.parametrize("event", COMMANDS)
@pytest.mark.parametrize("before", RECIPES)
def test_a_command_has_the_effect_of_its_row(before: Condition, event: Event) -> None:
    bench = bench_in(before)
    cause(bench, event)
    if event == "reset" and before in MOVING:
        event = "reset in motion"
    expected = TRANSITIONS.get((before, event), before)
    if event == "inhibit":
        bench.wait(2.0)
        assert condition_of(bench) == expected
        return
    if event == "stop" and expected != before:
        bench.wait(2.0)
        assert condition_of(bench) == ("Home" if before == "Home" else expected)
        return
    after = condition_of(bench)
    if expected == "Door:2":
        assert after in ("Door:2", "Door:0")
    elif expected == "Run" and before != "Run":
        assert after in ("Run", "Idle")
    elif expected == "Door:4" and before == "Door:0":
        assert after in ("Door:4", "Idle")  # nothing has to be started again
    else:
        assert after == expected


@pytest.mark.parametrize("before", ["EStop", "Sleep:EStop"])
def test_a_reset_acts_once_the_emergency_stop_is_released(before: Condition) -> None:
    bench = bench_in(before)
    bench.inject("emergency_release")
    assert condition_of(bench) == "Alarm"
    assert TRANSITIONS[TRANSITIONS[before, "release"], "reset"] == "Alarm"


def test_every_condition_has_a_way_back_to_idle() -> None:
    for condition in RECIPES:
        seen, found = {condition}, [condition]
        while found:
            here = found.pop()
            after = {to for (before, _), to in TRANSITIONS.items() if before == here} - seen
            seen |= after
            found += after
        assert "Idle" in seen, condition


@pytest.mark.parametrize("condition", RECIPES)
def test_the_report_shows_the_condition(condition: Condition) -> None:
    assert bench_in(condition).state() == reported(condition)
    shown = reported(condition)[:5]
    assert condition in (*SAMPLED, *HELD_JOG) or shown in ("Door:", "Check", "Alarm", "Sleep")
