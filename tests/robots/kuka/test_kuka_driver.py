"""The KUKA driver against the simulated KUKA, on virtual time and on sockets."""

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from tests.parts import part
from tests.robots.cable import Cable
from typer.testing import CliRunner

from understudy.app.build import load_cell
from understudy.app.stand_in import StandIn
from understudy.cli import app
from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.robots.kuka.driver import (
    Config,
    KukaEkiDriver,
    TelemetryReader,
    build,
    first_number,
)
from understudy.robots.kuka.program import Step, read_program
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.units import MM, NS_PER_SECOND, seconds

COMMAND = "kuka.kuka_eki.command"
Outcome = Ticket | Refused


def program(text: str) -> list[Step]:
    found = read_program(text)
    assert isinstance(found, list)
    return found


def zigzag(count: int) -> list[Step]:
    return [Step(n, 0, {"X": (n % 2) * MM, "F": 0.1}) for n in range(1, count + 1)]


class Bench(Cable):
    """The driver, a cable and the simulated KUKA."""

    def __init__(self, config: Config = Config()) -> None:  # noqa: B008
        self.cell = load_cell("kuka_eki")
        self.driver: KukaEkiDriver = build(config)
        self.ended: list[tuple[Ticket, Refused | None, float]] = []
        self.driver.on_finished(lambda t, o, now: self.ended.append((t, o, seconds(now))))
        self.sent: list[tuple[float, int]] = []
        super().__init__(self.driver, self.cell, COMMAND, cut=in_sevens, sent=self._note_sent)
        self.advance(0.0)

    def run(self, steps: list[Step]) -> Ticket | Refused | None:
        return self.do(lambda now: self.driver.run(steps, now))

    def cut(self) -> None:
        assert self.client is not None
        self.pull()
        self.carry()

    def completed(self) -> int:
        return part(self.cell, "kuka", KukaGcodeServer).progress().completed

    def _note_sent(self, data: bytes) -> None:
        self.sent.append((seconds(self.now), struct.unpack_from("<i", data)[0]))


def in_sevens(data: bytes) -> list[bytes]:
    return [data[at : at + 7] for at in range(0, len(data), 7)]


def test_a_program_runs_to_its_end() -> None:
    bench = Bench()
    assert bench.run(program("G1 X200 F100\nT2\nG1 Y50")) == 1
    assert bench.driver.busy()
    bench.advance(5.0)
    assert [(ticket, outcome) for ticket, outcome, _ in bench.ended] == [(1, None)]
    assert bench.completed() == 3
    assert not bench.driver.busy()


def test_at_most_four_records_are_unconfirmed() -> None:
    bench = Bench()
    bench.run([Step(n, 0, {"X": 0.01 * (n % 2), "F": 0.1}) for n in range(30)])
    while bench.driver.busy():
        job = bench.driver.progress()
        assert job is None or job.sent - job.completed <= 4
        bench.advance(0.01)
    assert [seq for _, seq in bench.sent] == list(range(1, 31))


def test_at_most_32_records_per_second() -> None:
    bench = Bench()
    bench.run([Step(n, 2, {}) for n in range(65)])
    bench.advance(3.0)
    moments = [at for at, _ in bench.sent]
    gaps = [b - a for a, b in pairwise(moments)]
    assert min(gaps) >= 1 / 32 - 1e-9
    assert moments[-1] - moments[0] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_ten_thousand_records_none_lost(count: int) -> None:
    bench = Bench(Config(records_per_s=1000.0))
    bench.run(zigzag(count))
    while bench.driver.busy():
        bench.advance(1.0)
    assert bench.ended[0][1] is None
    assert bench.completed() == count


# ── numbers ──


def test_a_job_begins_with_number_one_unless_it_is_ambiguous() -> None:
    assert first_number(-1, 10) == 1
    assert first_number(0, 10) == 1
    assert first_number(57, 10) == 1
    assert first_number(5, 10) == 6
    assert first_number(2**31 - 1, 10) == 1
    assert first_number(-1, 10, last=4) == 5
    assert first_number(57, 10, last=60) == 1
    assert first_number(1, 10, last=2**31 - 1) == 1


def test_records_of_an_abandoned_job_are_not_counted_for_the_next_job() -> None:
    bench = Bench()
    bench.run(program("G1 X200 F100\nG1 X100\n"))
    bench.advance(0.5)
    bench.do(bench.driver.give_up)
    bench.advance(1.1)
    bench.run(program("G1 Y10\nG1 Y20\n"))
    while bench.completed() < 1:
        bench.advance(0.01)
    job = bench.driver.progress()
    assert job is not None
    assert (job.sent, job.completed) == (2, 0), "that was another's"


def test_earlier_records_are_not_counted_for_this_job() -> None:
    bench = Bench()
    bench.run(zigzag(3))
    bench.advance(1.0)
    bench.run([Step(n, 0, {"X": 0.05 * (n % 2)}) for n in range(1, 8)])
    bench.advance(0.2)
    job = bench.driver.progress()
    assert job is not None
    assert job.completed == 0
    assert [seq for _, seq in bench.sent[3:]] == [4, 5, 6, 7]


def test_a_job_begins_without_feedback_after_the_greeting_time() -> None:
    bench = Bench()
    bench.mute = True
    bench.run(zigzag(2))
    bench.advance(0.19)
    assert bench.sent == []
    bench.advance(0.02)
    assert [seq for _, seq in bench.sent] == [1]


# ── failures ──


