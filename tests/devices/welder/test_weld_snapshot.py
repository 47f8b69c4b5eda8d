"""A snapshot at any event of a weld is invisible: all later values are bit-identical."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.welder.weld_bench import WelderBench, WeldingCell

from understudy.ports import state as snapshots
from understudy.simulation.cell import read_snapshot, write_snapshot

RULES: dict[str, Any] = {
    "dud": {"fault": "ignition_failure", "on": "g60.welder", "until_s": 2.0},
    "noise": {"fault": "weld_noise", "on": "g60.welder"},
    "flicker": {"fault": "arc_fault", "on": "g60.welder", "at_s": 3.6, "every_s": 0.35,
                "until_s": 4.2, "parameters": {"duration_s": 0.12}},
    "jam": {"fault": "wire_fault", "on": "g60.welder", "at_s": 9.3},
}  # fmt: skip
LINKS: dict[str, Any] = {
    "links": [
        {"output": "ARC_START", "input": "ARC_OK", "delay_ms": 50},
        {"output": "GAS", "input": "GAS_OK", "delay_ms": 100},
        {"output": "DO5", "input": "DI5", "delay_ms": 333},
        {"output": "DO6", "input": "DI6", "delay_ms": 40, "invert": True},
    ],
    "relays": [{"input": "DI6", "output": "DO6", "delay_ms": 270}],
}
PROGRAM = """G90 G21
G0 X450 Y-20 Z400 A180 B0 C0
M64 P5
M7
M67 E0 Q4.5
M3
G1 Y0 F600
G1 Y10
M62 P7
G1 Y15 X455
M5
M9
M65 P5
M66 P5 L4 Q1
G0 X450 Y20 Z420 A180 B0 C0
G4 P0.1
M7
M3
G1 Y25 F600
M5
M2""".splitlines()


def cell() -> WeldingCell:
    return WeldingCell(rules=RULES, io=LINKS)


def begun() -> WeldingCell:
    """The program runs, a pulse and a ramp are in flight."""
    begun = cell()
    begun.send(*PROGRAM)
    begun.io.simulate_sensor_trigger("PART_DETECTED", True, 0, duration_ms=4321)
    begun.io.simulate_analog_sensor("VACUUM", 8.0, 0, ramp_s=7.5)
    begun.io.set_digital_input("DI20", True, 0)
    return begun


def look(cell: WeldingCell) -> bytes:
    """All values that can be read now."""
    now = cell.now
    joints = cell.g60.joint_state(now)
    seen = (now, cell.io.status(now), cell.welder.status(now), joints, cell.g60.status(now))
    return repr(seen).encode()


def next_event(cell: WeldingCell) -> bool:
    at = cell.timed_cell.next_wake()
    if at is None or at > 12_000_000_000:
        return False
    cell.virtual_cell.advance_to(at)
    return True


def reported(cell: WeldingCell) -> list[str]:
    """A digest of each event from here to the end, and of the seam."""
    events = []
    while next_event(cell):
        events.append(sha256(look(cell)).hexdigest())
    return [*events, repr((cell.welder.issues(), cell.welder.trail()))]


def check(stride: int) -> None:
    """Step through the program; at each stride save it, and continue in a new cell."""
    whole, walking = reported(begun()), begun()
    for number in range(len(whole)):
        if number % stride == 0:
            paper = write_snapshot(walking.virtual_cell.snapshot())
            fresh = cell()
            fresh.virtual_cell.restore(read_snapshot(paper))
            assert write_snapshot(fresh.virtual_cell.snapshot()) == paper
            assert look(fresh) == look(walking)
            assert reported(fresh) == whole[number:], f"event {number}"
        next_event(walking)


def test_the_program_has_many_events_and_a_fault() -> None:
    whole = begun()
    assert len(reported(whole)) > 100
    phases = [phase for _, phase in whole.phases]
    assert "Fault" in phases, "the wire got stuck in the end"
    assert phases.count("Weld") == 2
    assert "cold" in whole.issues, "the flicker left a gap"


def test_a_snapshot_at_every_twentieth_event_is_invisible() -> None:
    check(20)


@pytest.mark.soak
def test_a_snapshot_at_every_event_is_invisible() -> None:
    check(1)


# ── damaged snapshots ───────────────────────────────────────────────────────────────────────────


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [*([path] if path else []), *(at for k, v in items for at in places(v, (*path, k)))]


DAMAGE = st.none() | st.booleans() | st.integers(-5, 50) | st.sampled_from(["", "Weld", {}, []])


@given(st.data())
def test_damaged_state_is_refused_or_leaves_a_source_that_works(data: st.DataObject) -> None:
    bench = WelderBench().start().run(data.draw(st.sampled_from([0, 450, 3000])))
    bench.io.simulate_sensor_trigger(10, True, bench.now)
    bench.io.simulate_analog_sensor(5, 8.0, bench.now, ramp_s=2.0)
    bench.io.link(5, 5, 40, bench.now)
    states = [snapshots.saved(each) for each in (bench.io, bench.welder)]
    whole = msgspec.json.decode(msgspec.json.encode(states))
    place = data.draw(st.sampled_from(places(whole)).filter(lambda place: len(place) > 1))
    spot = whole
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = data.draw(DAMAGE)
    fresh = WelderBench()
    try:
        snapshots.load(fresh.io, whole[0])
        snapshots.load(fresh.welder, whole[1])
    except msgspec.ValidationError:
        fresh = WelderBench()
    fresh.run(bench.now / 1e6 + 10_000)
    fresh.welder.status(fresh.now)
    fresh.io.status(fresh.now)
