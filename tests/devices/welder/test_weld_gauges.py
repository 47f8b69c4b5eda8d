"""Set values and measured values of the power source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.welder.weld_bench import MS, WelderBench

from understudy.devices.welder import WeldParameters
from understudy.errors import Refused
from understudy.simulation.scenario import Rule

NOISE = {"noise": Rule("weld_noise", "torch", parameters={"amplitude_percent": 2.0})}
ALUMINIUM = WeldParameters(120.0, 18.0, 10.0)


def volts(bench: WelderBench) -> tuple[float, ...]:
    """AI0 … AI3."""
    return tuple(round(value, 9) for value in bench.io.analog(bench.now).inputs[:4])


def test_steel_on_the_wires() -> None:
    """180 A · 0.95 / 40, 22 V · 0.98 / 4, 8 m/min / 2, 15 l/min / 2.5."""
    bench = WelderBench()
    assert volts(bench) == (0, 0, 0, 0)
    bench.start().run(99)
    assert volts(bench) == (0, 0, 0, 0)
    bench.run(100)
    assert volts(bench) == (0, 0, 0, 6.0)
    bench.run(1000)
    assert volts(bench) == (4.275, 5.39, 4.0, 6.0)
    status = bench.welder.status(bench.now)
    assert (status.arc_on, status.gas_flowing, status.wire_feeding) == (True, True, True)
    assert status.current_amps == pytest.approx(171.0)
    assert status.voltage_volts == pytest.approx(21.56)
    assert (status.wire_speed_m_min, status.gas_flow_l_min) == (8.0, 15.0)


def test_in_burnback_the_wire_feeder_is_stopped() -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).run(5499)
    assert volts(bench) == (4.275, 5.39, 4.0, 6.0)
    bench.run(5500)
    assert volts(bench) == (4.275, 5.39, 0.0, 6.0)
    bench.run(5580)
    assert volts(bench) == (0, 0, 0, 6.0)


# ── set values ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("job", [0, 1, 5, 15])
def test_job_bits_select_the_job(job: int) -> None:
    bench = WelderBench(jobs={5: ALUMINIUM, 15: WeldParameters(200.0, 24.0, 9.0)}).start()
    for bit in range(4):
        bench.io.set_digital_output(12 + bit, bool(job >> bit & 1), 0)
    bench.run(1000)
    current = {5: 120.0, 15: 200.0}.get(job, 180.0)
    assert bench.welder.status(bench.now).current_amps == pytest.approx(current * 0.95)


def test_analog_outputs_set_wire_feed_and_voltage() -> None:
    bench = WelderBench().start()
    bench.io.set_analog_output("WIRE_FEED_SET", 6.0, 0)
    bench.io.set_analog_output("VOLTAGE_SET", 5.0, 0)
    bench.run(1000)
    assert volts(bench) == (4.275, 4.9, 6.0, 6.0)
    assert bench.welder.status(bench.now).wire_speed_m_min == 12.0


def test_parameters_set_by_the_operator_replace_the_job() -> None:
    bench = WelderBench(jobs={0: ALUMINIUM}).start().run(1000)
    assert bench.welder.status(bench.now).current_amps == pytest.approx(114.0)
    assert bench.welder.set_weld_parameters(100.0, 20.0, 6.0) is None
    assert volts(bench) == (2.375, 4.9, 3.0, 6.0)
    for wrong in ((-1.0, 1.0, 1.0), (1.0, float("nan"), 1.0), (1.0, 1.0, float("inf"))):
        assert isinstance(bench.welder.set_weld_parameters(*wrong), Refused)
    assert volts(bench)[0] == 2.375


def test_values_beyond_the_pin_range_are_clamped_on_the_pin_only() -> None:
    bench = WelderBench(jobs={0: WeldParameters(600.0, 50.0, 30.0)}).start().run(1000)
    assert volts(bench)[:3] == (10.0, 10.0, 10.0)
    assert bench.welder.status(bench.now).current_amps == pytest.approx(570.0)


# ── manual wire feed ────────────────────────────────────────────────────────────────────────────


def test_inch_and_retract() -> None:
    bench = WelderBench().turn(0, "WIRE_INCH", True)
    assert bench.welder.status(0).wire_speed_m_min == 8.0
    assert volts(bench)[2] == 4.0
    bench.turn(1, "WIRE_RETRACT", True)
    assert not bench.welder.status(bench.now).wire_feeding, "both: neither"
    bench.turn(2, "WIRE_INCH", False)
    assert bench.welder.status(bench.now).wire_speed_m_min == -8.0
    assert volts(bench)[2] == 4.0
    bench.turn(3, "WIRE_RETRACT", False)
    assert volts(bench)[2] == 0.0


# ── noise ───────────────────────────────────────────────────────────────────────────────────────


def test_only_current_and_voltage_have_noise_within_the_amplitude() -> None:
    bench = WelderBench(rules=NOISE).start().run(1000)
    rows = [bench.io.analog(1000 * MS + n * 10 * MS).inputs[:4] for n in range(400)]
    for channel, steady in ((0, 4.275), (1, 5.39)):
        shares = [row[channel] / steady - 1.0 for row in rows]
        assert max(map(abs, shares)) <= 0.02
        assert max(shares) > 0.015
        assert min(shares) < -0.015
        assert abs(sum(shares) / len(shares)) < 0.002
    assert {row[2:] for row in rows} == {(4.0, 6.0)}


@given(st.lists(st.integers(1000, 5000), min_size=1, max_size=20))
def test_noise_is_a_function_of_time(moments: list[int]) -> None:
    """Reading changes neither later readings nor the process."""
    seen, looked = (WelderBench(rules=NOISE).start().run(1000) for _ in range(2))
    for moment in moments:
        looked.io.analog(moment * MS)
        looked.welder.status(moment * MS)
    assert seen.state == looked.state
    assert seen.fault_source.save() == looked.fault_source.save()
    at = moments[-1] * MS
    assert seen.io.analog(at) == looked.io.analog(at)


def test_another_seed_is_other_noise() -> None:
    readings = {
        WelderBench(rules=NOISE, seed=s).start().run(1000).io.analog(1000 * MS) for s in range(5)
    }
    assert len(readings) == 5
