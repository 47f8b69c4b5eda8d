"""The driver of a real grblHAL: bytes that it sends, and its reaction to the answers."""

import math
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ConfigError, Refused
from understudy.ports import UNLIMITED, ControllerStatus, Ticket
from understudy.ports.refusals import NOT_CONNECTED
from understudy.robots.grblhal.driver import Config, GrblHalDriver, LineStream, build
from understudy.robots.grblhal.driver.messages import (
    Banner,
    Info,
    LineAnswer,
    Other,
    Report,
    Setting,
    feed_override,
    numbered,
    read_line,
    sendable,
)
from understudy.units import DEG, nanoseconds

IDLE = "<Idle|MPos:0.000,0.000,0.000,0.000,0.000,0.000|Bf:100,1023|FS:0,0>"
RUN = "<Run|MPos:1.000,0.000,0.000,0.000,0.000,0.000|Bf:99,1023|FS:600,0>"
BANNER = "\r\nGrblHAL 1.1f ['$' or '$HELP' for help]"
INFO = "[VER:1.1f.20260817:]\r\n[OPT:VNML+,100,1024,6,0]\r\n[AUX IO:8,8,4,4]\r\nok"
SETTINGS = "$110=6000.000\r\n$120=500.000\r\nok"
SECONDS = 3.0


class Peer:
    """A scripted controller, line by line."""

    def __init__(self, config: Config = Config(poll_ms=1000)) -> None:  # noqa: B008
        self.driver: GrblHalDriver = build(config)
        self.now = 0
        self.lines: dict[int, Refused | None] = {}
        self.ended: list[tuple[Ticket, Refused | None]] = []
        self.driver.on_line(lambda number, outcome, now: self.lines.update({number: outcome}))
        self.driver.on_finished(lambda ticket, outcome, now: self.ended.append((ticket, outcome)))
        self.driver.connect(0)
        self.driver.connected(0)

    def ready(self, info: str = INFO) -> "Peer":
        assert self.sent() == "\x87"
        self.say(IDLE)
        assert self.sent() == "\x85$I\n"
        self.say(info)
        assert self.sent() == "$$\n"
        self.say(SETTINGS)
        assert self.sent() == "?"
        self.say(IDLE)
        assert self.sent() == ""
        assert self.driver.enable(self.now) is None
        return self

    def say(self, *lines: str) -> None:
        self.driver.receive("".join(f"{line}\r\n" for line in lines).encode("latin-1"), self.now)

    def sent(self) -> str:
        words = b""
        while data := self.driver.take(UNLIMITED):
            words += data
        return words.decode("latin-1")

    def send(self, line: str) -> Refused | None:
        return self.driver.send_gcode(line, self.now)

    def advance(self, seconds: float) -> None:
        to = self.now + nanoseconds(seconds)
        while (at := self.driver.next_wake()) is not None and at <= to:
            self.now = max(self.now, at)
            self.driver.wake(self.now)
        self.now = to

    @property
    def status(self) -> ControllerStatus:
        return self.driver.status(self.now)


class TestHoming:
    @pytest.mark.parametrize("reported", [True, False])
    def test_a_controller_that_homes_is_silent(self, reported: bool) -> None:
        """The firmware sends one report when homing begins, a compatible one none, then nothing."""
        peer = Peer().ready()
        peer.driver.home(peer.now)
        assert "$H\n" in peer.sent()
        if reported:
            peer.say(IDLE.replace("Idle", "Home"))
        peer.advance(300.0)
        assert (peer.status.error_message, peer.status.moving) == ("", True)
        peer.say("ok", IDLE)
        peer.advance(1.0)
        peer.say(IDLE)
        assert peer.driver.is_homed()
        assert peer.send("G0 X1") is None

    def test_homing_that_never_ends_is_reported(self) -> None:
        peer = Peer().ready()
        peer.driver.home(peer.now)
        peer.advance(700.0)
        assert "within 600000 ms" in peer.status.error_message


