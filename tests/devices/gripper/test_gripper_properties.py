"""Laws that hold for every sequence of commands, faults and pauses."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.gripper.gripper_bench import Bench, box

from understudy.devices.gripper import FAULTS, PHASES, TRANSITIONS, Phase
from understudy.errors import Refused
from understudy.ports.io import PinChange
from understudy.ports.state import load
from understudy.units import NS_PER_MS

CLOSE, OPEN, VACUUM_ON, BLOW_OFF = 8, 9, 10, 11
PAIRS = ((CLOSE, OPEN), (VACUUM_ON, BLOW_OFF))
COMMANDS: dict[str, Callable[[Bench], Any]] = {
    "grip": lambda b: b.gripper.start_grip(b.now),
    "short grip": lambda b: b.gripper.start_grip(b.now, timeout_ms=30),
    "release": lambda b: b.gripper.start_release(b.now),
    "halt": lambda b: b.gripper.halt(b.now),
    "vacuum on": lambda b: b.gripper.enable_vacuum(b.now),
    "vacuum off": lambda b: b.gripper.disable_vacuum(b.now),
    "blow off": lambda b: b.gripper.blow_off(b.now),
    "emergency release": lambda b: b.gripper.emergency_release(b.now),
    "reset": lambda b: b.gripper.reset(b.now),
    **{
        fault: lambda b, fault=fault: b.inject(fault)  # type: ignore[misc]
        for fault, declared in FAULTS.items()
        if declared.how == "brought"
    },
}
Step = tuple[str, float]
STEPS = st.lists(st.tuples(st.sampled_from(sorted(COMMANDS)), st.floats(0.0, 400.0)), max_size=12)
TYPES = st.sampled_from(["PNEUMATIC_2FINGER", "PNEUMATIC_VACUUM"])


def bench_of(kind: str) -> Bench:
    at = (400, 0, 100, 0, 0, 0) if kind == "PNEUMATIC_2FINGER" else (400, 0, 80, 0, 0, 0)
    return Bench(box(at=at), type=kind)


def do(bench: Bench, steps: list[Step], slices: int = 1) -> None:
    for command, pause in steps:
        COMMANDS[command](bench)
        end = bench.now + round(pause * NS_PER_MS)
        for part in range(1, slices + 1):
            bench.run((bench.now + (end - bench.now) * part // slices) / NS_PER_MS)
        bench.run(end / NS_PER_MS)


@given(TYPES, STEPS)
def test_no_sequence_energises_both_valves(kind: str, steps: list[Step]) -> None:
    bench = bench_of(kind)
    on: set[int] = set()

    def note(change: PinChange) -> None:
        if change.bank == "DO":
            (on.add if change.value else on.discard)(change.pin)
            for first, second in PAIRS:
                assert not (first in on and second in on), "off before on"

    bench.io.on_change(note)
    do(bench, steps)


@given(TYPES, STEPS)
def test_when_all_is_done_no_coil_is_on_but_the_ejector(kind: str, steps: list[Step]) -> None:
    bench = bench_of(kind)
    do(bench, steps)
    bench.on(5000)
    assert not bench.gripper.busy()
    assert bench.gripper.is_action_complete()
    assert bench.io.digital().outputs & ~(1 << VACUUM_ON) == 0


@given(TYPES, STEPS)
def test_every_ticket_ends_once(kind: str, steps: list[Step]) -> None:
    bench = bench_of(kind)
    given_out, ended = list[int](), list[int]()
    bench.gripper.on_finished(lambda ticket, refused, now: ended.append(ticket))
    for command, pause in steps:
        ticket = COMMANDS[command](bench)
        if "grip" in command or command == "release":
            given_out += [] if isinstance(ticket, Refused) else [ticket]
        bench.on(pause)
    bench.on(2000)
    assert len(ended) == len(set(ended))
    assert set(given_out) <= set(ended)


@given(TYPES, STEPS, st.integers(2, 5))
def test_slices_of_time_change_nothing(kind: str, steps: list[Step], slices: int) -> None:
    whole, cut = bench_of(kind), bench_of(kind)
    do(whole, steps)
    do(cut, steps, slices)
    assert whole.io.history() == cut.io.history()
    assert (whole.ended, whole.lost, whole.parts.log) == (cut.ended, cut.lost, cut.parts.log)


@given(TYPES, STEPS, st.data())
def test_a_snapshot_between_any_two_commands_is_invisible(
    kind: str, steps: list[Step], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(steps)))
    whole, fresh = bench_of(kind), bench_of(kind)
    do(whole, steps[:cut])
    saved = msgspec.json.encode((whole.io.state, whole.gripper.save(), whole.parts.all))
    io, gripper, parts = msgspec.json.decode(saved)
    load(fresh.io, io)
    fresh.gripper.load(gripper)
    fresh.parts.all = msgspec.convert(parts, dict[str, type(box())])  # type: ignore[misc]
    fresh.now = whole.now
    do(whole, steps[cut:])
    do(fresh, steps[cut:])
    assert whole.io.history() == fresh.io.history()
    again = msgspec.json.encode((fresh.io.state, fresh.gripper.save(), fresh.parts.all))
    assert again == msgspec.json.encode((whole.io.state, whole.gripper.save(), whole.parts.all))


@given(TYPES, STEPS)
def test_a_part_is_let_go_by_a_command_or_a_fault_only(kind: str, steps: list[Step]) -> None:
    """Halt and reset never let a part fall."""
    bench = bench_of(kind)
    do(bench, [("grip", 600), *((c, p) for c, p in steps if c in ("halt", "reset", "grip"))])
    assert bench.parts.held_by("g60") == "cube"
    assert bench.lost == []


# ── damaged snapshots ───────────────────────────────────────────────────────────────────────────


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [*([path] if path else []), *(at for k, v in items for at in places(v, (*path, k)))]


DAMAGE = st.none() | st.booleans() | st.integers(-5, 10**10) | st.sampled_from(
    ["", "Closing", "cube", "other", "open", {}, [], -1.5, 1e300]
)  # fmt: skip


@given(TYPES, st.data())
def test_a_damaged_state_is_refused_or_leaves_a_gripper_that_works(
    kind: str, data: st.DataObject
) -> None:
    bench, fresh = bench_of(kind), bench_of(kind)
    bench.gripper.start_grip(0)
    bench.run(data.draw(st.sampled_from([5, 100, 800])))
    damaged = msgspec.json.decode(msgspec.json.encode(bench.gripper.save()))
    place = data.draw(st.sampled_from(places(damaged)))
    spot = damaged
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = data.draw(DAMAGE)
    fresh.run(bench.now / NS_PER_MS)
    try:
        fresh.gripper.load(damaged)
    except msgspec.ValidationError:
        return
    fresh.on(3000)
    assert not isinstance(fresh.gripper.start_release(fresh.now), Refused)
    fresh.on(3000).gripper.status(fresh.now)


# ── phases ──────────────────────────────────────────────────────────────────────────────────────


def test_the_table_knows_phases_only() -> None:
    assert {phase for phase, _ in TRANSITIONS} == set(PHASES)
    assert set(TRANSITIONS.values()) <= set(PHASES)


@pytest.mark.parametrize("phase", PHASES)
def test_grip_and_release_lead_out_of_every_phase(phase: Phase) -> None:
    assert TRANSITIONS[phase, "grip"] == "Closing"
    assert TRANSITIONS[phase, "release"] == "Opening"
