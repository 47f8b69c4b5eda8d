"""A program on a controller: the file's line numbers, errors, steps, pauses, half-way starts."""

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.agenda import ClockState
from understudy.config.files import read_model
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.ports import Deps
from understudy.ports.program import Reading
from understudy.robots.arm import Config, build
from understudy.robots.arm.controller import ArmController
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.simulation import scenario
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot
from understudy.simulation.program.run import ProgramRun
from understudy.units import DEG, nanoseconds

TOUR = "G0 A0\n\n(out)\nG1 A20 F600\nG1 B-10\n% \nG1 A0 B0\n"


class Bench:
    """An arm, a program on it, and virtual time."""

    def __init__(self, text: str = TOUR, **settings: object) -> None:
        deps = Deps(
            scenario.build(scenario.Config(), 0),
            lambda name: read_model(name, beside=""),
            ClockState(),
        )
        self.arm: ArmController = build("arm", read(settings, Config), deps)
        self.program = ProgramRun(self.arm, GcodeLanguage(self.arm.arm.options.dialect))
        parts = {"arm": self.arm, **self.arm.parts, "arm.program": self.program}
        self.cell = Cell("bench", digest="", components=parts, faces={})
        self.reported: list[str] = []
        self.program.on_end(lambda text, now: self.reported.append(text))
        assert self.arm.connect(0) is None
        assert self.arm.enable(0) is None
        assert self.program.load_text(text, "tour") is None

    @property
    def now(self) -> int:
        return self.cell.now

    @property
    def reading(self) -> Reading:
        return self.program.reading(self.now)

    def run(self, *, from_line: int = 1, step: bool = False) -> Refused | None:
        return self.program.run(self.now, from_line=from_line, step=step)

    def forward(self, seconds: float) -> None:
        self.cell.advance(self.now + nanoseconds(seconds))

    def until(self, over: Callable[[], bool], patience: float = 60.0) -> None:
        end = self.now + nanoseconds(patience)
        while not over():
            at = self.cell.next_wake()
            assert at is not None, f"nothing goes on: {self.reading}"
            assert at <= end, f"not within {patience} s: {self.reading}"
            self.cell.advance(at)

    def to_the_end(self) -> Reading:
        self.until(lambda: not self.program.under_way())
        return self.reading

    def joints(self) -> list[float]:
        self.forward(0.01)
        return [round(q / DEG, 6) + 0.0 for q in self.arm.joint_state(self.now).positions]


def reason(answer: Refused | None) -> str:
    assert answer is not None, "nothing was refused"
    return answer.reason


# ── from beginning to end ──


def test_it_runs_to_its_end_and_reports_it() -> None:
    bench = Bench()
    assert bench.run() is None
    assert bench.reading.state == "running"
    reading = bench.to_the_end()
    assert (reading.state, reading.line, reading.lines, reading.error) == ("done", 7, 7, "")
    assert bench.reported == ["tour done"]
    assert bench.joints() == [0.0] * 6


def test_it_takes_as_long_as_lines_sent_one_by_one() -> None:
    bench, by_hand = Bench(), Bench()
    bench.run()
    for line in TOUR.splitlines():
        assert not line or by_hand.arm.send_gcode(line, 0) is None
    by_hand.until(lambda: not by_hand.arm.status(by_hand.now).moving)
    assert bench.to_the_end().elapsed_s == pytest.approx(by_hand.now * 1e-9)


def test_the_running_line_has_the_files_number() -> None:
    bench = Bench()
    bench.arm.send_gcode("G0 A-1", 0)
    bench.until(lambda: not bench.arm.status(bench.now).moving)
    bench.run()
    seen: list[int] = []
    while bench.program.under_way():
        if not seen or seen[-1] != bench.reading.line:
            seen.append(bench.reading.line)
        bench.forward(0.02)
    assert seen == [1, 4, 5, 7]


def test_a_long_program_is_sent_in_parts_and_does_not_stop_in_between() -> None:
    lines = [f"G1 A{0.05 * n:.2f} F6000" for n in range(700)]
    bench, by_hand = Bench("\n".join(lines)), Bench()
    bench.run()
    assert bench.arm.status(0).accepted == 300
    for line in lines:
        by_hand.arm.send_gcode(line, 0)
    by_hand.until(lambda: not by_hand.arm.status(by_hand.now).moving)
    assert bench.to_the_end().elapsed_s == pytest.approx(by_hand.now * 1e-9)