class TestConnecting:
    def test_it_asks_for_a_report_and_the_settings(self) -> None:
        peer = Peer().ready()
        assert peer.driver.is_connected()
        assert peer.status.buffer_available == 100
        assert peer.driver.joint_state(0).positions == (0.0,) * 6

    def test_the_state_is_unknown_before_the_first_report(self) -> None:
        peer = Peer()
        assert not peer.driver.is_connected()
        assert peer.status.state == "Unknown"
        assert math.isnan(peer.driver.joint_state(0).positions[0])
        assert peer.driver.enable(0) == NOT_CONNECTED

    def test_after_a_restart_it_asks_again(self) -> None:
        peer = Peer()
        peer.say(BANNER)
        peer.sent()
        peer.say(IDLE)
        assert peer.sent() == "\x85$I\n"

    def test_a_moving_controller_is_not_disturbed(self) -> None:
        peer = Peer()
        peer.sent()
        peer.say(RUN)
        assert peer.driver.is_connected()
        assert peer.status.moving
        assert peer.sent() == ""
        peer.advance(1.0)
        assert peer.sent() == "?"
        peer.say(RUN)
        peer.advance(1.0)
        peer.say(IDLE)
        assert peer.sent() == "?\x85$I\n"

    def test_disconnecting_does_not_stop_a_foreign_motion(self) -> None:
        peer = Peer()
        peer.say(RUN)
        peer.sent()
        peer.driver.disconnect(0)
        peer.advance(SECONDS)
        assert set(peer.sent()) <= {"?"}
        assert peer.driver.wanted() is None

    def test_connecting_does_not_unlock_an_alarm(self) -> None:
        peer = Peer()
        peer.sent()
        peer.say("<Alarm:3|MPos:0.000,0.000,0.000,0.000,0.000,0.000|Bf:100,1023|FS:0,0>")
        assert peer.sent() == "\x85$I\n"
        peer.say(INFO, SETTINGS, IDLE.replace("Idle", "Alarm"))
        assert peer.sent() == "$$\n?"
        assert (peer.status.state, peer.status.error_code) == ("Alarm", 3)
        assert "Reset/E-stop while in motion" in peer.status.error_message
        refused = peer.driver.enable(0)
        assert refused is not None
        assert refused.code == 3
        assert peer.sent() == ""

    def test_answers_to_another_client_are_ignored(self) -> None:
        peer = Peer()
        peer.sent()
        peer.say("ok", IDLE, "ok")
        assert peer.sent() == "\x85$I\n", "the ok before [VER:…] belongs to an older line"
        peer.say(INFO)
        assert peer.sent() == "$$\n"

    def test_a_query_that_is_always_refused_is_abandoned(self) -> None:
        peer = Peer()
        peer.sent()
        peer.say(IDLE)
        for _ in range(3):
            assert peer.sent().endswith("$I\n")
            peer.say("error:79")
        for _ in range(3):
            assert peer.sent() == "$$\n"
            peer.say("error:79")
        peer.say(IDLE)
        peer.driver.enable(0)
        assert peer.send("G0 X1") is None
        assert peer.sent().endswith("N1G0 X1\n")

    def test_work_positions_need_the_offset(self) -> None:
        peer = Peer()
        peer.say("<Idle|WPos:1.000,0.000,0.000,0.000,0.000,0.000|FS:0,0>")
        assert math.isnan(peer.driver.joint_state(0).positions[0])
        peer.say(
            "<Idle|WPos:1.000,0.000,0.000,0.000,0.000,0.000|FS:0,0"
            "|WCO:2.000,0.000,0.000,0.000,0.000,0.000>"
        )
        assert peer.driver.joint_state(0).positions[0] == pytest.approx(3 * DEG)


