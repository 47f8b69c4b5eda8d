"""Random programs: the running controller and the offline walk agree.

The controller runs on virtual time. Times may differ by a few nanoseconds per rest, since the
running controller starts everything on whole nanoseconds.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import Refused
from understudy.gcode import requests
from understudy.gcode.requests import MEANINGS, MOVES
from understudy.offline.cycle_time import cycle_time_of
from understudy.offline.robot import offline_robot
from understudy.offline.setup import Remark
from understudy.offline.walk import Violation, walk
from understudy.simulation.program.runner import ACTIONS
from understudy.units import NS_PER_SECOND, seconds
from understudy.wire.exchange import InProcessCell

CONFIG = load_config(str(Path(__file__).parent / "both_ways.yaml"))
TOLERANCE_S = 1e-6
LONGEST_NS = 10_000 * NS_PER_SECOND

Pins = list[tuple[float, int, bool]]


class Outcome(NamedTuple):
    """Seconds of a program, its output changes (s, pin, level), and the reason it was refused."""

    ends: float
    pins: Pins
    refused: tuple[str, int] | None


def same(one: Outcome, other: Outcome) -> None:
    assert one.refused == other.refused
    assert one.ends == pytest.approx(other.ends, abs=TOLERANCE_S)
    assert [pin[1:] for pin in one.pins] == [pin[1:] for pin in other.pins]
    times = [pin[0] for pin in one.pins]
    assert times == pytest.approx([pin[0] for pin in other.pins], abs=TOLERANCE_S)


def outputs(io: Any) -> Pins:
    return [(seconds(each.at), each.pin, each.value) for each in io.history() if each.bank == "DO"]


def bare(reason: str, line: int, text: str) -> str:
    """The reason of a refusal without the line, which the two sides write differently."""
    for ending in (f" (line {line}: {text})", f" ({text})"):
        reason = reason.removesuffix(ending)
    return reason.removeprefix(f"line {line}: ")


# ── both ways ──


def walked(lines: list[str], robot: str) -> tuple[Outcome, int, list[Remark]]:
    """The offline outcome, the number of the first refused line (0: none), and the remarks."""
    setup = offline_robot(CONFIG, robot).setup()
    assert setup is not None
    assert setup.devices is not None
    devices: Any = setup.devices()
    events = list(walk("\n".join(lines), replace(setup, devices=lambda: devices)))
    violations = [event for event in events if isinstance(event, Violation)]
    first, refused = 0, None
    if violations:
        first, code = violations[0].line, violations[0].code
        refused = bare(violations[0].message, first, lines[first - 1]), code
    outcome = Outcome(cycle_time_of(events).total_s, outputs(devices._pins.io), refused)
    return outcome, first, [event for event in events if isinstance(event, Remark)]


def run(lines: list[str], robot: str) -> Outcome:
    """The outcome of an arm's program in a running cell."""
    cell = build_cell(CONFIG)
    arm: Any = cell.components[robot]
    arm.connect(0)
    arm.enable(0)
    refused: tuple[str, int] | None = None
    for number, line in enumerate(lines, 1):
        answer = arm.send_gcode(line, 0)
        if isinstance(answer, Refused):
            refused = bare(answer.reason, number, line), answer.code
            break
    now = 0
    while arm.busy() and (at := cell.next_wake()) is not None:
        assert at < LONGEST_NS, "the program does not end"
        cell.advance(at)
        now = at
    status = arm.status(now)
    if status.error:
        number = len(lines)
        refused = bare(status.error_message, number, lines[-1]), status.error_code
    return Outcome(seconds(now), outputs(arm.io), refused)


def run_wired(lines: list[str]) -> tuple[Outcome, tuple[int, int]]:
    """The outcome of a machine's program over its wire; number and error of the refused line."""
    built = build_cell(CONFIG)
    cell, machine = InProcessCell(built), cast(Any, built.components["machine"])
    client = cell.connect("machine.grblhal")
    client.received()
    client.say("".join(line + "\n" for line in lines).encode())
    now = 0
    while machine.busy() and (at := built.next_wake()) is not None:
        assert at < LONGEST_NS, "the program does not end"
        cell.advance_to(at)
        now = at
    answered = client.received().decode().split("\r\n")
    answers = [line for line in answered if line.startswith(("ok", "error:"))]
    assert len(answers) == len(lines)
    errors = ((n, int(a[6:])) for n, a in enumerate(answers, 1) if a != "ok")
    return Outcome(seconds(now), outputs(machine.io), None), next(errors, (0, 0))


# ── programs ──


def program(lines: Iterable[str]) -> st.SearchStrategy[list[str]]:
    """Random lines after a dwell, during which the running controller receives them all.

    An output that waits for a move is also set when the controller has nothing left to do.
    """
    return st.lists(st.sampled_from(list(lines)), max_size=20).map(lambda some: ["G4 P0.1", *some])


