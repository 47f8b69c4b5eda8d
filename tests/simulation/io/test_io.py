"""The pins: numbers and names, levels, forces, pulses, ramps, ranges, and listeners."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from understudy.agenda import advance
from understudy.errors import ConfigError, Refused
from understudy.ports.io import PinChange
from understudy.simulation.io.virtual_io import HISTORY_LENGTH, Config, Link, PinNames, VirtualIO
from understudy.units import NS_PER_MS, NS_PER_SECOND

MS = NS_PER_MS


def pins(**settings: Any) -> VirtualIO:
    return VirtualIO(Config(**settings))


def levels(names: PinNames, word: int) -> dict[str, bool]:
    """The levels of a bank by pin name."""
    return {names.name(pin): bool(word >> pin & 1) for pin in range(names.count)}


def reason(answer: object) -> str:
    assert isinstance(answer, Refused), "nothing was refused"
    return answer.reason


# ── counts and names ────────────────────────────────────────────────────────────────────────────


def test_by_default_32_digital_and_8_analog_pins_are_off() -> None:
    io = pins()
    assert (io.di.count, io.do.count, io.ai.count, io.ao.count) == (32, 32, 8, 8)
    assert io.digital().inputs == io.digital().outputs == 0
    assert io.analog(0).inputs == io.analog(0).outputs == (0.0,) * 8
    assert io.set_digital_output(31, True, 0) is None
    assert io.digital().outputs == 1 << 31
    assert reason(io.set_digital_output(32, True, 0)) == "there is no DO32; allowed: 0…31"


@pytest.mark.parametrize("count", [0, 1, 5, 32])
def test_other_counts(count: int) -> None:
    io = pins(digital_inputs=count, digital_outputs=count, analog_inputs=min(count, 8))
    for pin in range(count):
        assert io.set_digital_input(pin, True, 0) is None
        assert io.set_digital_output(pin, True, 0) is None
    assert io.digital().inputs == io.digital().outputs == (1 << count) - 1
    assert len(io.analog(0).inputs) == min(count, 8)
    for pin in (-1, count):
        allowed = f"0…{count - 1}" if count else "none"
        assert (
            reason(io.set_digital_input(pin, True, 0)) == f"there is no DI{pin}; allowed: {allowed}"
        )


@pytest.mark.parametrize("pin", [0, "ARC_START", "arc_start", "DO0", "do0"])
def test_number_name_and_both_mean_the_same_output(pin: int | str) -> None:
    io = pins()
    assert io.set_digital_output(pin, True, 0) is None
    assert io.digital().outputs == 1
    assert io.digital_output(pin)
    assert io.digital_output("ARC_START")


def test_names_work_everywhere() -> None:
    io = pins()
    assert io.set_digital_input("PART_DETECTED", True, 0) is None
    assert io.digital_input("DI10")
    assert io.is_forced("PART_DETECTED")
    assert io.release_digital_input("PART_DETECTED", 0) is None
    assert io.set_analog_input("VACUUM_PRESSURE", 3.0, 0) is None
    assert io.analog_input("AI5", 0) == 3.0
    assert io.release_analog_input("VACUUM_PRESSURE", 0) is None
    assert io.set_analog_output("WIRE_FEED_SET", 4.0, 0) is None
    assert io.analog_output("AO0") == 4.0
    assert io.simulate_sensor_trigger("PART_DETECTED", True, 0) is None
    assert io.link("VACUUM_ON", "VACUUM_OK", 5.0, 0) is None
    assert io.unlink("VACUUM_ON", 0) is None
    assert levels(io.di, io.digital().inputs)["PART_DETECTED"]
    assert levels(io.do, 0)["DO5"] is False


@pytest.mark.parametrize(
    ("pin", "meant"), [("ARC_STRAT", "ARC_START"), ("gripper_clos", "GRIPPER_CLOSE")]
)
def test_an_unknown_name_is_refused_with_the_nearest(pin: str, meant: str) -> None:
    reported = reason(pins().set_digital_output(pin, True, 0))
    assert reported.startswith("unknown pin of DO")
    assert reported.endswith(f"did you mean '{meant}'?")


def test_reading_an_unknown_pin_raises() -> None:
    io = pins(digital_inputs=2)
    for ask in (
        lambda: io.digital_input(2),
        lambda: io.digital_output("NOWHERE"),
        lambda: io.analog_input(8, 0),
        lambda: io.analog_output(-1),
    ):
        with pytest.raises(LookupError, match=r"there is no|unknown pin"):
            ask()


def test_the_names_are_those_of_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs/devices/io.md").read_text()
    rows = re.findall(r"\b([AD][IO])(\d+)(?:…(\d+))? ([A-Z_]+?)(?:_0…3)? [|(]", text)
    assert len(rows) == 27
    io = VirtualIO(Config())
    banks = {names.prefix: names for names in (io.di, io.do, io.ai, io.ao)}
    for bank, first, last, name in rows:
        for number in range(int(first), int(last or first) + 1):
            own = f"{name}_{number - int(first)}" if last else name
            assert banks[bank].name(number) == own


def test_names_of_the_cell_file() -> None:
    io = pins(digital_output_names={3: "Fixture_Clamp"})
    assert io.set_digital_output("FIXTURE_CLAMP", True, 0) is None
    assert io.digital_output(3)
    assert isinstance(io.set_digital_output("ARC_START", True, 0), Refused)


@pytest.mark.parametrize("names", [{1: "A", 2: "a"}, {1: "DI2"}, {-1: "A"}])
def test_pin_names_are_unique(names: dict[int, str]) -> None:
    with pytest.raises(ConfigError, match="digital_input_names: each pin needs a unique name"):
        pins(digital_input_names=names)


# ── injection ───────────────────────────────────────────────────────────────────────────────────


def test_a_forced_input_stays_until_it_is_released() -> None:
    io = pins()
    assert not io.is_forced(3)
    io.set_digital_input(3, True, 0)
    assert io.is_forced(3)
    assert io.status(0).forced == (3,)
    io.drive(3, False, 1)
    assert io.digital_input(3)
    io.release_digital_input(3, 2)
    assert not io.digital_input(3)
    assert not io.is_forced(3)


def test_a_forced_input_overrides_link_and_device_until_released() -> None:
    io = pins(links=[Link(5, 6)])
    io.set_digital_input(6, False, 0)
    io.set_digital_output(5, True, 1)
    assert not io.digital_input(6)
    assert io.is_driven(6)
    io.release_digital_input(6, 2)
    assert io.digital_input(6), "the link has moved on meanwhile"


def test_releasing_an_input_that_is_not_forced_changes_nothing() -> None:
    io = pins()
    io.drive(1, True, 0)
    assert io.release_digital_input(1, 1) is None
    assert io.release_analog_input(1, 1) is None
    assert io.digital().inputs == 0b10


# ── pulses ──────────────────────────────────────────────────────────────────────────────────────


def edges(io: VirtualIO, pin: int) -> list[tuple[float, bool]]:
    return [(c.at / MS, c.value) for c in io.history() if (c.bank, c.pin) == ("DI", pin)]


def test_a_pulse_lasts_for_its_duration() -> None:
    io = pins()
    io.simulate_sensor_trigger(10, True, 0)
    assert io.is_forced(10)
    advance([io], 100 * MS - 1)
    assert io.digital_input(10)
    advance([io], 100 * MS)
    assert not io.digital_input(10)
    assert not io.is_forced(10)
    io.simulate_sensor_trigger(10, True, 200 * MS, duration_ms=0.5)
    advance([io], NS_PER_SECOND)
    assert edges(io, 10) == [(0, True), (100, False), (200, True), (200.5, False)]


def test_a_negative_pulse() -> None:
    io = pins()
    io.drive(10, True, 0)
    io.simulate_sensor_trigger(10, False, 5 * MS, duration_ms=10)
    advance([io], NS_PER_SECOND)
    assert edges(io, 10) == [(0, True), (5, False), (15, True)]


def test_a_pulse_within_a_pulse_restarts_it() -> None:
    io = pins()
    io.simulate_sensor_trigger(10, True, 0, duration_ms=100)
    advance([io], 60 * MS)
    io.simulate_sensor_trigger(10, True, 60 * MS, duration_ms=100)
    advance([io], NS_PER_SECOND)
    assert edges(io, 10) == [(0, True), (160, False)]


def test_after_a_pulse_a_forced_input_is_forced_as_before() -> None:
    io = pins()
    io.set_digital_input(10, False, 0)
    io.simulate_sensor_trigger(10, True, 0, duration_ms=10)
    io.drive(10, True, 5 * MS)
    advance([io], 10 * MS)
    assert not io.digital_input(10)
    assert io.is_forced(10)


@pytest.mark.parametrize("forced", [True, False])
def test_forcing_or_releasing_an_input_ends_its_pulse(forced: bool) -> None:
    io = pins()
    io.simulate_sensor_trigger(10, True, 0, duration_ms=10)
    if forced:
        io.set_digital_input(10, True, 5 * MS)
    else:
        io.release_digital_input(10, 5 * MS)
    assert io.next_wake() is None
    advance([io], NS_PER_SECOND)
    assert io.digital_input(10) is io.is_forced(10) is forced


# ── analog ──────────────────────────────────────────────────────────────────────────────────────


def test_a_ramp_is_a_straight_line_at_any_reading_time() -> None:
    io = pins()
    io.set_analog_input(2, 1.0, 0)
    io.simulate_analog_sensor(2, 9.0, NS_PER_SECOND, ramp_s=4.0)
    backwards = [io.analog_input(2, NS_PER_SECOND * t) for t in (6, 5, 4, 3, 2, 1)]
    assert backwards == [9.0, 9.0, 7.0, 5.0, 3.0, 1.0]
    assert io.analog_input(2, 3 * NS_PER_SECOND + 1) == 5.0 + 2e-9
    assert io.next_wake() is None, "a closed form needs no wake"


def test_a_ramp_within_a_ramp_starts_from_the_present_value() -> None:
    io = pins()
    io.simulate_analog_sensor(2, 8.0, 0, ramp_s=4.0)
    io.simulate_analog_sensor(2, 0.0, 2 * NS_PER_SECOND, ramp_s=1.0)
    at = 2 * NS_PER_SECOND
    assert [io.analog_input(2, at + n * NS_PER_SECOND // 2) for n in range(4)] == [4, 2, 0, 0]


def test_a_forced_analog_input_overrides_its_device() -> None:
    io = pins()
    io.drive_analog(1, lambda now: now / NS_PER_SECOND)
    assert io.analog_input(1, 3 * NS_PER_SECOND) == 3.0
    io.set_analog_input(1, 7.5, 0)
    assert io.status(0).analog_forced == (1,)
    assert io.analog_input(1, 3 * NS_PER_SECOND) == 7.5
    io.release_analog_input(1, 0)
    assert io.analog_input(1, 3 * NS_PER_SECOND) == 3.0


@pytest.mark.parametrize("volts", [-0.001, 10.001, math.nan, math.inf, -math.inf])
def test_a_voltage_out_of_range_is_refused_and_the_old_one_stays(volts: float) -> None:
    io = pins()
    io.set_analog_output(0, 2.5, 0)
    io.set_analog_input(0, 1.5, 0)
    reported = f"{volts:g} V is outside 0…10 V"
    assert reason(io.set_analog_output(0, volts, 0)) == reported
    assert reason(io.set_analog_input(0, volts, 0)) == reported
    assert (io.analog_output(0), io.analog_input(0, 0)) == (2.5, 1.5)


def test_a_modelled_voltage_is_clamped() -> None:
    io = pins(analog_range_v=(1.0, 5.0))
    io.drive_analog(0, lambda now: now - 10.0)
    assert [io.analog_input(0, now) for now in (0, 13, 99)] == [1.0, 3.0, 5.0]
    assert io.analog_input(1, 0) == io.analog_output(0) == 1.0, (
        "and so is an input without an owner"
    )


def test_a_range_of_null_allows_every_voltage() -> None:
    io = pins(analog_range_v=None)
    assert io.set_analog_output(0, -1e300, 0) is None
    assert io.set_analog_input(0, 1e300, 0) is None
    io.drive_analog(1, lambda now: 1e6)
    assert io.analog_input(1, 0) == 1e6
    assert isinstance(io.set_analog_output(0, math.nan, 0), Refused)


def test_a_range_with_swapped_bounds_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"analog_range_v: the lower bound must come first \(got \[10.0, 0.0\]\)"
    ):
        pins(analog_range_v=(10.0, 0.0))


@pytest.mark.parametrize("ms", [-1.0, 3.7e6, math.nan, math.inf])
def test_an_invalid_duration_is_refused(ms: float) -> None:
    io = pins()
    for answer in (
        io.simulate_sensor_trigger(1, True, 0, duration_ms=ms),
        io.simulate_analog_sensor(1, 1.0, 0, ramp_s=ms / 1e3),
        io.link(1, 1, ms, 0),
    ):
        assert "ms is outside 0…3.6e+06 ms" in reason(answer)
    assert io.digital().inputs == 0
    assert io.next_wake() is None


# ── listeners ───────────────────────────────────────────────────────────────────────────────────


def test_observers_get_causes_before_effects() -> None:
    """Every observer gets the effects of a change after the change."""
    io = pins(links=[Link(0, 5)])
    reported: list[PinChange] = []
    io.subscribe(reported.append)
    io.on_change(lambda change: io.drive(6, True, change.at) if change.pin == 0 else None)
    io.set_digital_output(0, True, 7)
    assert reported == [
        PinChange(7, "DO", 0, True),
        PinChange(7, "DI", 6, True),
        PinChange(7, "DI", 5, True),
    ]
    assert tuple(reported) == io.history()


def test_devices_are_notified_during_the_change() -> None:
    io = pins()
    io.on_change(lambda change: io.drive(6, True, change.at) if change.bank == "DO" else None)
    io.set_digital_output(0, True, 0)
    assert io.digital_input(6)


def test_an_observer_may_set_pins() -> None:
    io = pins()
    reported: list[PinChange] = []

    def touch(change: PinChange) -> None:
        io.set_digital_output(1, True, change.at)

    io.subscribe(touch)
    io.subscribe(reported.append)
    io.set_digital_output(0, True, 3)
    assert [change.pin for change in reported] == [0, 1]


def test_a_write_without_a_change_is_not_reported() -> None:
    io = pins()
    reported: list[PinChange] = []
    io.subscribe(reported.append)
    io.set_digital_output(0, False, 0)
    io.set_digital_input(0, False, 0)
    io.drive(1, False, 0)
    assert reported == []
    assert io.history() == ()


def test_history_is_bounded_and_keeps_the_latest() -> None:
    io = pins()
    for now in range(HISTORY_LENGTH + 25):
        io.set_digital_output(3, now % 2 == 0, now)
    assert len(io.history()) == HISTORY_LENGTH
    assert io.history()[0].at == 25
    assert io.history()[-1].at == HISTORY_LENGTH + 24


def test_one_edge_of_one_pin_by_its_name() -> None:
    io = pins(links=[Link(5, 6)])
    rises: list[int] = []
    falls: list[int] = []
    assert io.on_edge("DI6", "rise", rises.append) is None
    assert io.on_edge("ARC_START", "fall", falls.append) is None
    assert reason(io.on_edge("NOWHERE", "rise", rises.append)) == "there is no pin NOWHERE"
    for now, (pin, value) in enumerate([(5, True), (0, True), (5, False), (0, False), (5, True)]):
        io.set_digital_output(pin, value, now)
    assert (rises, falls) == ([0, 4], [3])


def test_inputs_can_be_forced_by_injected_faults() -> None:
    io = pins()
    io.inject("force_input", {"pin": 3.0, "value": 1.0}, 0)
    io.inject("pulse_input", {"pin": 4.0, "value": 1.0, "duration_s": 0.01}, 0)
    io.inject("force_analog", {"pin": 2.0, "value": 4.0, "ramp_s": 2.0}, 0)
    assert io.digital().inputs == 0b11000
    assert io.analog_input(2, NS_PER_SECOND) == 2.0
    advance([io], NS_PER_SECOND)
    io.inject("release_input", {"pin": 3.0}, NS_PER_SECOND)
    assert io.digital().inputs == 0
    assert isinstance(io.inject("force_input", {"pin": 32.0, "value": 1.0}, 0), Refused)