class TestStreaming:
    def test_lines_are_sent_with_their_numbers(self) -> None:
        peer = Peer().ready()
        for line in ("N10 G1 X1 F600 ; over there", "(a remark) G0 X2", "(only a remark)", "m0"):
            assert peer.send(line) is None
        assert peer.sent() == "N1G1 X1 F600\nN2G0 X2\nN4m0\n"

    def test_the_receive_buffer_is_filled(self) -> None:
        peer = Peer().ready(INFO.replace(",1024,", ",128,"))
        for _ in range(30):
            peer.send("G1 X1 F600")
        first = peer.sent()
        assert 114 < len(first) <= 127
        peer.say("ok")
        assert peer.sent() == f"N{first.count(chr(10)) + 1}G1 X1 F600\n"
        assert peer.lines == {1: None}

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.integers(1, 60), min_size=1, max_size=60), st.data())
    def test_the_receive_buffer_is_never_overrun(
        self, lengths: list[int], data: st.DataObject
    ) -> None:
        peer = Peer().ready(INFO.replace(",1024,", ",256,"))
        for length in lengths:
            assert peer.send("G0" + " " * length + "X1") is None
        unread: list[str] = []
        taken = 0
        while taken < len(lengths):
            unread += peer.sent().replace("?", "").splitlines(keepends=True)
            assert sum(map(len, unread)) <= 255
            assert unread, "there is room and a line to send"
            answers = data.draw(st.integers(1, len(unread)))
            del unread[:answers]
            taken += answers
            peer.say(*["ok"] * answers)
        assert peer.lines == dict.fromkeys(range(1, len(lengths) + 1))

    @pytest.mark.parametrize("line", ["G1 X1 ?", "G0 X1 ~", "G1 X\x18", "G1 X1 é", "!", "G0\x90X1"])
    def test_a_line_with_a_realtime_byte_is_refused(self, line: str) -> None:
        peer = Peer().ready()
        assert isinstance(peer.send(line), Refused)
        assert peer.sent() == ""

    def test_comments_are_not_sent(self) -> None:
        peer = Peer().ready()
        assert peer.send("G0 X1 (what? really!) ; ~~~") is None
        assert peer.sent() == "N1G0 X1\n"

    def test_a_line_that_is_too_long(self) -> None:
        refused = Peer().ready().send("G0 X" + "1" * 300)
        assert isinstance(refused, Refused)
        assert refused.code == 11

    def test_an_unsupported_code_is_sent(self) -> None:
        peer = Peer().ready()
        assert peer.send("M200 P1") is None
        assert peer.sent() == "N1M200 P1\n"

    def test_expressions_are_sent_if_the_controller_evaluates_them(self) -> None:
        assert isinstance(Peer().ready().send("#1=2"), Refused)
        peer = Peer().ready(INFO.replace("[AUX", "[NEWOPT:ENUMS,EXPR]\r\n[AUX"))
        assert peer.send("#1=2") is None
        assert peer.sent() == "#1=2\n"

    def test_after_an_error_nothing_is_sent(self) -> None:
        peer = Peer().ready(INFO.replace(",1024,", ",128,"))
        for _ in range(30):
            peer.send("G1 X1 F600")
        sent = peer.sent().count("\n")
        peer.say("error:22")
        assert peer.sent() == ""
        assert peer.status.error_code == 22
        assert peer.status.error_message.startswith("error:22 (N1G1 X1 F600)")
        peer.say(*["error:22"] * (sent - 1))
        assert {outcome.code for outcome in peer.lines.values() if outcome} == {22}
        assert len(peer.lines) == 30
        unsaid = peer.lines[30]
        assert unsaid is not None
        assert unsaid.reason.startswith("Not sent. error:22")

    def test_an_empty_line_is_sent_when_all_lines_are_answered(self) -> None:
        """An empty line ends the sticky error, so it must come after the lines that fail."""
        peer = Peer().ready()
        for line in ("G1 X1", "G1 X2", "G1 X3"):
            peer.send(line)
        peer.sent()
        peer.say("error:22")
        assert peer.send("") is None
        assert peer.send("G0 X4") is None
        assert peer.sent() == ""
        peer.say("error:22", "error:22")
        assert peer.sent() == "?"
        peer.say(IDLE)
        assert peer.sent() == "\n"
        peer.say("ok")
        assert peer.sent() == "N5G0 X4\n"
        assert not peer.status.error

    def test_a_program_is_read_as_it_can_be_sent(self) -> None:
        peer = Peer().ready(INFO.replace(",1024,", ",128,"))
        read = 0

        def lines() -> Iterator[str]:
            nonlocal read
            for _ in range(1000):
                read += 1
                yield "G1 X1 F600"

        ticket = peer.driver.run(lines(), 0)
        assert read < 15
        sent = 0
        while sent < 1000:
            count = peer.sent().count("\n")
            sent += count
            peer.say(*["ok"] * count)
            assert read <= sent + 15
        assert peer.ended == []
        peer.sent()
        peer.say(RUN)
        assert peer.ended == [], "accepted, not done"
        peer.advance(1.0)
        peer.say(IDLE)
        assert peer.ended == [(ticket, None)]
        assert peer.driver.progress() is None

    def test_a_program_ends_at_the_line_that_fails(self) -> None:
        peer = Peer().ready()
        ticket = peer.driver.run(["G0 X1", "", "G1 Y", "G0 X2"], 0)
        assert peer.sent() == "N1G0 X1\n"
        ((ended, outcome),) = peer.ended
        assert ended == ticket
        assert outcome is not None
        assert outcome.reason.startswith("line 3, column 4: Y: Y needs a number")

    def test_a_program_is_done_when_its_motion_has_ended(self) -> None:
        """A controller may report Idle before it begins an accepted line."""
        peer = Peer().ready()
        peer.driver.run(["G0 X1"], 0)
        peer.sent()
        peer.say("ok")
        assert peer.sent() == "?"
        peer.say(IDLE.replace("Bf:100", "Bf:99"))
        assert peer.ended == []
        peer.advance(1.0)
        peer.say(IDLE)
        assert len(peer.ended) == 1