@pytest.mark.parametrize("text", ["", "\n \n", "G0 A0\n", "(nothing to do)\n", "%\n%\n"])
def test_programs_that_take_no_time(text: str) -> None:
    bench = Bench(text, simulation={"command_delay_ms": 0, "feedback_delay_ms": 0})
    answer = bench.run()
    if not text.strip():
        assert reason(answer) == "no program is loaded"
    else:
        assert bench.to_the_end().state == "done"


def test_it_can_be_run_again() -> None:
    bench = Bench()
    for _ in range(2):
        assert bench.run() is None
        assert bench.to_the_end().state == "done"
    assert bench.reported == ["tour done"] * 2


# ── failures ──


def test_with_an_unreadable_line_nothing_moves() -> None:
    bench = Bench("G0 A10\n\nG1 A20 Q\n")
    assert "line 3, column" in reason(bench.run())
    assert (bench.reading.state, bench.reading.line) == ("failed", 3)
    assert bench.joints() == [0.0] * 6


def test_an_impossible_line_is_reported_with_its_number_in_the_file() -> None:
    bench = Bench("\nG0 A10\n\nG1 A400 F600\nG1 A0\n")
    bench.arm.send_gcode("G0 A1", 0)
    bench.until(lambda: not bench.arm.status(bench.now).moving)
    bench.run()
    reading = bench.to_the_end()
    assert (reading.state, reading.line) == ("failed", 4)
    assert "J1 = 400.0° is outside" in reading.error
    assert "(line 4: G1 A400 F600)" in reading.error
    assert bench.reported == [f"tour failed at line 4: {reading.error}"]


def test_an_emergency_stop_fails_the_program_at_its_line() -> None:
    bench = Bench()
    bench.run()
    bench.forward(0.5)
    bench.arm.emergency_stop(bench.now)
    reading = bench.to_the_end()
    assert (reading.state, reading.line) == ("failed", 4)
    assert "emergency stop" in reading.error


def test_a_stop_by_another_client_fails_the_program() -> None:
    bench = Bench()
    bench.run()
    bench.forward(0.5)
    bench.arm.stop(bench.now)
    reading = bench.to_the_end()
    assert (reading.state, reading.error) == ("failed", "stopped at line 4")


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda b: b.arm.disable(b.now), "drives are not enabled"),
        (lambda b: b.arm.emergency_stop(b.now), "emergency stop"),
        (lambda b: b.arm.send_gcode("G1 A20 F60", b.now), "at rest"),
        (lambda b: b.run(), "a program is running"),
    ],
    ids=["disabled", "stopped", "moving", "running"],
)
def test_run_is_refused(prepare: Callable[[Bench], object], says: str) -> None:
    bench = Bench()
    prepare(bench)
    assert says in reason(bench.run())


def test_load_is_refused_while_a_program_runs() -> None:
    bench = Bench()
    bench.run()
    assert "is running" in reason(bench.program.load_text("G0 A0", "other"))
    assert "more than" in reason(Bench().program.load_text("x" * (16 * 1024 * 1024 + 1), ""))


# ── operator ──


def test_pause_and_resume() -> None:
    bench = Bench()
    bench.run()
    bench.forward(0.5)
    assert bench.program.pause(bench.now) is None
    bench.forward(5.0)
    assert bench.reading.state == "paused"
    assert bench.program.resume(bench.now) is None
    assert bench.to_the_end().state == "done"


def test_m0_pauses_it() -> None:
    bench = Bench("G1 A1 F600\nM0\nG1 A2\n")
    bench.run()
    bench.forward(10.0)
    assert bench.reading.state == "paused"
    bench.program.resume(bench.now)
    assert bench.to_the_end().state == "done"


def test_stop_brakes_and_drops_the_rest() -> None:
    bench = Bench()
    bench.run()
    bench.until(lambda: bench.reading.line == 4)
    assert bench.program.stop(bench.now) is None
    assert (bench.reading.state, bench.reading.line) == ("idle", 4)
    bench.forward(5.0)
    assert not bench.arm.status(bench.now).moving
    assert bench.reported == ["tour stopped at line 4"]
    assert bench.run() is None


