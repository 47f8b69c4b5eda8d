"""Cases without a recording: critical alarms, sleep, several clients, automatic reports."""

import pytest
from tests.robots.grblhal.face.bench import Bench, answers, fields

from understudy.robots.grblhal.numbers import ErrorCode
from understudy.wire.exchange import Client


def lines(client: Client) -> list[str]:
    return client.received().decode("latin-1").split("\r\n")[:-1]


def homing_bench() -> Bench:
    bench = Bench().fast()
    assert bench.ask("$22=1") == ["ok"]
    return bench


def homed_bench() -> Bench:
    """A machine that was homed by hand where it stands: no axis has a switch."""
    bench = Bench().fast()
    for line in ("$22=33", "$44=0", "$45=0"):
        assert bench.ask(line) == ["ok"]
    assert bench.ask("$H") == ["[MSG:]", "ok"]
    return bench


# ── alarms ──


def test_soft_limits_stop_the_motion_then_lock_until_a_reset() -> None:
    bench = homed_bench()
    assert bench.ask("$20=1") == ["ok"]
    assert bench.ask("G1 X-50 F3000") == ["ok"]
    bench.wait(0.2)
    bench.say(b"G1 X10\n")
    assert bench.received() == [], "the line is not answered"
    assert bench.wait(1.0) == ["ALARM:2", "[MSG:Reset to continue]"]
    assert bench.state() == "Alarm"
    assert 0.0 > float(fields(bench.report())["MPos"].split(",")[0]) > -50.0
    assert bench.ask("G0 X0") == ["error:9"]
    assert bench.ask("$X") == ["error:79"]
    assert bench.ask("$G")[-1] == "ok"
    bench.say(b"\x18")
    assert bench.received()[-1] == "[MSG:'$H'|'$X' to unlock]"
    assert bench.ask("$X") == ["[MSG:Caution: Unlocked]", "ok"]
    assert bench.state() == "Idle"


def test_a_jog_beyond_the_travel_is_refused() -> None:
    bench = homed_bench()
    bench.ask("$20=1")
    assert bench.ask("$J=G91 X-250 F1000") == ["error:15"]
    assert bench.ask("$J=G91 X-5 F1000") == ["ok"]


def test_soft_limits_need_homing_and_go_with_it() -> None:
    bench = Bench()
    assert bench.ask("$20=1") == ["error:10"]
    bench = homing_bench()
    bench.ask("$20=1")
    bench.ask("$22=0")
    assert bench.ask("$20") == ["$20=0", "ok"]


def test_homing_finds_no_switch() -> None:
    bench = Bench()
    assert bench.ask("$H") == ["error:5"]
    assert bench.ask("$HX") == ["error:5"]
    bench = homing_bench()
    bench.ask("$25=6000")
    bench.say(b"$H\n")
    (report,) = bench.received()
    assert report.startswith("<Home|")
    assert bench.wait(10.0) == [
        "ALARM:9",
        "",
        "GrblHAL 1.1f ['$' or '$HELP' for help]",
        "[MSG:'$H'|'$X' to unlock]",
    ]


def test_reset_while_homing_is_another_alarm() -> None:
    bench = homing_bench()
    bench.say(b"$H\n\x18")
    assert bench.received()[1] == "ALARM:6"
    assert bench.report(b"\x87").startswith("<Alarm:6|")


def test_a_reset_has_no_effect_until_the_emergency_stop_is_released() -> None:
    bench = Bench().fast()
    bench.ask("G1 X50 F3000")
    bench.wait(0.4)
    bench.inject("emergency_stop")
    assert bench.received() == ["ALARM:10", "[MSG:Emergency stop - clear, then reset to continue]"]
    before = fields(bench.report())["MPos"]
    bench.say(b"\x18")
    assert bench.received() == []
    bench.inject("emergency_release")
    assert bench.received()[-1] == "[MSG:'$H'|'$X' to unlock]"
    bench.wait(1.0)
    assert fields(bench.report())["MPos"] == before


def test_a_critical_alarm_answers_what_only_prints_and_refuses_the_rest() -> None:
    bench = Bench()
    bench.inject("emergency_stop")
    bench.received()
    for line in ("$G", "$I", "$N", "$#", "$PINS"):
        assert bench.ask(line)[-1] == "ok", line
    for line in ("$X", "$C", "$SLP", "$J=X1F100", "$N0=G0X1"):
        assert bench.ask(line) == [f"error:{int(ErrorCode.CRITICAL_EVENT)}"], line