COMMON = [
    "G4 P0.2", "M62 P2", "M63 P2", "M64 P2", "M65 P2", "M64 P3", "M65 P3", "M62 P5", "M67 E1 Q3",
    "M68 E0 Q1", "M66 P2 L3 Q0.5", "M66 P2 L4 Q0.3", "M66 P3 L1 Q0.2", "M66 P3 L2 Q0.2",
    "M66 P1 L0", "M3 S100", "M3 S200", "M5", "M8", "M7", "M9", "M48", "M49", "M50 P0", "M51 P0",
    "M53 P0", "M1", "G54", "G55", "G92.1", "(MSG,hello)", "(nothing)", "", "G28.1", "F600",
    "G91", "G90", "M30", "T1",
]  # fmt: skip
ARM_LINES = [
    *COMMON, "G0 A10", "G0 A-20 B-45", "G1 A5 F3000", "G1 C85 W30", "G1 U20 V40", "G28",
    "G0 A0.001",
    "G1 X450 Y0 Z500 A180 B0 C0 F6000", "G1 X450 Y30", "G1 Z480", "G0 X480 Y10 Z500 A180 B0 C0",
    "G2 X470 Y10 R30", "G61", "G64", "G10 L2 P1 X5", "G10 L2 P2 Y5", "G92 X400", "T1 M6", "M6 T0",
    "M61 Q1", "M429", "M428", "G93 G1 A3 F20", "G94 F3000",
    "G1 A400", "G1 X9000", "M62 P99", "G1 Q", "T7 M6", "G43.1 Z5", "M64 P3 G1 A2",
    "G43", "G43 H2", "G43 H1", "G43 H9", "G43 H0", "G49", "T2 M6", "G10 L1 P2 Z135", "G43 G0 A1",
]  # fmt: skip
WELD_LINES = [
    "M8", "M9", "M3", "M5", "G4 P0.3", "G0 A5", "G0 A-5", "G1 A2 F3000", "M64 P4", "M65 P4", "M30",
    "M66 P9 L3 Q0.4", "M62 P4", "G1 X450 Y0 Z500 A180 B0 C0 F6000", "G1 Y20 F600", "M66 P0 L3 Q1",
]  # fmt: skip
MACHINE_LINES = [
    *(line for line in COMMON if line != "M1"), "G0 X-10",
    "G1 X-20 Y-5 F3000", "G1 X-5", "X-30 Z-3", "G2 X-15 Y-5 I-5", "G28", "A20",
    "G1 B-10 F800", "G10 L2 P1 X5", "G10 L2 P3 X5", "G92 X-4", "G43.1 Z1", "G49", "M61 Q3",
    "G1 Q", "M62 P99", "G93 G1 X-3 F20", "G94 F3000", "G61", "X-0.001",
    "G43", "G43 H1", "G43 H3", "G43 H9", "G43 H0", "G10 L1 P1 Z3", "M61 Q1", "G10 L10 P3 Z-1",
    "G5 I0 J3 P0 Q-3 X-5 Y-6", "G5.1 X-6 Y-8 I-2 J-2", "G51 X2 Y0.5", "G51 Z3", "G50", "M70", "M71",
    "M72", "M73", "G65 P100", "G65 P4", "M98 P5", "G66 P3", "G67", "G81 X-4 Z-3 R1", "G80",
    "M4 S100", "M5 M9", "M3 S100 M8", "G4 P0.12",
]  # fmt: skip


def the_walk_of_an_arm_agrees_with_the_running_controller(lines: list[str]) -> None:
    _, first, _ = walked(lines, "arm")
    if first:
        tried = lines[:first]
        expected, _, _ = walked(tried, "arm")
        assert run(tried, "arm").refused == expected.refused
        lines = lines[: first - 1]
    lines = [*lines, "M30"]
    expected, _, _ = walked(lines, "arm")
    same(run(lines, "arm"), expected)


def the_walk_of_a_welding_arm_agrees_with_the_running_controller(lines: list[str]) -> None:
    lines = [*lines, "M30"]
    expected, _, remarks = walked(lines, "welder")
    assume(not any(remark.kind == "process" for remark in remarks))
    # A pulse of no length has no order with the lines that wait for it.
    assume(len({(at, pin) for at, pin, _ in expected.pins}) == len(expected.pins))
    same(run(lines, "welder"), expected)


def the_walk_of_a_machine_agrees_with_the_running_machine(lines: list[str]) -> None:
    """After a refused line the firmware refuses the lines behind it: only the first is compared."""
    lines = ["G21 G90 G94 F3000", *lines]
    expected, first, _ = walked(lines, "machine")
    if first:
        assert run_wired(lines)[1] == (first, expected.refused[1] if expected.refused else 0)
        lines = lines[: first - 1]
        expected, _, _ = walked(lines, "machine")
    outcome, refused = run_wired(lines)
    assert refused == (0, 0)
    same(outcome, expected)


@pytest.mark.parametrize("programs", [60, pytest.param(3_400, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("agree", "lines"),
    [
        (the_walk_of_an_arm_agrees_with_the_running_controller, ARM_LINES),
        (the_walk_of_a_welding_arm_agrees_with_the_running_controller, WELD_LINES),
        (the_walk_of_a_machine_agrees_with_the_running_machine, MACHINE_LINES),
    ],
)
def test_random_programs(
    agree: Callable[[list[str]], None], lines: list[str], programs: int
) -> None:
    settings(max_examples=programs)(given(program(lines))(agree))()


@pytest.mark.parametrize("curve", ["G2 X-15 Y-5 I-5", "G5 I0 J3 P0 Q-3 X-5 Y-6"])
def test_an_output_before_a_curve_is_set_with_its_first_piece(curve: str) -> None:
    lines = ["G21 G90 G94 F3000", "G0 X-10", "M62 P2", curve]
    expected, _, _ = walked(lines, "machine")
    curve_begins = walked(lines[:2], "machine")[0].ends
    assert expected.pins[0][0] == pytest.approx(curve_begins, rel=0.2)
    same(run_wired(lines)[0], expected)


# ── the table ──


def test_every_request_has_a_meaning_and_an_action() -> None:
    known = set(get_args(requests.Request))
    assert set(MEANINGS) == known
    moves = set(MOVES)
    assert moves == set(get_args(requests.Move))
    assert known - moves - {requests.SetOutput, requests.SetAnalog} <= set(ACTIONS)
