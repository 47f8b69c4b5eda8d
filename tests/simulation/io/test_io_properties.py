"""Any actions on pins: time slices and snapshots are invisible, the rules of pins hold."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.agenda import advance
from understudy.ports.state import load, saved
from understudy.simulation.io.virtual_io import Config, Link, Relay, VirtualIO
from understudy.units import NS_PER_MS

COUNT = 4
SIZES: dict[str, Any] = dict.fromkeys(
    ("digital_inputs", "digital_outputs", "analog_inputs", "analog_outputs"), COUNT
)
RING = Config(
    **SIZES,
    links=[Link(0, 0, 3), Link(0, 1, invert=True), Link(1, 2, 7), Link(3, 3, 5)],
    relays=[Relay(1, 1, 2), Relay(2, 2, invert=True), Relay(3, 3, 4, invert=True)],
)
PIN = st.integers(0, COUNT - 1)
TIME = st.integers(0, 12 * NS_PER_MS)
WAIT = st.floats(0, 20)
STEP = st.one_of(
    st.tuples(st.just("set_digital_output"), PIN, st.booleans()),
    st.tuples(st.just("set_digital_input"), PIN, st.booleans()),
    st.tuples(st.just("release_digital_input"), PIN),
    st.tuples(st.just("simulate_sensor_trigger"), PIN, st.booleans(), WAIT),
    st.tuples(st.just("set_analog_output"), PIN, st.floats(-1, 11)),
    st.tuples(st.just("simulate_analog_sensor"), PIN, st.floats(0, 10), st.floats(0, 0.02)),
    st.tuples(st.just("release_analog_input"), PIN),
    st.tuples(st.just("link"), PIN, PIN, WAIT),
    st.tuples(st.just("unlink"), PIN),
)
PROGRAM = st.lists(st.tuples(TIME, STEP), max_size=25)


def do(io: VirtualIO, step: tuple[Any, ...], now: int) -> None:
    name, *given_ = step
    late = {"simulate_sensor_trigger": 2, "simulate_analog_sensor": 2, "link": 3}
    at = late.get(name, len(given_))
    getattr(io, name)(*given_[:at], now, *given_[at:])


def run(io: VirtualIO, program: list[Any], *, now: int = 0, slices: int = 1) -> list[Any]:
    """Runs the steps, each wait cut into slices; returns everything that can be read."""
    seen: list[Any] = []
    for wait, step in program:
        for n in range(1, slices + 1):
            advance([io], now + wait * n // slices)
            io.analog(now + wait * n // slices)
        now += wait
        do(io, step, now)
        seen.append((now, io.status(now)))
    advance([io], now + 50 * NS_PER_MS)
    return [seen, io.history(), io.status(now)]


@given(PROGRAM, st.integers(2, 7))
def test_cutting_time_into_other_slices_changes_nothing(program: list[Any], slices: int) -> None:
    assert run(VirtualIO(RING), program) == run(VirtualIO(RING), program, slices=slices)


@settings(max_examples=200)
@given(PROGRAM, PROGRAM)
def test_a_snapshot_in_flight_is_invisible(before: list[Any], after: list[Any]) -> None:
    """With links, pulses and ramps on their way, through JSON, into fresh pins."""
    old = VirtualIO(RING)
    now = 0
    for wait, step in before:
        now += wait
        advance([old], now)
        do(old, step, now)
    paper = msgspec.json.encode(saved(old))
    fresh = VirtualIO(RING)
    load(fresh, msgspec.json.decode(paper))
    assert msgspec.json.encode(saved(fresh)) == paper
    assert run(fresh, after, now=now) == run(old, after, now=now)


@given(PROGRAM)
def test_an_input_is_its_pulse_or_forced_level_or_owners_level(program: list[Any]) -> None:
    io = VirtualIO(RING)
    now = 0
    for wait, step in program:
        now += wait
        advance([io], now)
        do(io, step, now)
        state = io.state
        for pin in range(COUNT):
            wanted = state.forced.get(pin, io.is_driven(pin))
            assert io.digital_input(pin) is state.pulsed.get(pin, wanted)
            assert (pin in state.pulsed) == any(
                p.pin == pin for p in state.pending if p.what == "pulse_over"
            )
        assert state.pending == sorted(state.pending)


@given(PROGRAM)
def test_every_voltage_is_within_its_range(program: list[Any]) -> None:
    io = VirtualIO(RING)
    seen, _, last = run(io, program)
    for status in (*(status for _, status in seen), last):
        assert all(
            0.0 <= volts <= 10.0 for volts in (*status.analog.inputs, *status.analog.outputs)
        )