class TestFailures:
    def test_silence_is_reported(self) -> None:
        peer = Peer().ready()
        peer.send("G1 X1 F600")
        peer.advance(SECONDS + 1.0)
        assert peer.lines[1] == Refused("the controller is silent: no report within 3000 ms")
        assert not peer.driver.is_connected()
        assert peer.status.state == "Unknown"
        assert not peer.status.enabled
        assert peer.driver.wanted() is not None, "a silent controller is not disconnected"

    def test_a_missing_answer_is_noticed_when_nothing_moves(self) -> None:
        peer = Peer().ready()
        peer.send("G1 X1 F600")
        for _ in range(10):
            peer.advance(1.0)
            peer.say(RUN)
        assert peer.lines == {}, "a full planner answers late"
        for _ in range(6):
            peer.advance(1.0)
            peer.say(IDLE)
        assert peer.lines[1] is not None
        assert "no answer to 'N1G1 X1 F600' within 3000 ms" in peer.lines[1].reason
        assert peer.status.error

    @pytest.mark.parametrize("line", ["G4 P10", "M66 P0 L3 Q10"])
    def test_a_dwell_or_wait_may_take_its_time(self, line: str) -> None:
        peer = Peer().ready()
        peer.send(line)
        for _ in range(12):
            peer.advance(1.0)
            peer.say(IDLE)
        assert peer.lines == {}
        for _ in range(4):
            peer.advance(1.0)
            peer.say(IDLE)
        assert peer.lines[1] is not None

    def test_an_unexpected_answer_ends_what_is_in_progress(self) -> None:
        peer = Peer().ready()
        ticket = peer.driver.run(["G0 X1"], 0)
        peer.say("ok", "ok")
        assert peer.ended[0][0] == ticket
        assert "answer without a request" in str(peer.ended[0][1])
        assert not peer.status.enabled

    def test_an_unexpected_restart(self) -> None:
        peer = Peer().ready()
        peer.send("G1 X1 F600")
        peer.send("G1 X2")
        peer.say(BANNER)
        assert [outcome.reason for outcome in peer.lines.values() if outcome] == [
            "the controller has restarted",
            "the controller has restarted",
        ]
        assert not peer.status.enabled

    def test_an_alarm_ends_everything(self) -> None:
        peer = Peer().ready()
        peer.send("G1 X1000 F600")
        peer.send("G1 X2")
        peer.sent()
        peer.say("ALARM:2")
        assert {outcome.code for outcome in peer.lines.values() if outcome} == {2}
        assert (peer.status.state, peer.status.error_code) == ("Alarm", 2)
        peer.say("error:79")
        peer.say(IDLE.replace("Idle", "Alarm"))
        assert "G1" not in peer.sent()
        assert peer.send("G0 X1") == peer.lines[1]

    def test_a_lost_connection(self) -> None:
        peer = Peer(Config(poll_ms=1000)).ready()
        for n in range(200):
            peer.send(f"G1 X{n} F600")
        sent = peer.sent().count("\n")
        peer.driver.lost(peer.now, "unplugged")
        reasons = [outcome.reason for outcome in peer.lines.values() if outcome]
        assert reasons == ["unplugged"] * sent + ["Not sent. unplugged"] * (200 - sent)
        assert peer.status.error_message == "unplugged"
        assert peer.driver.wanted() is None
        peer.advance(1.0)
        assert peer.driver.wanted() is not None, "it connects again after a pause"
        peer.driver.connected(peer.now)
        assert peer.sent() == "\x87", "and no line is sent again"

    def test_an_unconfirmed_emergency_stop_is_sent_again(self) -> None:
        peer = Peer().ready()
        peer.driver.emergency_stop(0)
        peer.driver.lost(0, "unplugged")
        peer.advance(1.0)
        peer.driver.connected(peer.now)
        assert peer.sent() == "\x87\x18"
        peer.say(BANNER)
        peer.driver.lost(peer.now, "unplugged")
        peer.advance(2.0)
        peer.driver.connected(peer.now)
        assert peer.sent() == "\x87"

    def test_an_emergency_stop_is_sent_again_after_a_timeout(self) -> None:
        peer = Peer().ready()
        peer.driver.emergency_stop(0)
        assert peer.sent() == "\x18"
        for _ in range(4):
            peer.advance(1.0)
            peer.say(RUN)
        assert "\x18" in peer.sent()
        peer.say(BANNER)
        peer.advance(1.0)
        peer.say(IDLE)
        peer.sent()
        peer.advance(0.5)
        assert "\x18" not in peer.sent()

    def test_a_stop_that_is_not_confirmed(self) -> None:
        peer = Peer().ready()
        peer.send("G1 X1 F600")
        peer.driver.stop(0)
        assert "\x19" in peer.sent()
        for _ in range(4):
            peer.advance(1.0)
            peer.say(RUN)
        assert "not confirmed within 3000 ms" in peer.status.error_message

    @settings(deadline=None, max_examples=200)
    @given(
        st.lists(
            st.one_of(
                st.binary(max_size=80),
                st.sampled_from(
                    [
                        b"ok\r\n",
                        b"error:9\r\n",
                        b"ALARM:1\r\n",
                        b"GrblHAL\r\n",
                        b"[MSG:Stop]\r\n",
                        IDLE.encode() + b"\r\n",
                        RUN.encode() + b"\r\n",
                        b"[GC:G0]\r\n",
                        b"$110=0\r\n",
                        b"$120=0\r\n",
                        b"[OPT:V,0,0,0]\r\n",
                        b"[AUX IO:9]\r\n",
                        b"<Idle|Bf:|FS:x>\r\n",
                        b"<Hold:0|MPos:1,2|Bf:-1,5>\r\n",
                        INFO.encode() + b"\r\n",
                    ]
                ),
            ),
            max_size=30,
        ),
        st.lists(st.sampled_from("gjshrepdc"), max_size=10),
    )
    def test_no_received_bytes_raise(self, received: list[bytes], requests: list[str]) -> None:
        peer = Peer()
        deed: dict[str, Callable[[int], object]] = {
            "g": lambda now: peer.driver.send_gcode("G1 X1 F600", now),
            "j": lambda now: peer.driver.jog(0, 1.0, now),
            "s": peer.driver.stop,
            "h": peer.driver.hold,
            "r": peer.driver.reset,
            "e": peer.driver.enable,
            "p": lambda now: peer.driver.run(["G0 X1"] * 5, now),
            "d": lambda now: peer.driver.set_digital_output(1, True, now),
            "c": peer.driver.home,
        }
        for n, data in enumerate(received):
            peer.driver.receive(data, peer.now)
            if n < len(requests):
                deed[requests[n]](peer.now)
            peer.advance(0.5)
            peer.sent()
        assert peer.driver.status(peer.now) is not None
        peer.advance(20.0)
        assert not peer.driver.busy() or peer.driver.next_wake() is not None


