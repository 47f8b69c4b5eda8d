"""Overrides that a program forbids, and waits for spindle, inputs and settings."""

import pytest
from tests.robots.grblhal.face.bench import Bench, answers, fields

# ── overrides that a program forbids ──


def seconds_of(bench: Bench, line: str) -> float:
    """Duration of the motion of a line."""
    began = bench.virtual_cell.now
    assert bench.ask(line)[-1] == "ok"
    bench.idle()
    return bench.virtual_cell.now - began


@pytest.mark.parametrize(("off", "on"), [("M49", "M48"), ("M50 P0", "M50 P1"), ("M50P0", "M48")])
def test_an_override_that_is_not_allowed_acts_later(off: str, on: str) -> None:
    bench = Bench().fast()
    plain = seconds_of(bench, "G1 X50 F1000")
    bench.say(b"\x92" * 5)
    assert seconds_of(bench, "X0") == pytest.approx(2 * plain, rel=0.05)
    assert bench.ask(off) == ["ok"]
    assert seconds_of(bench, "X50") == pytest.approx(plain, rel=0.01)
    assert "Ov:50,100,100" in bench.report(b"\x87"), "it is reported as before"
    assert bench.ask(on) == ["ok"]
    assert seconds_of(bench, "X0") == pytest.approx(2 * plain, rel=0.05)


def test_the_rapid_override_is_disabled_with_the_feed_override() -> None:
    bench = Bench().fast()
    plain = seconds_of(bench, "G0 X100")
    bench.ask("M50 P0")
    bench.say(b"\x97")
    assert seconds_of(bench, "G0 X0") == pytest.approx(plain, rel=0.01)
    bench.ask("M50 P1")
    assert seconds_of(bench, "G0 X100") > 2 * plain


def test_m50_acts_on_what_is_queued_and_m49_waits_for_it() -> None:
    bench = Bench().fast()
    bench.say(b"\x92" * 5)
    bench.say(b"G1 X100 F1000\nM50 P0\n")
    assert answers(bench.received()) == ["ok", "ok"]
    bench.wait(2.0)
    assert fields(bench.report())["FS"] == "1000,0"
    bench.ask("M50 P1")
    bench.say(b"M49\n")
    assert bench.received() == [], "the spindle's override changes when motion has ended"
    assert bench.idle() == ["ok"]


def test_the_spindle_turns_as_programmed_where_its_override_is_not_allowed() -> None:
    bench = Bench().fast()
    bench.ask("M3 S500")
    bench.say(b"\x9a\x9a")
    assert fields(bench.report())["FS"] == "0,600"
    bench.ask("M51 P0")
    assert fields(bench.report())["FS"] == "0,500"
    bench.ask("M51 P1")
    assert fields(bench.report())["FS"] == "0,600"


def test_a_hold_that_is_not_allowed_has_no_effect() -> None:
    bench = Bench().fast()
    bench.ask("M53 P0")
    bench.ask("G1 X50 F1000")
    bench.say(b"!")
    bench.wait(1.0)
    assert bench.state() == "Run"
    bench.idle()
    bench.ask("M53 P1")
    bench.say(b"!")
    assert bench.state() == "Hold:0"


def test_a_stop_keeps_m49_and_a_reset_clears_it() -> None:
    bench = Bench()
    bench.ask("M49")
    bench.say(b"\x19")
    assert "M50 M51" in bench.ask("$G")[-2]
    bench.say(b"\x18")
    assert "M50" not in bench.ask("$G")[-2]


def test_overrides_do_not_act_on_jogs_and_probing_moves() -> None:
    bench = Bench().fast()
    plain = seconds_of(bench, "$J=X50 F1000")
    bench.say(b"\x92" * 5)
    assert seconds_of(bench, "$J=X0 F1000") == pytest.approx(plain, rel=0.01)
    assert seconds_of(bench, "G38.3 X50 F1000") == pytest.approx(plain, rel=0.01)
    bench.ask("$65=1")
    assert seconds_of(bench, "G38.3 X0 F1000") == pytest.approx(2 * plain, rel=0.05)


