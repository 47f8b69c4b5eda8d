"""Probing moves of a machine touch what its cell file has: table, boxes and tool setter."""

from pathlib import Path

import msgspec
import pytest
from tests.robots.grblhal.face.bench import Bench, fields

from understudy.errors import ConfigError
from understudy.robots.grblhal.machine import Config, build
from understudy.robots.grblhal.machine.machine import Machine
from understudy.robots.grblhal.machine.sensors import BoxConfig, ProbeConfig

CELL = str(Path(__file__).parent / "probing_machine.yaml")


def bench_at(*lines: str) -> Bench:
    bench = Bench(CELL)
    for line in lines:
        assert bench.ask(line)[-1] == "ok"
    bench.idle()
    return bench


def touch(bench: Bench, line: str) -> str:
    """The position that a probing move reports."""
    probed, ok = bench.ask(line)
    assert ok == "ok"
    return probed


def z_of(bench: Bench) -> float:
    return float(fields(bench.report())["MPos"].split(",")[2])


def test_a_touch_is_reported_and_the_axes_overrun_it() -> None:
    """The figures are those of the firmware, whose PC program was given the same table."""
    bench = bench_at()
    assert touch(bench, "G38.2 Z-5 F600") == "[PRB:0.000,0.000,-1.000,0.000,0.000,0.000:1]"
    assert z_of(bench) == pytest.approx(-1.796, abs=0.005)
    assert fields(bench.report())["Pn"] == "P"
    assert touch(bench, "G38.4 Z1 F60") == "[PRB:0.000,0.000,-0.996,0.000,0.000,0.000:1]"
    assert z_of(bench) == pytest.approx(-0.960, abs=0.005)
    assert "Pn" not in fields(bench.report())


def test_a_probe_that_is_to_leave_contact_is_reported_inverted_while_it_moves() -> None:
    bench = bench_at()
    touch(bench, "G38.2 Z-5 F600")
    bench.say(b"G38.4 Z1 F60\n")
    bench.wait(0.2)
    report = bench.report()
    assert report.startswith("<Run")
    assert "Pn" not in fields(report)


def test_the_position_after_a_touch_is_a_whole_number_of_steps() -> None:
    """A work origin that is set there is the reported position, to the last digit."""
    bench = bench_at()
    touch(bench, "G38.2 X-20 Y-7 F333")
    position = fields(bench.report())["MPos"]
    assert bench.ask("G10 L20 P1 X0 Y0 Z0") == ["ok"]
    assert f"[G54:{position}]" in bench.ask("$#")


def test_the_touch_is_at_the_tip_of_the_tool() -> None:
    bench = bench_at("G0 Z10", "M61 Q1")
    assert touch(bench, "G38.2 Z-5 F60") == "[PRB:0.000,0.000,4.000,0.000,0.000,0.000:1]"


def test_the_side_of_a_box_is_touched() -> None:
    bench = bench_at()
    assert touch(bench, "G38.3 X-20 F300") == "[PRB:-5.000,0.000,0.000,0.000,0.000,0.000:1]"


def test_the_tool_setter_is_higher_than_the_table_and_round() -> None:
    bench = bench_at("G0 Z10", "G0 X20 Y-20")
    assert touch(bench, "G38.2 Z-5 F600") == "[PRB:20.000,-20.000,3.000,0.000,0.000,0.000:1]"
    bench = bench_at("G0 Z10", "G0 X25.5 Y-20")
    assert touch(bench, "G38.2 Z-5 F600") == "[PRB:25.500,-20.000,-1.000,0.000,0.000,0.000:1]"
    bench = bench_at("G0 Z10", "G0 X30 Y-20", "G0 Z2")
    assert touch(bench, "G38.2 X10 F300") == "[PRB:25.000,-20.000,2.000,0.000,0.000,0.000:1]"


def test_a_move_that_touches_nothing_is_alarm_5() -> None:
    bench = bench_at()
    assert bench.ask("G38.2 Z-0.5 F600") == [
        "ALARM:5",
        "[PRB:0.000,0.000,-0.500,0.000,0.000,0.000:0]",
        "ok",
    ]


def test_a_touching_probe_cannot_search() -> None:
    bench = bench_at("$6=1")
    assert fields(bench.report())["Pn"] == "P"
    assert bench.ask("G38.2 Z-5 F600") == ["ALARM:4", "ok"]


def test_a_normally_closed_probe_needs_its_setting() -> None:
    config = Config(probe=ProbeConfig(table_mm=-1.0, normally_closed=True), settings={6: 1.0})
    machine = Machine("machine", config)
    assert machine.status(0).switches == ""
    assert machine.firmware.storage.store(6, "0", 0) is None
    assert machine.status(0).switches == "P"


def test_a_work_offset_is_set_from_a_touch() -> None:
    bench = bench_at()
    touch(bench, "G38.2 Z-5 F100")
    bench.ask("G10 L20 P1 Z0")
    bench.ask("G0 Z2")
    bench.idle()
    assert z_of(bench) == pytest.approx(1.0, abs=0.1)


def test_the_machine_position_counts_not_the_firmwares() -> None:
    bench = bench_at("$22=33", "$44=0", "$45=0", "G0 Z5")
    assert bench.ask("$H") == ["[MSG:]", "ok"]
    assert touch(bench, "G38.2 Z-10 F600") == "[PRB:0.000,0.000,-6.000,0.000,0.000,0.000:1]"


def test_a_snapshot_keeps_the_probe() -> None:
    bench = bench_at()
    bench.say(b"G38.2 Z-5 F600\n")
    bench.wait(0.1)
    other = Machine("machine", bench.robot._config)
    other.load(msgspec.json.decode(msgspec.json.encode(bench.robot.save())))
    while (due := other.next_wake()) is not None:
        other.wake(due)
    assert other.status(10**10).probe[2] == pytest.approx(-1.0)


def test_a_dead_probe_touches_nothing() -> None:
    bench = bench_at()
    bench.inject("probe_dead")
    assert bench.ask("G38.2 Z-5 F600")[0] == "ALARM:5"


def test_the_shipped_machine_touches_workpiece_and_tool_setter() -> None:
    bench = Bench("grblhal_6axis")
    assert bench.ask("$H")[-1] == "ok"
    for target, height in (("X-250 Y-200", -110.0), ("X-20 Y-20", -90.0), ("X-20 Y-80", -120.0)):
        assert bench.ask(f"G53 G0 {target}") == ["ok"]
        probed = touch(bench, "G38.2 Z-130 F600").split(",")
        assert float(probed[2]) == height
        assert bench.ask("G53 G0 Z-1") == ["ok"]


def test_a_box_needs_a_volume() -> None:
    flat = ProbeConfig(boxes=(BoxConfig((0.0, 0.0, 0.0), (1.0, 1.0, 0.0)),))
    with pytest.raises(ConfigError, match=r"probe\.boxes\.0"):
        build("machine", Config(probe=flat), None)  # type: ignore[arg-type]