class TestOperator:
    def test_a_jog_ends_without_a_heartbeat(self) -> None:
        peer = Peer(Config(poll_ms=1000, heartbeat_ms=300)).ready()
        peer.driver.jog(0, 0.5, 0)
        assert peer.sent() == "$J=G91G21X1.1459F1718.8734\n"
        peer.say("ok")
        peer.advance(0.29)
        assert "\x85" not in peer.sent()
        peer.advance(0.02)
        assert "\x85" in peer.sent()
        peer.advance(5.0)
        assert "$J" not in peer.sent()

    def test_increments_are_a_short_time_ahead(self) -> None:
        """The arm stops soon after the cable is pulled."""
        peer = Peer(Config(poll_ms=1000, heartbeat_ms=60_000)).ready()
        peer.driver.jog(0, 0.5, 0)
        ahead = []
        sent = 0
        for n in range(100):
            new = peer.sent().count("$J")
            sent += new
            peer.say(*["ok"] * new, IDLE.replace("Idle", "Jog"))
            ahead.append(sent * 0.04 - n * 0.01)
            peer.advance(0.01)
        assert max(ahead) < 0.3
        assert min(ahead[10:]) > 0.1

    def test_one_increment_at_a_time(self) -> None:
        peer = Peer(Config(poll_ms=1000)).ready()
        peer.driver.jog(0, 0.5, 0)
        peer.advance(0.25)
        assert peer.sent().count("$J") == 1

    def test_a_refused_jog_is_over(self) -> None:
        peer = Peer().ready()
        peer.driver.jog(0, 0.5, 0)
        peer.say("error:15")
        peer.sent()
        peer.say(IDLE)
        assert peer.sent().endswith("$G\n"), "a query also ends the sticky error"
        peer.say("[GC:G0]", "ok")
        assert peer.sent() == "?"
        peer.say(IDLE)
        assert peer.status.state == "Idle"
        assert not peer.status.error
        assert peer.send("G0 X1") is None

    def test_a_reset_unlocks_and_lines_wait_for_it(self) -> None:
        peer = Peer().ready()
        peer.say("ALARM:3")
        peer.sent()
        assert peer.driver.reset(0) is None
        assert peer.sent() == "\x18"
        assert peer.driver.enable(0) is None
        assert peer.send("G0 X1") is None
        peer.say("ALARM:3", BANNER, "[MSG:'$H'|'$X' to unlock]")
        peer.sent()
        peer.say(IDLE.replace("Idle", "Alarm"), INFO, SETTINGS)
        peer.sent()
        peer.say(IDLE.replace("Idle", "Alarm"))
        assert peer.sent() == "$X\n"
        peer.say("[MSG:Caution: Unlocked]", "ok")
        assert "N1G0 X1\n" in peer.sent()

    def test_homing_ends_an_alarm(self) -> None:
        peer = Peer().ready()
        peer.say("ALARM:11", IDLE.replace("Idle", "Alarm:11"))
        assert peer.driver.home(0) is None
        peer.sent()
        peer.say("[GC:G0]", "ok", IDLE.replace("Idle", "Alarm:11"))
        peer.advance(1.0)
        peer.say(IDLE.replace("Idle", "Alarm:11"))
        assert "$H\n" in peer.sent()

    def test_rapids_have_three_speeds(self) -> None:
        peer = Peer().ready()
        assert peer.driver.override_rapid(50, 0) is None
        assert peer.sent().startswith("\x96")
        refused = peer.driver.override_rapid(60, 0)
        assert refused == Refused("60 %: allowed for rapids: 25, 50, 100 %")

    @given(st.integers(10, 200), st.none() | st.integers(10, 200))
    def test_override_bytes_reach_the_wanted_value(self, wanted: int, present: int | None) -> None:
        steps = {0x91: 10, 0x92: -10, 0x93: 1, 0x94: -1}
        value = 100 if present is None else present
        sent = feed_override(wanted, present)
        for byte in sent:
            value = 100 if byte == 0x90 else value + steps[byte]
        assert value == wanted
        assert len(sent) <= 25

    def test_an_output_is_set_ahead_of_lines_that_wait(self) -> None:
        peer = Peer().ready(INFO.replace(",1024,", ",128,"))
        peer.driver.run(["G1 X1 F600"] * 30, 0)
        sent = peer.sent().count("\n")
        assert peer.driver.set_digital_output(2, True, 0) is None
        peer.say("ok")
        assert peer.sent() == f"N{sent + 1}G1 X1 F600\nM64P2\n", "after the line that is being sent"
        peer.say(*["ok"] * (sent + 1))
        assert peer.driver.digital_io().outputs == 0b100
        progress = peer.driver.progress()
        assert progress is not None
        assert progress.accepted == sent + 1, "a line of the driver does not count"
        assert 0 not in peer.lines

    def test_requests_that_only_a_simulation_accepts(self) -> None:
        driver = Peer().ready().driver
        assert not driver.is_simulation()
        assert isinstance(driver.set_joint_positions([0.0] * 6, 0), Refused)
        assert isinstance(driver.set_time_scale(2.0), Refused)
        assert isinstance(driver.inject("axis_fault", {}, 0), Refused)
        assert driver.faults() == {}
        driver.pause()
        driver.resume()
        assert driver.simulation_time(nanoseconds(2.0)) == 2.0