# ── modes without motion ──


def test_only_a_reset_ends_sleep() -> None:
    bench = Bench()
    assert bench.ask("$SLP") == ["error:3"]
    assert bench.ask("$62=1") == ["ok"]
    assert bench.ask("$SLP") == ["ok", "[MSG:Sleeping]"]
    assert bench.state() == "Sleep"
    assert bench.ask("G0 X1") == ["error:9"]
    assert bench.ask("$X") == ["error:79"]
    bench.say(b"\x18")
    assert bench.received()[-1] == "[MSG:'$H'|'$X' to unlock]"
    assert bench.state() == "Alarm"


def test_lines_wait_in_a_hold_and_realtime_bytes_do_not() -> None:
    bench = Bench().fast()
    bench.say(b"!G0 X1\n$G\n?")
    (report,) = bench.received()
    assert report.startswith("<Hold:0|")
    assert fields(report)["Bf"] == "100,1014"
    bench.say(b"~")
    assert bench.received()[:2] == ["[MSG:]", "ok"]


def test_a_hold_acts_after_the_committed_motion() -> None:
    """0.09 s of motion are committed; then the machine brakes with its acceleration."""
    bench = Bench().fast()
    bench.ask("G1 X60 F3000")
    bench.wait(0.5)
    before = float(fields(bench.report())["MPos"].split(",")[0])
    bench.say(b"!")
    bench.wait(1.0)
    stopped = float(fields(bench.report())["MPos"].split(",")[0])
    speed, acceleration = 50.0, 500.0
    assert stopped - before == pytest.approx(speed * 0.09 + speed**2 / (2 * acceleration), abs=0.01)


def test_start_has_no_effect_while_the_machine_brakes() -> None:
    bench = Bench().fast()
    bench.ask("G1 X60 F3000")
    bench.wait(0.5)
    bench.say(b"!~")
    assert bench.state() == "Hold:1"
    bench.wait(1.0)
    assert bench.state() == "Hold:0"


def test_single_block_pauses_after_each_move() -> None:
    bench = Bench().fast()
    assert bench.ask("$S") == ["[MSG:Enabled]", "ok"]
    bench.say(b"G0 X1\nG0 X2\n")
    assert bench.wait(1.0) == []
    assert bench.state() == "Hold:0"
    bench.say(b"~")
    assert bench.wait(1.0) == ["[MSG:]", "ok"]
    bench.say(b"~")
    assert bench.wait(1.0) == ["[MSG:]", "ok"]


def test_optional_stop_and_block_delete() -> None:
    bench = Bench().fast()
    bench.say(b"\x88")
    assert bench.ask("M1") == ["ok"]
    assert fields(bench.report())["Pn"] == "T"
    assert bench.ask("$B") == ["[MSG:Enabled]", "ok"]
    assert bench.ask("/G0 X5") == ["ok"]
    bench.idle()
    assert fields(bench.report())["MPos"].startswith("0.000")


# ── jogs ──


def test_a_cancelled_jog_answers_the_jog_that_found_no_room() -> None:
    bench = Bench().fast()
    for _ in range(100):
        assert bench.ask("$J=G91 X1 F1000") == ["ok"]
    bench.say(b"$J=G91 X1 F1000\n$J=G91 Y1 F1000\n")
    assert bench.received() == []
    bench.say(b"\x85")
    assert bench.received() == ["ok"], (
        "for the line that was read; the lines behind it are discarded"
    )
    bench.wait(0.5)
    report = fields(bench.report())
    assert (report["State"], report["Bf"]) == ("Idle", "100,1023")


def test_a_hold_has_no_effect_on_a_jog() -> None:
    bench = Bench().fast()
    bench.ask("$J=G91 X10 F1000")
    bench.say(b"!")
    assert bench.state() == "Jog"
    bench.idle()
    assert fields(bench.report())["MPos"].startswith("10.000")


# ── pins ──


