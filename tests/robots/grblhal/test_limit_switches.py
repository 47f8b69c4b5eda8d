"""Homing, limit switches and hard limits.

The expected lines are those of the firmware itself, whose PC program was given the switches of
`homing_machine.yaml`.
"""

import math
from pathlib import Path

import msgspec
import pytest
from tests.robots.grblhal.face.bench import Bench, fields

from understudy.errors import ConfigError
from understudy.robots.grblhal.machine import Config, build
from understudy.robots.grblhal.machine.machine import Machine
from understudy.robots.grblhal.machine.sensors import SwitchConfig

CELL = str(Path(__file__).parent / "homing_machine.yaml")
BANNER = ["", "GrblHAL 1.1f ['$' or '$HELP' for help]"]
UNLOCK = "[MSG:'$H'|'$X' to unlock]"
ZERO = "0.000,0.000,0.000,0.000,0.000,0.000"
FULL = b"\x87"
SEEK, FEED, ACCELERATION, PULL_OFF, PAUSE = 2000 / 60, 200 / 60, 100.0, 1.0, 0.05


def machine(*settings: str) -> Bench:
    bench = Bench(CELL)
    for setting in settings:
        assert bench.ask(setting) == ["ok"]
    return bench


def homed(*settings: str) -> Bench:
    bench = machine("$22=1", *settings)
    assert bench.ask("$H")[-1] == "ok"
    return bench


def at(bench: Bench) -> str:
    return fields(bench.report(FULL))["MPos"]


def seconds_until_ok(bench: Bench, line: str) -> float:
    begin = bench.virtual_cell.now
    assert bench.ask(line)[-1] == "ok"
    return bench.virtual_cell.now - begin


# ── the shipped machine ──


def test_the_shipped_machine_homes() -> None:
    bench = Bench("grblhal_6axis")
    assert [line[:6] for line in bench.ask("$H")] == ["<Home|", "[MSG:]", "ok"]
    report = fields(bench.report(FULL))
    assert report["MPos"] == "-1.000,-1.000,-1.000,0.000,0.000,0.000"
    assert report["H"] == "1,7"
    assert bench.ask("$HX")[-1] == "ok"


# ── a cycle ──


def ramp(distance: float, speed: float) -> float:
    """Seconds from rest to a switch at this distance, without braking."""
    ramped = speed**2 / (2.0 * ACCELERATION)
    if distance <= ramped:
        return math.sqrt(2.0 * distance / ACCELERATION)
    return speed / ACCELERATION + (distance - ramped) / speed


def test_a_cycle_takes_the_time_of_its_motion() -> None:
    def group(longest: float) -> float:
        pull_off = 2.0 * math.sqrt(PULL_OFF / ACCELERATION) + 0.002
        legs = ramp(longest, SEEK) + ramp(PULL_OFF, FEED) + 2.0 * pull_off
        return legs + 4.0 * PAUSE

    took = seconds_until_ok(machine("$22=1"), "$H")
    assert took == pytest.approx(0.1 + group(15.0) + group(20.0), abs=1e-6)


def test_every_pass_locates_again() -> None:
    once, thrice = (seconds_until_ok(machine("$22=1", f"$43={n}"), "$H") for n in (1, 3))
    locate = ramp(PULL_OFF, FEED) + 2.0 * math.sqrt(PULL_OFF / ACCELERATION) + 0.002
    assert thrice - once == pytest.approx(2 * 2 * (locate + 2 * PAUSE), abs=1e-6)


def test_a_cycle_reports_once_then_is_silent_until_its_end() -> None:
    bench = machine("$22=1")
    bench.say(b"$H\n")
    assert bench.received() == [f"<Home|MPos:{ZERO}|Bf:100,1023|FS:0,0|Ov:100,100,100|A:|TLR:0>"]
    bench.wait(0.4)
    bench.say(b"??!" + FULL)
    assert bench.received() == []
    report, *rest = bench.wait(10.0)
    assert report.startswith("<Home|MPos:-1.000,-1.000,-1.000,0.000,")
    assert report.endswith("|FW:grblHAL>")
    assert rest == ["[MSG:]", "ok"]
    assert "|H:1" in bench.report()
    assert "|H:" not in bench.report()


def test_reports_of_the_motion_if_the_settings_ask_for_them() -> None:
    bench = machine("$22=1", "$10=4607")
    bench.say(b"$H\n")
    assert bench.received() == []
    bench.wait(0.3)
    report = fields(bench.report())
    assert (report["State"], report["FS"]) == ("Home", "1800,0")
    assert report["MPos"] == "0.000,0.000,4.500,0.000,0.000,0.000"


