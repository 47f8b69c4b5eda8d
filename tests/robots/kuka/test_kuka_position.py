"""A record that was refused is completed like any other: the telemetry shows that nothing moved."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.free_ports import free_port
from tests.robots.kuka.test_kuka_driver import COMMAND, Bench, program
from typer.testing import CliRunner

from understudy.app.stand_in import StandIn
from understudy.cli import app
from understudy.cli.send import Telemetry
from understudy.errors import ConfigError
from understudy.robots.kuka.driver import Config, TelemetryReader
from understudy.units import nanoseconds
from understudy.wire.dial import Destination

TELEMETRY = "kuka.kuka_eki.telemetry"
FAR = "G1 X5000"


class Watched(Bench):
    """A bench whose driver also sees the telemetry; ``blind``: it has stopped."""

    def __init__(self, config: Config = Config()) -> None:  # noqa: B008
        super().__init__(config)
        self.blind = False
        self._watcher, self._reader = self.cell.connect(TELEMETRY), TelemetryReader()
        self.advance(0.5)

    def carry(self) -> None:
        super().carry()
        if hasattr(self, "_watcher"):
            for reading in self._reader.feed(self._watcher.received()):
                if not self.blind:
                    self.driver.observe(reading, self.now)
            super().carry()

    def outcome(self, text: str, patience: float = 60.0) -> str:
        """How a program ends: seen, unseen, or the reason of its refusal."""
        assert self.run(program(text)) is not None
        ends = self.now + nanoseconds(patience)
        while self.driver.busy() and self.now < ends:
            self.advance(0.1)
        ((_, refused, _),) = self.ended
        self.ended.clear()
        if refused is not None:
            return refused.reason
        return "seen" if self.driver.status(self.now).seen else "unseen"


def test_a_job_is_done_when_the_robot_is_seen_at_its_end() -> None:
    bench = Watched()
    assert bench.outcome("G1 X200 F100\nG1 Y50\nG1 Z30 A10 B5\nG1 X100 Y20 Z10\n") == "seen"
    assert bench.outcome("G1 X0 F100\n") == "seen", "and the next one too"


@pytest.mark.parametrize(
    "text", ["G28\nG1 X100\nG55\nT2\nG1 X0 Y0 Z50\n", "T2\n", "G28\n", "F50\n"]
)
def test_unknown_coordinates_are_not_compared(text: str) -> None:
    assert Watched().outcome(f"G1 F100\n{text}") == "seen"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"G1 X50 F100\n{FAR}\n", "line 2"),
        (f"G1 X50 F100\n{FAR}\nG1 X50 Y80\nG1 Y0\n", "line 2"),
        ("G1 X50 F100\nG1 Z-10\n", "line 2"),
        ("G1 X50 F100\nT3\nG1 X60 Y0 Z0\n", "line 3"),
        ("G1 F100\nG1 B170\n", "line 2"),
        (f"G1 X50 F100\n{FAR}\nG1 X6000\nG1 X50 Y80\n", "line 2"),
        (f"G1 X50 F100\n{FAR}\nG1 X0\n", "line 2"),
        ("G1 X20 F100\nG1 Z-9\nG1 X20 Z-5\nG1 X20 Y8 Z0\n", "one of lines 2…3"),
    ],
)
def test_a_refused_record_ends_the_job(text: str, line: str) -> None:
    reason = Watched().outcome(text)
    assert reason.startswith(f"{line}: the robot did not go there (it is at X")
    assert "records completed" in reason


def test_records_after_a_refused_one_are_not_run() -> None:
    bench = Watched()
    bench.outcome(f"G1 X50 F100\n{FAR}\n" + "G1 X60 Y80\nG1 X50 Y0\n" * 20)
    assert bench.completed() < 8


def test_without_telemetry_a_refusal_is_not_found() -> None:
    bench = Bench()
    bench.run(program(f"{FAR} F100\n"))
    bench.advance(1.0)
    assert bench.ended[0][1] is None
    assert not bench.driver.status(bench.now).seen


def test_missing_telemetry_delays_the_end_of_a_job_for_a_limited_time() -> None:
    bench = Watched(Config(sight_s=2.0))
    bench.run(program("G1 X10 F100\n"))
    bench.blind = True
    bench.advance(1.9)
    assert bench.driver.busy()
    bench.advance(0.2)
    assert [refused for _, refused, _ in bench.ended] == [None]
    assert not bench.driver.status(bench.now).seen


def test_a_robot_in_motion_has_no_known_start() -> None:
    bench = Watched()
    bench.run(program("G1 X200 F100\nG1 X100\n"))
    bench.advance(0.5)
    bench.do(bench.driver.give_up)
    bench.ended.clear()
    bench.advance(1.1)
    assert bench.cell.timed_cell.busy(), "what was in flight ends"
    assert bench.outcome("G1 Y10 F100\nG1 X150\n") == "seen"


moves = st.tuples(
    st.integers(0, 200), st.integers(-50, 50), st.integers(0, 100), st.integers(20, 100)
)


@given(st.lists(moves, min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_a_robot_that_follows_its_records_never_ends_the_job(
    places: list[tuple[int, int, int, int]],
) -> None:
    lines = (f"G1 X{x} Y{y} Z{z} F{f}\n" for x, y, z, f in places)
    assert Watched().outcome("".join(lines)) == "seen"


@given(st.lists(st.binary(min_size=128, max_size=128), max_size=20))
@settings(max_examples=20, deadline=None)
def test_garbage_in_the_telemetry_raises_nothing(frames: list[bytes]) -> None:
    bench = Watched()
    bench.run(program("G1 X10 F100\n"))
    for reading in TelemetryReader().feed(b"".join(frames)):
        bench.driver.observe(reading, bench.now)
    bench.advance(1.0)


# ── the command line ──


def send(robot: StandIn, folder: Path, text: str, *more: str) -> tuple[int, str]:
    (folder / "part.gcode").write_text(text)
    host, port = robot.address(COMMAND)
    command = ["send", "kuka", str(folder / "part.gcode"), "--to", f"{host}:{port}", *more]
    result = CliRunner().invoke(app, command)
    return result.exit_code, result.output.replace("\n", " ")


@pytest.mark.understudy(rate=10.0)
def test_send_finds_out_whether_the_robot_moved(kuka_robot: StandIn, tmp_path: Path) -> None:
    host, port = kuka_robot.address(TELEMETRY)
    axis_reading = ("--telemetry", f"{host}:{port}")
    code, output = send(kuka_robot, tmp_path, "G1 X50 F100\n", *axis_reading)
    assert (code, "done" in output, "not known" in output) == (0, True, False), output
    code, output = send(kuka_robot, tmp_path, f"G1 X40\n{FAR}\n", *axis_reading)
    assert (code, "line 2: the robot did not go there" in output) == (1, True), output
    code, output = send(kuka_robot, tmp_path, f"{FAR}\n")
    assert (code, "not known: --telemetry would show it" in output) == (0, True), output


def test_missing_required_telemetry_is_an_error(kuka_robot: StandIn, tmp_path: Path) -> None:
    code, output = send(kuka_robot, tmp_path, "G1 X1\n", "--telemetry", "127.0.0.1:1")
    assert (code, "no telemetry from tcp://127.0.0.1:1" in output) == (1, True), output


CALLING = """
robots:
  kuka:
    kind: kuka
    faces:
      kuka_eki: {telemetry: {mode: client, host: 127.0.0.1, port: %d, local_port: 0, retry_s: 0.05}}
"""


def test_send_listens_for_a_robot_that_connects_with_its_telemetry(tmp_path: Path) -> None:
    unused_port = free_port()
    (tmp_path / "cell.yaml").write_text(CALLING % unused_port)
    with StandIn(str(tmp_path / "cell.yaml"), rate=10.0) as robot:
        axis_reading = ("--telemetry", f"listen:{unused_port}")
        code, output = send(robot, tmp_path, f"G1 X40 F100\n{FAR}\n", *axis_reading)
        assert (code, "line 2: the robot did not go there" in output) == (1, True), output


def test_forms_of_the_telemetry_option() -> None:
    here = Destination("127.0.0.1", 60002)
    assert Telemetry.of(":60002") == Telemetry(here, wanted=True)
    for text in ("listen:60002", "listen:127.0.0.1:60002"):
        assert Telemetry.of(text) == Telemetry(here, calls=True, wanted=True)
    for text in ("listen:", "listen:x", "/dev/ttyS0", "60002"):
        with pytest.raises(ConfigError, match="listen:"):
            Telemetry.of(text)