def test_an_output_with_motion_waits_for_the_motion() -> None:
    bench = Bench().fast()
    bench.ask("G1 X10 F3000")
    bench.ask("M62 P3")
    bench.ask("G1 X20")
    bench.wait(0.1)
    assert bench.outputs == 0
    bench.wait(0.2)
    assert bench.outputs == 8


def test_an_output_with_motion_stays_unchanged_without_a_motion() -> None:
    bench = Bench().fast()
    bench.ask("M62 P3")
    bench.wait(5.0)
    assert bench.outputs == 0


# ── reports ──


def test_automatic_reports() -> None:
    bench = Bench()
    bench.say(b"\x8c")
    assert bench.wait(1.0) == [], "there are none without an interval"
    assert bench.ask("$481=200") == ["ok"]
    bench.say(b"\x8c")
    assert len(bench.wait(1.0)) == 5
    bench.say(b"\x80")
    assert bench.received() == [], "0x80 has no effect meanwhile"
    assert "|AR:200|" in bench.report(b"\x87")
    bench.say(b"\x8c")
    assert bench.wait(1.0) == []
    assert "|AR|" in bench.report(b"\x87")


def test_automatic_reports_do_not_pile_up() -> None:
    bench = Bench()
    bench.ask("$481=100")
    bench.client.room = lambda: 0  # type: ignore[method-assign]
    bench.say(b"\x8c")
    bench.virtual_cell.advance(2000.0)
    face = bench.virtual_cell.timed_cell.faces[bench.endpoint]
    assert face.sessions()["1"].outbox.size < 300_000  # type: ignore[union-attr]


# ── several clients ──


def test_the_newest_client_is_served_and_the_one_before_it_waits() -> None:
    bench = Bench().fast()
    first, second = bench.client, bench.virtual_cell.connect(bench.endpoint)
    assert lines(second) == ["", "GrblHAL 1.1f ['$' or '$HELP' for help]"]
    first.say(b"G91\n?")
    assert lines(first) == []
    second.say(b"$G\n")
    assert "G90" in lines(second)[0], "the first client was not read"
    second.leave()
    bench.virtual_cell.advance(0.0)
    first.say(b"")
    assert answers(lines(first)) == ["ok"], "now it is read"


def test_bytes_that_waited_are_read_when_the_newest_client_sends_no_more() -> None:
    """A socket that is closed says first that nothing more comes; nothing else happens then."""
    bench = Bench().fast()
    first, second = bench.client, bench.virtual_cell.connect(bench.endpoint)
    first.say(b"G91\n?")
    second.end()
    assert answers(lines(first)) == ["ok"]
    first.say(b"$G\n")
    assert "G91" in lines(first)[0], "its next bytes are read, too"


def test_a_part_of_a_line_is_dropped_with_its_connection() -> None:
    bench = Bench().fast()
    bench.say(b"G0 X1")
    bench.client.leave()
    other = bench.virtual_cell.connect(bench.endpoint)
    other.received()
    assert other.ask(b"G0 Y1\n") == b"ok\r\n"
    bench.virtual_cell.advance(1.0)
    other.say(b"?")
    assert fields(lines(other)[0])["MPos"].startswith("0.000,1.000")


def test_bytes_and_answers_of_two_clients_do_not_mix() -> None:
    """The second client connects while the first has sent a part of a line and waits."""
    bench = Bench().fast()
    first = bench.client
    first.say(b"G4 P1\nG91\nG0 X")
    second = bench.virtual_cell.connect(bench.endpoint)
    second.received()
    second.say(b"G0 Y1\nG0 Y2\n")
    assert answers(bench.wait(1.5)) == []
    assert answers(lines(second)) == ["ok", "ok"], "the answers to its own lines"
    second.leave()
    first.say(b"3\n")
    bench.virtual_cell.advance(1.0)
    assert answers(lines(first)) == ["ok", "ok", "ok"], (
        "also the answer to the dwell, which was read before"
    )
    first.say(b"?")
    assert fields(lines(first)[0])["MPos"].startswith("3.000,2.000")


def test_a_stop_by_another_client_discards_the_lines_of_the_first() -> None:
    bench = Bench().fast()
    bench.say(b"G91\nG4 P1\n" + b"G0 X1\n" * 20)
    other = bench.virtual_cell.connect(bench.endpoint)
    other.say(b"\x19")
    bench.wait(1.0)
    other.leave()
    bench.wait(5.0)
    assert fields(bench.report())["MPos"].startswith("0.000")


