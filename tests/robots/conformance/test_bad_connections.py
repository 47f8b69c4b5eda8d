"""The driver on a connection that loses, delays, doubles and corrupts bytes, or is cut.

In every case the program ends, the failure is reported, and no line is sent twice.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.robots.conformance.benches import NullModem, driver, joints, settle, status

from understudy.errors import Refused
from understudy.ports import UNLIMITED, Ticket
from understudy.ports.refusals import NOT_ENABLED
from understudy.robots.grblhal.driver import Config
from understudy.units import nanoseconds
from understudy.wire.exchange import Client

HERE = Path()
PROGRAM = [f"G1 X{n % 7} Y{-(n % 5)} F6000" for n in range(1, 160)]
END = [PROGRAM[-1].split()[1][1:], PROGRAM[-1].split()[2][1:]]
SEEDS = range(3)


class Run:
    """A program that is streamed over such a connection."""

    def __init__(self, bench: NullModem) -> None:
        self.bench = bench
        self.ended: list[tuple[Ticket, Refused | None]] = []
        self.lines: list[tuple[int, Refused | None]] = []
        bench.robot.on_finished(lambda ticket, outcome, now: self.ended.append((ticket, outcome)))
        bench.robot.on_line(lambda number, outcome, now: self.lines.append((number, outcome)))
        bench.do(bench.robot.connect)
        self._enable()
        self.ticket = bench.do(lambda now: bench.robot.run(iter(PROGRAM), now))

    def _enable(self) -> None:
        """Enable the driver; with faults it may take several attempts."""
        for _ in range(100):
            self.bench.advance(0.2)
            if self.bench.do(self.bench.robot.enable) is None:
                return

    def finish(self, patience: float = 120.0) -> Refused | None:
        if isinstance(self.ticket, Refused):
            return self.ticket
        end = self.bench.now + nanoseconds(patience)
        while not self.ended and self.bench.now < end:
            self.bench.advance(0.2)
        ((ticket, outcome),) = self.ended
        assert ticket == self.ticket
        return outcome

    def sent_once(self) -> bool:
        numbers = [int(found[1]) for line in self.bench.lines() if (found := _LINE.match(line))]
        return numbers == sorted(set(numbers))


_LINE = re.compile(r"N(\d+)G1")


def bad(rules: str, seed: int = 0) -> NullModem:
    """A bench with scenario rules; ``seed`` selects the random faults."""
    bench = NullModem(HERE, rules=rules)
    bench.virtual_cell.advance(0.001 * seed)
    return bench


def rule(fault: str, more: str = "", parameters: str = "") -> str:
    figures = f", parameters: {{{parameters}}}" if parameters else ""
    return f"r: {{fault: {fault}, on: arm.grblhal{more}{figures}}}"


def arrived(bench: NullModem) -> bool:
    bench.do(bench.robot.connect)
    settle(bench)
    return joints(bench)[:2] == pytest.approx([float(value) for value in END], abs=0.002)


class TestAnswers:
    def test_a_lost_answer_is_reported(self) -> None:
        run = Run(bad(rule("message_loss", ", times: 1, from_s: 0.6")))
        outcome = run.finish()
        assert outcome is not None
        assert "no answer to" in outcome.reason or "silent" in outcome.reason
        assert run.sent_once()

    def test_late_answers_are_accepted(self) -> None:
        run = Run(bad(rule("message_delay", ", probability: 0.2", "delay_ms: 700")))
        assert run.finish() is None
        assert arrived(run.bench)
        assert run.sent_once()

    def test_answers_that_are_too_late_fail(self) -> None:
        run = Run(bad(rule("message_delay", ", from_s: 0.5", "delay_ms: 60000")))
        outcome = run.finish()
        assert outcome is not None
        assert "silent" in outcome.reason
        assert status(run.bench).state == "Unknown"

    def test_a_repeated_answer_is_noticed(self) -> None:
        run = Run(bad(rule("message_duplicate", ", from_s: 0.3, times: 10")))
        outcome = run.finish()
        assert outcome is not None
        assert "without a request" in outcome.reason
        assert run.sent_once()

    @pytest.mark.parametrize("fault", ["message_loss", "message_duplicate", "message_garble"])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_with_any_fault_the_program_ends_and_no_line_is_sent_twice(
        self, fault: str, seed: int
    ) -> None:
        run = Run(bad(rule(fault, ", probability: 0.05"), seed))
        outcome = run.finish()
        assert run.sent_once()
        assert outcome is None or outcome.reason
        failed = [number for number, why in run.lines if why is not None]
        assert outcome is not None or not failed

    def test_slow_answers_slow_the_program_down(self) -> None:
        run = Run(bad(rule("slow_client", "", "bytes_per_s: 3000")))
        assert run.finish() is None
        assert arrived(run.bench)


class TestCable:
    @pytest.fixture
    def run(self) -> Iterator[Run]:
        run = Run(NullModem(HERE))
        run.bench.advance(0.1)
        yield run
        assert run.sent_once()

    def test_pulled_in_motion(self, run: Run) -> None:
        bench = run.bench
        bench.pull()
        outcome = run.finish()
        assert outcome is not None
        assert re.fullmatch(r"\d+ of \d+ lines accepted; the cable was pulled", outcome.reason)
        assert not bench.robot.is_connected()
        assert status(bench).state == "Unknown"
        assert math.isnan(joints(bench)[0])
        assert not status(bench).moving

    def test_pauses_between_connection_attempts_grow(self, run: Run) -> None:
        bench = run.bench
        bench.pull()
        bench.advance(40.0)
        assert status(bench).error_message == "no route to host"
        bench.reachable = True
        bench.advance(16.0)
        assert bench.robot.is_connected()
        assert status(bench).state == "Idle"
        assert not status(bench).error

    def test_after_reconnecting_it_must_be_enabled(self, run: Run) -> None:
        bench = run.bench
        bench.pull()
        bench.reachable = True
        bench.advance(3.0)
        assert bench.do(lambda now: bench.robot.send_gcode("G0 X0", now)) == NOT_ENABLED
        assert bench.do(bench.robot.enable) is None
        assert bench.do(lambda now: bench.robot.send_gcode("G0 X0", now)) is None

    @pytest.mark.parametrize("cut", [1, 4, 9, 12])
    def test_pulled_in_the_middle_of_a_line(self, cut: int) -> None:
        """A part of a line is void; the next bytes do not complete it."""
        bench = NullModem(HERE)
        bench.do(bench.robot.connect)
        bench.advance(0.1)
        bench.do(bench.robot.enable)
        bench.robot.send_gcode("G0 X100", bench.now)
        client: Client | None = bench.client
        assert client is not None
        client.say(bench.robot.take(UNLIMITED)[:cut].rstrip(b"\n"))
        bench.pull()
        bench.reachable = True
        bench.advance(3.0)
        assert bench.robot.is_connected()
        assert joints(bench) == [0.0] * 6
        bench.do(bench.robot.enable)
        assert bench.do(lambda now: bench.robot.send_gcode("G0 Y-5", now)) is None
        settle(bench)
        assert joints(bench)[:2] == pytest.approx([0.0, -5.0])
        assert not status(bench).error

    def test_lines_in_flight_are_reported_as_failed(self) -> None:
        bench = NullModem(HERE)
        outcome_of: dict[int, Refused | None] = {}
        bench.robot.on_line(lambda number, outcome, now: outcome_of.update({number: outcome}))
        bench.do(bench.robot.connect)
        bench.advance(0.1)
        bench.do(bench.robot.enable)
        for n in range(400):
            bench.robot.send_gcode(f"G1 X{n % 90} F600", bench.now)
        bench.advance(0.1)
        taken = len(outcome_of)
        bench.pull()
        outcomes = [outcome_of[n] for n in range(taken + 1, 401)]
        reasons = [outcome.reason for outcome in outcomes if outcome is not None]
        assert len(reasons) == len(outcomes)
        in_flight = reasons.count("the cable was pulled")
        assert 0 < in_flight <= 1023 // len("G1 X1 F600\n")
        assert reasons[in_flight:] == ["Not sent. the cable was pulled"] * (400 - taken - in_flight)

    def test_a_jog_stops_when_the_cable_is_pulled(self) -> None:
        bench = NullModem(HERE)
        bench.do(bench.robot.connect)
        bench.advance(0.1)
        bench.do(bench.robot.enable)
        for _ in range(5):
            bench.do(lambda now: bench.robot.jog(0, 0.5, now))
            bench.advance(0.1)
        before = joints(bench)[0]
        bench.pull()
        bench.reachable = True
        bench.advance(3.0)
        assert joints(bench)[0] - before < 0.35 * math.degrees(0.5)
        assert status(bench).state == "Idle"


class TestSeveralClients:
    """Several clients: the newest connection is served."""

    def test_another_client_is_served(self) -> None:
        run = Run(NullModem(HERE))
        other = run.bench.virtual_cell.connect("arm.grblhal")
        outcome = run.finish()
        assert outcome is not None
        assert "silent" in outcome.reason
        assert status(run.bench).state == "Unknown"
        run.bench.virtual_cell.run_while_busy()
        other.received()
        run.bench.advance(30.0)
        assert other.received() == b"", "a client that is not served sends nothing to the other"

    def test_when_it_disconnects_the_first_is_served_again(self) -> None:
        run = Run(NullModem(HERE))
        other = run.bench.virtual_cell.connect("arm.grblhal")
        run.finish()
        other.say(b"\x19")
        run.bench.advance(1.0)
        other.say(b"G0 X-20\n")
        run.bench.advance(2.0)
        other.leave()
        run.bench.advance(5.0)
        assert run.bench.robot.is_connected()
        assert joints(run.bench)[0] == pytest.approx(-20.0)
        assert not status(run.bench).enabled
        assert run.sent_once()

    def test_two_drivers(self) -> None:
        first = Run(NullModem(HERE))
        second = driver(Config(poll_ms=50))
        client = first.bench.virtual_cell.connect("arm.grblhal")
        second.connect(first.bench.now)
        second.connected(first.bench.now)
        for _ in range(60):
            while data := second.take(UNLIMITED):
                client.say(data)
            if received := client.received():
                second.receive(received, first.bench.now)
            first.bench.advance(0.1)
            if (wake := second.next_wake()) is not None and wake <= first.bench.now:
                second.wake(first.bench.now)
        assert second.is_connected()
        assert second.status(first.bench.now).state == "Run", "it sees the motion of the first"
        assert not first.bench.robot.is_connected()
        assert "silent" in str(first.ended)
