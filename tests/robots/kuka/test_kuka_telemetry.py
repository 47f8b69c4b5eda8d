"""EX2, EX3 and EX4: telemetry, and commands that are only written to a file."""

from pathlib import Path
from typing import cast

import pytest
from tests.robots.kuka.kuka_wire import COMMAND, TELEMETRY, Bench, command, kuka, telemetry

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.ports import UNLIMITED
from understudy.robots.kuka.face import EX2, EX4, DryRunFace, TelemetryFace, text_of
from understudy.robots.kuka.records import Record
from understudy.units import NS_PER_MS
from understudy.wire.exchange import InProcessCell


def moments(cell: InProcessCell, endpoint: str) -> list[float]:
    events = (e for e in cell.transcript if e.endpoint == endpoint and e.kind == "<")
    return [event.at / NS_PER_MS for event in events]


def test_every_20_ms_from_200_ms_on() -> None:
    cell = kuka()
    cell.connect(TELEMETRY)
    cell.advance(0.3)
    assert moments(cell, TELEMETRY) == [200, 220, 240, 260, 280, 300]


def test_later_clients_get_frames_at_the_same_times() -> None:
    cell = kuka()
    cell.advance(1.013)
    watchers = [cell.connect(TELEMETRY) for _ in range(3)]
    cell.advance(0.05)
    assert sorted(set(moments(cell, TELEMETRY))) == [1020, 1040, 1060]
    received = [watcher.received() for watcher in watchers]
    assert received[0] == received[1] == received[2]


def test_without_clients_there_is_no_wake() -> None:
    cell = kuka()
    watcher = cell.connect(TELEMETRY)
    watcher.leave()
    assert cell.timed_cell.next_wake() is None


def test_before_the_first_record() -> None:
    frame = Bench().here()
    assert frame.pose == (0.0,) * 6
    assert frame.axes == pytest.approx((0.0, -61.08, 126.744, 0.0, 24.336, 180.0), abs=1e-3)
    assert (frame.seq, frame.in_flight, frame.queue) == (-1, -1, 0)
    assert (frame.speed, frame.tool, frame.base) == (0.0, 1, 5)
    assert frame.rest == (76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124)


def test_tool_and_base_are_the_active_ones() -> None:
    bench = Bench()
    bench.run(command(1, 4), command(2, 55))
    frame = bench.here()
    assert (frame.tool, frame.base) == (4, 2)
    assert frame.pose[:3] == pytest.approx((0.0, 200.0, -50.0), abs=1e-9)


def test_bytes_of_telemetry_clients_are_ignored() -> None:
    bench = Bench()
    bench.watcher.say(command(1, X=100, F=100) * 100)
    assert bench.here().in_flight == -1


def test_a_client_that_does_not_read_misses_whole_frames() -> None:
    bench = Bench()
    face = bench.cell.timed_cell.faces[TELEMETRY]
    session = face.sessions()["1"]
    bench.cell.advance(0.2)
    face.wake(220 * NS_PER_MS)
    assert session.take(UNLIMITED - 1) == b""
    assert session.take(UNLIMITED) == b""  # dropped, not kept
    face.wake(240 * NS_PER_MS)
    assert len(cast(bytes, session.take(UNLIMITED))) == 128


# ── optional sockets ──

ALL_FOUR = """
robots:
  kuka:
    kind: kuka
    faces:
      kuka_eki: {ex3: {}, ex4: {}, ex3_file: dry.log, feedback_ms: 1000}
"""


@pytest.fixture
def all_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InProcessCell:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.yaml").write_text(ALL_FOUR)
    return InProcessCell(build_cell(load_config(str(tmp_path / "cell.yaml"))))


def test_two_sockets_by_default_four_if_configured(all_four: InProcessCell) -> None:
    assert list(kuka().timed_cell.faces) == [COMMAND, TELEMETRY]
    endpoints = ["command", "telemetry", "ex3", "ex4"]
    assert list(all_four.timed_cell.faces) == [f"kuka.kuka_eki.{name}" for name in endpoints]


def test_ex4_sends_the_same_frames_every_40_ms(all_four: InProcessCell) -> None:
    stream, datagrams = all_four.connect(TELEMETRY), all_four.connect("kuka.kuka_eki.ex4")
    all_four.advance(0.3)
    assert moments(all_four, "kuka.kuka_eki.ex4") == [200, 240, 280]
    assert telemetry(datagrams.received()) == telemetry(stream.received())[::2]
    assert telemetry(stream.received()) == []
    all_four.advance(0.02)
    assert telemetry(stream.received())[-1].flags == 0b1010


def test_ex3_writes_to_a_file_and_moves_nothing(all_four: InProcessCell, tmp_path: Path) -> None:
    client = all_four.connect("kuka.kuka_eki.ex3")
    stream = command(1, X=200, F=100) + command(2, 28) + command(3, X=float("nan"))
    for at in range(0, len(stream), 7):
        client.say(stream[at : at + 7])
    all_four.advance(1.0)
    assert (tmp_path / "dry.log").read_text().splitlines() == [
        "seq=1 type=0 X=200 F=100",
        "seq=2 type=28",
        "seq=3 type=0 flaw='X = nan: not a number'",
    ]
    watcher = all_four.connect(TELEMETRY)
    all_four.advance(0.02)
    frame = telemetry(watcher.received())[-1]
    assert (frame.in_flight, frame.flags) == (-1, 0b0110)
    assert client.received() == b""


def test_ex3_serves_the_newest_client(all_four: InProcessCell, tmp_path: Path) -> None:
    first = all_four.connect("kuka.kuka_eki.ex3")
    first.say(command(1)[:10])
    second = all_four.connect("kuka.kuka_eki.ex3")
    assert (first.connected, second.connected) == (False, True)
    snapshot = all_four.snapshot()
    second.say(command(2, X=1))
    all_four.restore(snapshot)
    second.say(command(3, X=1))
    assert (tmp_path / "dry.log").read_text() == "seq=2 type=0 X=1\nseq=3 type=0 X=1\n"


def test_a_log_that_cannot_be_written_raises_nothing(
    all_four: InProcessCell, tmp_path: Path
) -> None:
    (tmp_path / "dry.log").mkdir()
    all_four.connect("kuka.kuka_eki.ex3").say(command(1))


def test_each_face_reports_its_own_channel(all_four: InProcessCell) -> None:
    faces = all_four.timed_cell.faces
    assert isinstance(faces["kuka.kuka_eki.ex4"], TelemetryFace)
    assert isinstance(faces["kuka.kuka_eki.ex3"], DryRunFace)
    assert (EX2.after(0), EX2.after(200 * NS_PER_MS), EX4.after(201 * NS_PER_MS)) == (
        200 * NS_PER_MS,
        220 * NS_PER_MS,
        240 * NS_PER_MS,
    )


def test_the_ex3_file_has_the_units_of_the_wire() -> None:
    assert text_of(Record(-3, 0, {"X": 0.2, "A": 0.0, "E": 2.5})) == (
        "seq=-3 type=0 X=200 A=0 E=2.5"
    )