def test_axes_of_a_group_leave_together_and_stop_at_their_own_switch() -> None:
    bench = machine("$22=1", "$10=4607", "$44=3", "$45=0")
    bench.say(b"$H\n")
    bench.wait(0.3)
    x, y = (float(value) for value in fields(bench.report())["MPos"].split(",")[:2])
    assert x == pytest.approx(0.5 * ACCELERATION * 0.3**2, abs=0.004)
    assert y == 3.0
    assert fields(bench.report())["Pn"] == "Y"


def test_startup_lines_run_after_homing() -> None:
    bench = machine("$22=1", "$N0=G21")
    assert bench.ask("$H")[1:] == ["[MSG:]", ">G21:ok", "ok"]


def test_offsets_list_the_home_position_while_homing_is_on() -> None:
    assert "[HOME:-1.000,-1.000,-1.000,0.000,0.000,0.000:7]" in homed().ask("$#")
    assert not any(line.startswith("[HOME") for line in machine().ask("$#"))


def test_a_snapshot_in_the_middle_of_a_cycle_ends_it_alike() -> None:
    bench = machine("$22=1")
    bench.say(b"$H\n")
    bench.wait(0.7)
    saved = msgspec.json.encode(bench.robot.save())
    other = Machine("machine", bench.robot._config)
    other.load(msgspec.json.decode(saved))
    while other.next_wake() is not None:
        other.wake(other.next_wake())  # type: ignore[arg-type]
    assert other.status(10**10).position == (-1.0, -1.0, -1.0, 0.0, 0.0, 0.0)


# ── options ──


def test_single_axes_need_their_option() -> None:
    assert machine("$22=1").ask("$HX") == ["error:5"]
    bench = machine("$22=3")
    assert fields(bench.report(FULL))["H"] == "0,0"
    for axis, value in (("X", "0,1"), ("Y", "0,3"), ("Z", "1,7")):
        assert bench.ask(f"$H{axis}")[1:] == ["[MSG:]", "ok"]
        assert fields(bench.report())["H"] == value


def test_switches_at_the_other_end_and_origin_zero() -> None:
    bench = homed("$23=0")
    bench.robot._switches._low[0], bench.robot._switches._high[0] = -25.0, math.inf
    bench.ask("$23=1")
    assert bench.ask("$H")[-1] == "ok"
    assert at(bench) == "-199.000,-1.000,-1.000,0.000,0.000,0.000"
    assert msgspec.json.encode(bench.robot.save())
    bench.ask("$22=9")
    assert bench.ask("$H")[-1] == "ok"
    assert at(bench) == ZERO


def test_manual_homing_sets_the_axes_without_switches() -> None:
    bench = machine("$22=33", "$44=0", "$45=0", "G0 X-5")
    bench.idle()
    assert bench.ask("$H") == ["[MSG:]", "ok"]
    assert at(bench) == ZERO
    assert bench.ask("$HX") == ["error:5"]
    assert bench.ask("$22=35") == ["ok"]
    assert bench.ask("$HX") == ["[MSG:]", "ok"]
    assert fields(bench.report(FULL))["H"] == "1,63"


def test_homing_may_be_required_after_a_start() -> None:
    bench = machine("$22=5")
    bench.say(b"\x18")
    assert bench.received() == [*BANNER, "ALARM:11", "[MSG:Homing cycle required]"]
    assert bench.ask("$X") == ["error:46"]
    assert bench.ask("G0 X1") == ["error:9"]
    assert bench.ask("$J=G91 X1 F100") == ["error:8"]
    bench.say(b"\x18")
    assert bench.received() == [*BANNER, "[MSG:Homing cycle required]"]
    assert bench.ask("$H")[1:] == ["[MSG:]", "ok"]
    bench.say(b"\x18")
    assert bench.received() == BANNER
    assert bench.ask("$130=300") == ["ALARM:11", "[MSG:Homing cycle required]", "ok"]


def test_homing_is_required_at_power_on_and_a_reset_may_override_it() -> None:
    locked = Machine("machine", Config(settings={22: 69.0}))
    assert locked.status(0).alarm == 11
    locked.firmware.realtime.reset(0)
    assert locked.firmware.switches.unlock(0) is None
    assert locked.status(0).state == "Idle"