# ── waiting ──


def test_the_timeout_of_a_wait_is_suspended_in_a_hold() -> None:
    bench = Bench()
    bench.say(b"M66 P0 L3 Q2\n")
    bench.wait(1.5)
    bench.say(b"!")
    assert bench.wait(10.0) == []
    assert bench.state() == "Hold:0"
    bench.say(b"~")
    assert answers(bench.wait(0.4)) == []
    assert answers(bench.wait(0.2)) == ["ok"]
    assert fields(bench.report())["In"] == "-1"


def test_spindle_and_coolant_need_time_after_the_door_is_closed() -> None:
    bench = Bench().fast()
    for line in ("M3 S500", "M8", "G1 X100 F600"):
        assert bench.ask(line) == ["ok"]
    bench.wait(1.0)
    bench.say(b"\x84")
    assert bench.wait(1.0) == ["[MSG:Check Door]"]
    standing = fields(bench.report())
    assert (standing["State"], standing["FS"]) == ("Door:0", "0,0")
    bench.say(b"~")
    assert fields(bench.report(b"\x87"))["A"] == "S"
    bench.wait(3.9)
    assert bench.state() == "Door:4", "$392 is 4 s"
    bench.wait(0.2)
    assert fields(bench.report(b"\x87"))["A"] == "SF"
    bench.wait(0.8)
    assert fields(bench.report())["MPos"] == standing["MPos"], "$393 is 1 s"
    bench.wait(0.5)
    assert bench.state() == "Run"
    bench.idle()
    assert fields(bench.report())["MPos"].startswith("100.000")


def test_opening_the_door_again_stops_the_spindle_again() -> None:
    bench = Bench().fast()
    bench.ask("M3 S500")
    bench.say(b"\x84~")
    assert bench.state() == "Door:4"
    bench.wait(1.0)
    bench.say(b"\x84")
    assert "[MSG:Check Door]" in bench.received()
    assert fields(bench.report())["State"] == "Door:0"
    assert bench.wait(10.0) == []
    assert fields(bench.report())["FS"] == "0,0"
    bench.say(b"~")
    bench.wait(4.1)
    assert bench.state() == "Idle"


# ── words ──


def test_settings_are_described_in_the_firmwares_words() -> None:
    bench = Bench()
    rows = bench.ask("$ES")
    assert "[SETTING:481|1|Autoreport interval|ms|5|###0|100|1000|1|1]" in rows
    assert "[SETTING:376|35|Rotary axes||1|A-Axis,B-Axis,C-Axis|||0|0]" in rows
    assert "[SETTING:113|46|A-axis maximum rate|deg/min|6|#####0.000|||0|0]" in rows
    groups = bench.ask("$EG")
    assert {"[SETTINGGROUP:13|0|Parking/Safety door]", "[SETTINGGROUP:46|42|A-axis]"} <= {*groups}
    assert "[ALARMCODE:17||Motor fault.]" in bench.ask("$EA")
    assert "[ERRORCODE:39||Value out of range.]" in bench.ask("$EE")


@pytest.mark.parametrize("number", [392, 393, 394, 481])
def test_a_delay_is_zero_or_at_least_its_minimum(number: int) -> None:
    bench = Bench()
    assert bench.ask(f"${number}=0") == ["ok"]
    assert bench.ask(f"${number}=0.2")[-1] in ("error:52", "error:2")
    assert bench.ask(f"${number}={500 if number == 481 else 3}") == ["ok"]


def test_a_new_setting_keeps_the_override() -> None:
    bench = Bench().fast()
    plain = seconds_of(bench, "G1 X50 F1000")
    bench.say(b"\x92" * 5)
    bench.ask("$12=0.01")
    assert seconds_of(bench, "X0") == pytest.approx(2 * plain, rel=0.05)