def test_a_lost_connection_ends_the_job_and_nothing_is_sent_again() -> None:
    bench = Bench()
    bench.run(zigzag(100))
    bench.advance(1.0)
    sent = len(bench.sent)
    bench.cut()
    ((ticket, outcome, _),) = bench.ended
    assert ticket == 1
    assert outcome is not None
    assert outcome.reason.startswith("the cable was pulled; ")
    assert outcome.reason.endswith(f"of 100 records completed, {sent} sent")
    bench.advance(5.0)
    assert len(bench.sent) == sent
    assert bench.driver.status(bench.now).connection == "connected"  # for the next job
    bench.run(zigzag(2))
    bench.advance(1.0)
    assert bench.ended[-1][1] is None


def test_an_unreachable_robot_is_tried_again_after_longer_and_longer_pauses() -> None:
    bench = Bench(Config(reconnect_s=(1.0, 2.0)))
    bench.reachable = False
    bench.cut()
    bench.advance(10.0)
    refusal = bench.run(zigzag(1))
    assert isinstance(refusal, Refused)
    assert refusal.reason == "no route to host"
    bench.reachable = True
    bench.advance(2.0)
    assert bench.run(zigzag(1)) == 1


def test_a_silent_robot_ends_the_job() -> None:
    bench = Bench(Config(silence_s=2.0))
    bench.advance(0.1)
    bench.run(zigzag(10))
    bench.mute = True
    bench.advance(2.5)
    assert bench.ended[0][1] is not None
    assert bench.ended[0][1].reason.startswith("silent for 2 s; ")


def test_a_connection_attempt_times_out() -> None:
    driver = build(Config(connect_timeout_ms=500))
    driver.wake(0)
    assert driver.wanted() == 1
    driver.wake(NS_PER_SECOND // 2)
    assert driver.wanted() is None
    assert driver.status(0).trouble == "no connection within 500 ms"


def test_one_job_at_a_time_and_no_empty_job() -> None:
    bench = Bench()
    bench.run(zigzag(2))
    assert bench.run(zigzag(1)) == Refused("a job is already running")
    bench.advance(1.0)
    assert bench.run([]) == Refused("the job has no records")


def test_giving_up_disconnects_and_the_robot_clears_its_queue() -> None:
    bench = Bench()
    bench.run([Step(n, 0, {"X": 0.1 * (n % 2), "F": 0.1}) for n in range(1, 9)])
    bench.advance(0.5)
    bench.do(bench.driver.give_up)
    bench.reachable = False
    bench.advance(5.0)
    assert bench.ended[0][1] is not None
    assert bench.completed() == 1


def test_garbage_raises_nothing() -> None:
    bench = Bench()
    bench.run(zigzag(5))
    bench.driver.receive(b"\xff" * 1000, bench.now)
    bench.driver.receive(bytes(1000), bench.now)
    assert bench.driver.busy()


@pytest.mark.parametrize("seq", [-1, 0, 3, 10**9, -(2**31)])
def test_feedback_that_lies_brings_no_record_twice_and_none_beyond_the_window(seq: int) -> None:
    bench = Bench()
    bench.run(zigzag(50))
    bench.advance(0.3)
    lie = struct.pack("<12i", seq, -seq & 0x7FFFFFFF, *[seq] * 10)
    for _ in range(50):
        bench.driver.receive(lie, bench.now)
        bench.advance(0.1)
    numbers = [number for _, number in bench.sent]
    assert len(numbers) == len(set(numbers))
    assert len(numbers) <= bench.completed() + 4


def test_a_snapshot_does_not_restore_a_real_robot() -> None:
    bench = Bench()
    bench.run(zigzag(5))
    saved = bench.driver.save()
    bench.driver.load(saved)
    assert not bench.driver.busy()
    bench.driver.wake(bench.now)
    assert bench.ended[0][1] == Refused("a real robot cannot be restored from a snapshot")


# ── telemetry ──


def test_the_telemetry_reader() -> None:
    cell = load_cell("kuka_eki")
    watcher, reader = cell.connect("kuka.kuka_eki.telemetry"), TelemetryReader()
    cell.connect(COMMAND).say(struct.pack("<ii8fi4x", 1, 0, 200, 0, 0, 0, 0, 0, 100, 0, 65))
    cell.advance(1.0)
    stream = watcher.received()
    readings = [
        reading for at in range(len(stream)) for reading in reader.feed(stream[at : at + 1])
    ]
    assert len(readings) == 41
    assert reader.last == readings[-1]
    assert readings[-1].pose.x == pytest.approx(0.0995, abs=1e-6)
    assert readings[-1].speed == pytest.approx(0.1)
    assert readings[-1].progress.under_way


# ── the command line ──


def run_send(robot: StandIn, folder: Path, text: str) -> tuple[int, str]:
    (folder / "part.gcode").write_text(text)
    host, port = robot.address(COMMAND)
    command = ["send", "kuka", str(folder / "part.gcode"), "--to", f"{host}:{port}"]
    result = CliRunner().invoke(app, command)
    return result.exit_code, result.output


@pytest.mark.understudy(rate=100.0)
def test_send_runs_a_program_to_its_end(kuka_robot: StandIn, tmp_path: Path) -> None:
    code, output = run_send(kuka_robot, tmp_path, "G1 X200 F100\nG54\nG28\n")
    assert (code, "done" in output) == (0, True)
    assert kuka_robot.do("status")["parts"]["kuka"].reading.progress.completed == 3


def test_send_exits_with_1_and_the_reason(kuka_robot: StandIn, tmp_path: Path) -> None:
    code, output = run_send(kuka_robot, tmp_path, "G1 X200\nG3 X1")
    assert (code, "line 2, column 1: G3" in output) == (1, True)
    (tmp_path / "part.gcode").write_text("G1 X1\n")
    dead = ["send", "kuka", str(tmp_path / "part.gcode"), "--to", "127.0.0.1:1"]
    result = CliRunner().invoke(app, dead)
    assert (result.exit_code, "cannot be reached" in result.output) == (1, True)