def test_homed_status_is_lost_with_the_position() -> None:
    bench = homed()
    bench.ask("G1 X-50 F3000")
    bench.wait(0.2)
    bench.say(b"\x18")
    assert bench.received()[0] == "ALARM:3"
    assert fields(bench.report(FULL))["H"] == "0"
    bench = homed("$676=14")
    bench.ask("G1 X-50 F3000")
    bench.wait(0.2)
    bench.say(b"\x18")
    assert fields(bench.report(FULL))["H"] == "1"


# ── cycles that fail ──


def test_a_reset_ends_a_cycle() -> None:
    bench = machine("$22=1")
    bench.say(b"$H\n")
    bench.wait(0.3)
    bench.say(b"\x18")
    assert bench.received() == ["ALARM:6", *BANNER, UNLOCK]
    assert at(bench) == "0.000,0.000,2.000,0.000,0.000,0.000"


def test_the_door_ends_a_cycle() -> None:
    bench = machine("$22=1")
    bench.say(b"$H\n")
    bench.wait(0.3)
    bench.say(b"\x84")
    assert bench.received() == ["ALARM:7", *BANNER, UNLOCK]
    assert bench.ask("$X") == ["[MSG:Caution: Unlocked]", "ok"]


def test_a_switch_of_the_wrong_polarity_is_not_cleared() -> None:
    bench = machine("$22=1", "$5=4")
    assert fields(bench.report())["Pn"] == "Z"
    assert bench.ask("$LIM") == ["[LIMITS:Z,,,]", "ok"]
    assert bench.ask("$HSS") == ["[HOMES:Z,:L]", "ok"]
    bench.say(b"$H\n")
    assert bench.wait(10.0)[-4:] == ["ALARM:8", *BANNER, UNLOCK]


@pytest.mark.parametrize("setting", ["$27=0", "$27=0.001"])
def test_without_a_pull_off_the_switch_is_not_cleared(setting: str) -> None:
    bench = machine("$22=1", setting)
    bench.say(b"$H\n")
    assert bench.wait(10.0)[-4:] == ["ALARM:8", *BANNER, UNLOCK]


def test_no_rate_no_homing() -> None:
    assert machine("$22=1", "$25=0").ask("$H") == ["error:5"]
    bench = homed("$24=0")
    assert fields(bench.report(FULL))["H"] == "1"


def test_axes_without_travel_are_left_out() -> None:
    bench = homed("$130=0", "$45=1")
    assert at(bench) == "0.000,0.000,-1.000,0.000,0.000,0.000"
    assert fields(bench.report(FULL))["H"] == "0"


def test_no_switch_within_one_and_a_half_travels() -> None:
    bench = machine("$22=3", "$133=10", "$123=100")
    begin = bench.virtual_cell.now
    bench.say(b"$HA\n")
    bench.idle()
    assert fields(bench.report(FULL))["State"] == "Alarm:9"
    assert at(bench) == "0.000,0.000,0.000,15.000,0.000,0.000"
    rate = 500 / 60
    took = 15.0 / rate + rate / 100.0
    assert bench.virtual_cell.now - begin == pytest.approx(0.1 + took + 0.002, abs=1e-6)


def test_normally_closed_switches_home_with_their_setting() -> None:
    closed = {letter: SwitchConfig(max=0.0, normally_closed=True) for letter in "XYZ"}
    config = Config(
        settings={22: 1.0, 5: 7.0, 25: 2000.0},
        limit_switches=closed,  # type: ignore[arg-type]
        starts_at={"X": -1.0, "Y": -1.0, "Z": -1.0},
    )
    bench = Machine("machine", config)
    assert bench.status(0).switches == ""
    bench.firmware.lines.home("", 0)
    while bench.next_wake() is not None:
        bench.wake(bench.next_wake())  # type: ignore[arg-type]
    assert bench.status(0).homed == "1"


# ── hard and soft limits ──