def test_line_by_line() -> None:
    bench = Bench()
    lines = []
    while bench.program.step(bench.now) is None and bench.program.under_way():
        bench.until(lambda: bench.reading.state != "running")
        lines.append((bench.reading.line, bench.reading.state))
        if bench.reading.state == "done":
            break
    assert lines == [
        (1, "paused"),
        (3, "paused"),
        (4, "paused"),
        (5, "paused"),
        (6, "paused"),
        (7, "done"),
    ]


def test_a_stepped_run_can_be_resumed_to_its_end() -> None:
    bench = Bench()
    bench.run(step=True)
    bench.until(lambda: bench.reading.state == "paused")
    assert bench.program.resume(bench.now) is None
    assert bench.to_the_end().state == "done"


def test_operator_requests_without_a_program_are_refused() -> None:
    bench = Bench()
    for deed in (bench.program.pause, bench.program.resume, bench.program.stop):
        assert reason(deed(bench.now)) == "no program is running"
    bench.run()
    assert "runs without steps" in reason(bench.program.step(bench.now))


# ── from a line on ──


@pytest.mark.parametrize("first", [1, 2, 4, 5, 7])
def test_from_a_line_on_it_ends_where_the_whole_program_ends(first: int) -> None:
    bench = Bench()
    assert bench.run(from_line=first) is None
    assert bench.to_the_end().state == "done"
    assert bench.joints() == [0.0] * 6


def test_modes_of_the_earlier_lines_apply() -> None:
    text = "G91\nG1 A5 F60\nG90\nG20 G93\nG21 G94\nT2 M6\nG1 A10 F1200\nA30\n"
    bench = Bench(text, tools={2: {"tcp_mm_deg": [0, 0, 80, 0, 0, 0]}})
    bench.run(from_line=8)
    assert bench.to_the_end().elapsed_s == pytest.approx(1.5, abs=0.06)
    assert bench.joints()[0] == 30.0
    assert bench.arm.firmware.reading(bench.now).tool == 2


def test_invalid_start_lines_are_refused() -> None:
    bench = Bench("G0 A0\nG91\nG1 A5 F60\n")
    assert "there is no line 4; there are 1…3" in reason(bench.run(from_line=4))
    assert "line 3 is relative" in reason(bench.run(from_line=3))
    assert bench.reading.state == "failed"
    assert bench.run() is None


def test_errors_keep_the_files_numbers_from_a_line_on() -> None:
    bench = Bench("G21 G90\nG1 A1 F600\nG1 A2\nG1 A900\n")
    bench.run(from_line=3)
    assert (bench.to_the_end().line, "(line 4: G1 A900)" in bench.reading.error) == (4, True)


# ── snapshots ──


@given(st.floats(0.0, 3.0))
def test_a_snapshot_in_mid_program_is_invisible(moment: float) -> None:
    bench = Bench()
    bench.run()
    bench.forward(moment)
    kept = write_snapshot(bench.cell.snapshot())
    ends = bench.to_the_end()
    after = bench.cell.snapshot()
    other = Bench("")
    other.cell.restore(read_snapshot(kept))
    assert other.to_the_end() == ends
    assert write_snapshot(other.cell.snapshot()) == write_snapshot(after)
    assert msgspec.json.encode(other.reading) == msgspec.json.encode(ends)


@pytest.mark.parametrize("sent", [None, 0, -1, 10_000])
def test_a_snapshot_of_a_run_that_has_sent_other_lines_is_refused(sent: int | None) -> None:
    bench = Bench()
    bench.run()
    bench.forward(0.2)
    crafted = json.loads(write_snapshot(bench.cell.snapshot()))
    (saved,) = (state for state in crafted["parts"].values() if "opening" in state)
    del saved["sent"]
    if sent is not None:
        saved["sent"] = sent
    with pytest.raises(ConfigError, match=r"the snapshot is damaged: .*sent"):
        bench.cell.restore(read_snapshot(json.dumps(crafted).encode()))
    assert bench.to_the_end().state == "done"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a collides with b, line 19, 4.5 s", "a collides with b, 4.5 s"),
        ("line 19: out of reach", "out of reach"),
        ("too far (line 19: G1 X9)", "too far (G1 X9)"),
        ("no line is named", "no line is named"),
    ],
)
def test_the_number_of_a_line_of_another_client_is_left_out(said: str, shown: str) -> None:
    assert Bench().program.in_file(said) == shown