class TestSnapshot:
    def test_a_program_of_the_snapshot_is_refused(self) -> None:
        peer = Peer().ready()
        ticket = peer.driver.run(["G0 X1"] * 10, 0)
        state = msgspec.json.decode(msgspec.json.encode(peer.driver.save()))
        peer.driver.load(state)
        peer.advance(0.0)
        assert peer.ended == [
            (ticket, Refused("a real controller cannot be restored from a snapshot"))
        ]
        assert peer.status.state == "Unknown"
        assert peer.driver.wanted() is not None, "it connects again"

    def test_a_driver_that_was_not_connected_does_not_connect(self) -> None:
        driver = build(Config())
        driver.load(msgspec.to_builtins(driver.save()))
        assert driver.next_wake() is None
        assert driver.wanted() is None


class TestMessages:
    def test_a_dialect_needs_its_writer(self) -> None:
        with pytest.raises(ConfigError, match="joint lines"):
            build(Config(dialect="arm"))

    @pytest.mark.parametrize(
        ("data", "word"),
        [
            (b"ok", LineAnswer(0)),
            (b"error:33", LineAnswer(33)),
            (b"error:", Other("error:")),
            (b"okay", Other("okay")),
            (b"<Hold:0|Bf:1,2>", Report("Hold", 0, {"Bf": "1,2"})),
            (b"<Idle", Other("<Idle")),
            (b"[MSG:Stop]", Info("MSG", "Stop")),
            (b"$110=6000.000", Setting(110, "6000.000")),
            (b"Grbl 1.1h ['$' for help]", Banner()),
            (b"", Other("")),
        ],
    )
    def test_lines_are_read(self, data: bytes, word: object) -> None:
        assert read_line(data) == word

    @given(st.binary(max_size=100))
    def test_any_line_can_be_read(self, data: bytes) -> None:
        read_line(data)

    @given(st.text(max_size=60))
    def test_a_sendable_line_is_one_plain_line(self, text: str) -> None:
        line = sendable(text)
        if not isinstance(line, Refused):
            assert all(32 <= ord(character) < 127 for character in line)
            assert not set(line) & set("?!~")

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("G0 X1", "N7G0 X1"),
            ("N5G0 X1", "N7G0 X1"),
            ("n5 G0X1", "N7G0X1"),
            ("N5", "N5"),
            ("/G0 X1", "/G0 X1"),
            ("%", "%"),
            ("O100 IF [1]", "O100 IF [1]"),
            ("(MSG,hi)", "(MSG,hi)"),
        ],
    )
    def test_lines_are_numbered(self, line: str, expected: str) -> None:
        assert numbered(line, 7) == expected


def test_a_stream_ends_the_connection_that_it_has_made() -> None:
    driver = build(Config())
    stream = LineStream(driver, "G0 X1\n")
    assert stream.start(0, lambda outcome: None) is False
    assert driver.wanted() is not None
    assert not stream.closing(0)
    assert driver.wanted() is None