def test_a_hard_limit_stops_at_the_switch() -> None:
    bench = machine("$22=1", "$21=1")
    bench.ask("G1 X30 F600")
    assert bench.wait(4.0) == ["ALARM:1", "[MSG:Reset to continue]"]
    assert fields(bench.report())["Bf"].startswith("99,")  # the block that was cut off
    report = fields(bench.report())
    assert (report["State"], report["Pn"]) == ("Alarm", "X")
    assert report["MPos"] == "20.000,0.000,0.000,0.000,0.000,0.000"
    assert bench.ask("$X") == ["error:79"]
    assert bench.ask("G0 X0") == ["error:9"]
    bench.say(b"\x18")
    assert bench.received() == [*BANNER, UNLOCK]
    assert bench.ask("$LIM") == ["[LIMITS:X,,,]", "ok"]
    assert bench.ask("$LEV") == ["[LASTEVENTS:,X,,,]", "ok"]
    assert bench.ask("$X") == ["[MSG:Caution: Unlocked]", "ok"]
    assert bench.ask("G0 X10") == ["ok"], "the way off the switch is free"
    assert bench.idle() == []
    bench.ask("G1 X15 F600")
    bench.ask("G1 Y10 X25")
    assert bench.idle()[:1] == ["ALARM:1"]
    assert at(bench).startswith("18.000,3.000,"), "Y reaches its switch first"


def test_without_hard_limits_a_switch_is_only_reported() -> None:
    bench = machine("$22=1")
    bench.ask("G1 X25 F3000")
    bench.idle()
    assert fields(bench.report())["Pn"] == "X"
    assert at(bench) == "25.000,0.000,0.000,0.000,0.000,0.000"


def test_strict_hard_limits_lock_the_machine_on_a_switch() -> None:
    bench = machine("$22=1")
    bench.ask("G1 X25 F3000")
    bench.idle()
    assert bench.ask("$21=3") == ["ok"]
    assert bench.ask("$X") == ["ok"]
    bench.say(b"\x18")
    assert bench.received() == [*BANNER, "ALARM:12", "[MSG:Check Limits]"]
    assert bench.ask("$X") == ["[MSG:Check Limits]", "error:45"]
    assert bench.ask("$J=G91 X-1 F600") == ["error:8"]


def test_two_switches_on_one_input_refuse_to_home_from_a_switch() -> None:
    bench = machine("$22=17")
    bench.ask("G1 X25 F3000")
    bench.idle()
    bench.say(b"$H\n")
    assert bench.received() == ["ALARM:1", "[MSG:Reset to continue]"]


def test_homing_is_free_from_hard_limits_and_soft_limits_follow_it() -> None:
    bench = homed("$21=1", "$20=1")
    assert bench.ask("G1 X-50 F3000") == ["ok"]
    bench.idle()
    bench.say(b"G0 X-0.5\n")
    assert bench.wait(1.0) == ["ALARM:2", "[MSG:Reset to continue]"], "the pull-off stays free"


def test_soft_limits_have_no_effect_before_homing() -> None:
    bench = machine("$22=1", "$20=1")
    assert bench.ask("G0 X10") == ["ok"]
    assert bench.idle() == []


# ── cell files ──


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (SwitchConfig(min=5.0, max=5.0), "the switches leave the axis no room"),
        (SwitchConfig(), "the axis has no switch; allowed: min, max or both"),
    ],
)
def test_switches_must_exist_and_leave_room(row: SwitchConfig, problem: str) -> None:
    config = Config(limit_switches={"Y": row})
    with pytest.raises(ConfigError, match=rf"limit_switches\.Y: {problem}"):
        build("machine", config, None)  # type: ignore[arg-type]


# ── faults ──


def test_a_switch_that_gets_stuck_is_a_hard_limit_and_can_be_repaired() -> None:
    bench = homed("$21=1")
    bench.inject("limit_switch_stuck", axis=1.0)
    assert bench.received() == ["ALARM:1", "[MSG:Reset to continue]"]
    bench.say(b"\x18")
    bench.received()
    assert fields(bench.report(FULL))["Pn"] == "Y"
    assert fields(bench.report(FULL))["H"] == "1", "nothing moved, so the position is known"
    bench.inject("sensors_repaired")
    assert "Pn" not in fields(bench.report(FULL))


def test_a_stuck_switch_is_not_cleared_and_a_dead_one_not_found() -> None:
    bench = machine("$22=1")
    bench.inject("limit_switch_stuck", axis=2.0)
    bench.say(b"$H\n")
    assert "ALARM:8" in bench.wait(10.0)
    bench.inject("limit_switch_dead", axis=2.0)
    bench.say(b"$H\n")
    assert "ALARM:9" in bench.wait(60.0)


def test_a_snapshot_keeps_the_faults() -> None:
    bench = machine()
    bench.inject("limit_switch_stuck", axis=0.0)
    other = Machine("machine", bench.robot._config)
    other.load(msgspec.json.decode(msgspec.json.encode(bench.robot.save())))
    assert other.status(0).switches == "X"