def test_unanswered_lines_of_a_disconnected_client_are_not_executed() -> None:
    bench = Bench().fast()
    bench.say(b"G91\nG4 P1\n" + b"G0 X1\n" * 100)
    bench.client.leave()
    other = bench.virtual_cell.connect(bench.endpoint)
    bench.virtual_cell.advance(10.0)
    assert answers(lines(other)) == []
    other.say(b"?")
    assert fields(lines(other)[0])["MPos"].startswith("0.000")


def test_a_connection_changes_nothing_in_the_machine() -> None:
    bench = Bench().fast()
    bench.ask("G1 X20 F3000")
    bench.ask("G91")
    bench.client.leave()
    bench.virtual_cell.advance(1.0)
    bench.client = bench.virtual_cell.connect(bench.endpoint)
    bench.received()
    assert fields(bench.report())["MPos"].startswith("20.000")
    assert "G91" in bench.ask("$G")[0]


@pytest.mark.parametrize(("cell", "endpoint"), [("grblhal_6axis", "machine"), ("default", "g60")])
@pytest.mark.parametrize("stopper", [b"!", b"\x84"])
def test_nothing_is_in_progress_in_a_hold(cell: str, endpoint: str, stopper: bytes) -> None:
    bench = Bench(cell, f"{endpoint}.grblhal")
    bench.say(b"".join(b"G1 X%d F600\n" % (1 + n % 2) for n in range(90)))
    bench.say(b"G4 P1\nM66 P3 L3 Q5\n")
    bench.wait(0.05)
    assert bench.virtual_cell.timed_cell.busy()
    bench.say(stopper)
    bench.wait(2.0)
    assert not bench.virtual_cell.timed_cell.busy()
    assert not any(
        session.owed()
        for session in bench.virtual_cell.timed_cell.faces[bench.endpoint].sessions().values()
    )
    bench.say(b"~")
    assert bench.virtual_cell.timed_cell.busy()


@pytest.mark.parametrize("cell", ["grblhal_6axis", "default"])
@pytest.mark.parametrize(
    "arc", ["G2 X0 Y0 I1 P99999 F600", "G2 X0 Y0 I1 P0 F600", "G3 X0 Y0 I1000000000000 F600"]
)
def test_an_arc_with_too_many_chords_is_refused(cell: str, arc: str) -> None:
    bench = Bench(cell, f"{'machine' if cell == 'grblhal_6axis' else 'g60'}.grblhal")
    assert bench.ask(arc) == ["error:39"]
    assert bench.ask("") == ["ok"]
    assert bench.ask("G2 X0 Y0 I0.01 P2 F600") == ["ok"]


# ── parameters ──


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("5060", "0"),
        ("5061", "-10.5"),
        ("5070", "0"),
        ("5071", "N/A"),
        ("5160", "N/A"),
        ("5161", "0"),
        ("5169", "0"),
        ("5170", "N/A"),
        ("5196", "1"),
        ("5197", "0"),
        ("5210", "0"),
        ("5219", "0"),
        ("5399", "-2"),
        ("5400", "0"),
        ("5410", "0"),
        ("5411", "N/A"),
        ("5599", "0"),
        ("5600", "N/A"),
        ("5221", "10.5"),
        ("5222", "0"),
        ("5241", "0"),
        ("5230", "0"),
        ("5231", "N/A"),
        ("5220", "1"),
        ("5420", "-7.5"),
        ("5428", "0"),
        ("_x", "-7.5"),
        ("_abs_x", "3"),
        ("_abs_w", "0"),
        ("_abs_q", "N/A"),
        ("_q", "N/A"),
        ("_metric", "1"),
        ("_imperial", "0"),
        ("_absolute", "1"),
        ("_coord_system", "540"),
        ("_motion_mode", "0"),
        ("_feed", "600"),
    ],
)
def test_a_parameter_shows_the_state_of_the_controller(name: str, value: str) -> None:
    bench = Bench().fast()
    for line in ("G10 L2 P1 X10.5", "F600", "G53 G0 X3"):
        assert bench.ask(line) == ["ok"]
    bench.wait(5.0)
    assert bench.ask(f"$#={name}") == [f"[PARAM:{name}={value}]", "ok"]
