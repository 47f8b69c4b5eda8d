"""MAIN: records in, feedback out, one client at a time."""

import struct
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.parts import part
from tests.robots.kuka.kuka_wire import (
    COMMAND,
    TELEMETRY,
    Bench,
    command,
    feedback,
    kuka,
    telemetry,
)

from understudy.app.build import load_cell
from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.robots.kuka.frames import WORDS
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.cell import read_snapshot, write_snapshot
from understudy.wire.exchange import Client, InProcessCell


def test_the_document_s_first_test() -> None:
    """(0,0,0) → (200,0,0) at 100 mm/s: two seconds, and telemetry follows the whole motion."""
    bench = Bench()
    assert bench.run(command(1, X=200, F=100)) == pytest.approx(2.0, rel=0.01)
    bench.cell.advance(0.1)
    frames = bench.frames()
    moving = [frame for frame in frames if frame.in_flight != frame.seq]
    assert all(frame.pose[1:] == (0.0,) * 5 for frame in frames)
    steps = [b.pose[0] - a.pose[0] for a, b in pairwise(moving)]
    assert steps[:-1] == pytest.approx([2.0] * (len(steps) - 1), rel=1e-4)  # 0.1 m/s, every 20 ms
    assert frames[-1].pose[0] == 200.0
    assert (frames[-1].seq, frames[-1].in_flight, frames[-1].speed) == (1, 1, 0.0)
    assert {round(frame.speed, 6) for frame in moving[:-1]} == {0.1}


# ── feedback ──


def test_feedback_comes_after_every_record_and_every_50_ms() -> None:
    bench = Bench()
    bench.cell.advance(0.1)
    assert bench.feedback() == [(-1, 0), (-1, 0)]
    bench.say(command(1, X=10, F=100), command(2, 2))
    bench.cell.advance(0.15)  # the move ends after 0.11 s
    assert bench.feedback() == [(-1, 1), (-1, 1), (1, 1), (2, 1), (2, 0)]


def test_queue_size_is_counted_when_a_record_is_taken_up() -> None:
    bench = Bench()
    bench.say(*(command(seq, X=seq, F=100) for seq in (1, 2, 3, 4)))
    bench.cell.run_while_busy()
    first: dict[int, int] = {}
    for seq, waited in bench.feedback():
        first.setdefault(seq, waited)
    assert first == {1: 1, 2: 3, 3: 2, 4: 1}


def test_any_sequence_numbers_are_accepted() -> None:
    bench = Bench()
    bench.run(*(command(seq, X=seq % 7, F=100) for seq in (5, 5, 2, -9, 2**31 - 1)))
    seen = [seq for seq, _ in bench.feedback()]
    assert list(dict.fromkeys(seen))[-4:] == [5, 2, -9, 2**31 - 1]


# ── packets ──


@pytest.mark.parametrize("at", range(1, 96))
def test_split_at_any_byte(at: int) -> None:
    stream = command(1, X=10, F=100) + command(2, Y=5)
    whole, cut = Bench(), Bench()
    whole.say(stream)
    cut.say(stream[:at])
    cut.say(stream[at:])
    for bench in (whole, cut):
        bench.cell.advance(0.3)
    assert cut.client.received() == whole.client.received()
    assert cut.watcher.received() == whole.watcher.received()


def test_half_a_record_does_nothing_and_ends_with_its_client() -> None:
    bench = Bench()
    bench.say(command(1, X=10, F=100)[:47])
    bench.cell.advance(1.0)
    assert bench.here().in_flight == -1
    bench.client.leave()
    bench.client = bench.cell.connect(COMMAND)
    bench.run(command(2, X=20, F=100))
    assert bench.here().pose[0] == 20.0


# ── many ──


def window_of_four(cell: InProcessCell, client: Client, count: int) -> list[int]:
    """Like the real client: sends a record whenever fewer than four are unconfirmed."""
    seen: list[int] = [0]
    sent = 0
    while seen[-1] < count:
        while sent < count and sent - max(seen[-1], 0) < 4:
            sent += 1
            client.say(command(sent, X=sent % 2, F=100))
        cell.run_while(lambda: not client._received)
        seen += [seq for seq, _ in feedback(client.received()) if seq > 0]
    return seen


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_window_of_four_loses_no_record(count: int) -> None:
    cell = kuka()
    client = cell.connect(COMMAND)
    cell.advance(0.05)
    client.received()
    seen = window_of_four(cell, client, count)
    assert list(dict.fromkeys(seen)) == list(range(count + 1))


@pytest.mark.parametrize("count", [700, pytest.param(10_000, marks=pytest.mark.soak)])
def test_no_record_is_lost_when_sent_without_waiting(count: int) -> None:
    cell = kuka()
    client = cell.connect(COMMAND)
    client.say(b"".join(command(seq, X=seq % 2, F=100) for seq in range(1, count + 1)))
    line = client._connection
    assert line.session.credit() == 0
    # One is in flight, 512 wait, the rest is not read.
    assert len(line.state.unread) == (count - 513) * 48
    assert not line.reading
    cell.run_while_busy()
    seen = [seq for seq, _ in feedback(client.received()) if seq > 0]
    assert list(dict.fromkeys(seen)) == list(range(1, count + 1))
    assert line.reading


# ── which client is served ──


def test_the_newest_client_takes_over() -> None:
    bench = Bench()
    old = bench.client
    bench.say(command(1, X=50, F=100), command(2, X=0))
    bench.cell.advance(0.2)
    bench.client = bench.cell.connect(COMMAND)
    assert not old.connected
    assert bench.here().flags == 0b11
    old.received()
    bench.say(command(7, Y=10))
    bench.cell.run_while_busy()
    assert old.received() == b""
    assert {seq for seq, _ in bench.feedback()} >= {1, 2, 7}
    assert bench.here().pose[:2] == (0.0, 10.0)


def test_flags_show_the_connected_channels() -> None:
    cell = kuka()
    watcher = cell.connect(TELEMETRY)
    cell.advance(0.2)
    assert telemetry(watcher.received())[-1].flags == 0b10
    client = cell.connect(COMMAND)
    cell.advance(0.02)
    assert telemetry(watcher.received())[-1].flags == 0b11
    client.leave()
    cell.advance(0.02)
    assert telemetry(watcher.received())[-1].flags == 0b10


@pytest.mark.parametrize("how", ["leave", "end"])
@pytest.mark.parametrize(("on_disconnect", "last"), [("clear", 1), ("drain", 4)])
def test_a_client_that_disconnects_during_a_move(how: str, on_disconnect: str, last: int) -> None:
    bench = Bench(on_disconnect=on_disconnect)
    bench.say(*(command(seq, X=100 * (seq % 2), F=100) for seq in (1, 2, 3, 4)))
    bench.cell.advance(0.3)
    getattr(bench.client, how)()
    assert not bench.cell.timed_cell.faces[COMMAND].sessions()
    bench.cell.run_while_busy()
    assert bench.here().seq == last


def test_a_client_that_closes_its_sending_side_is_read_to_the_end() -> None:
    bench = Bench(on_disconnect="drain")
    count = 600
    bench.say(*(command(seq, X=seq % 2, F=100) for seq in range(1, count + 1)))
    bench.client.end()
    assert bench.connected()
    bench.cell.run_while_busy()
    assert not bench.connected()
    assert bench.here().seq == count


class NotReading:
    """`Sink` of a client that reads nothing: it takes a number of bytes and then no more."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.got = 0

    def room(self) -> int:
        return UNLIMITED if self.got < self.capacity else 1000

    def send(self, data: bytes) -> None:
        self.got += len(data)

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


def test_a_client_that_never_reads_blocks_nothing() -> None:
    cell = kuka()
    deaf = NotReading(480)
    line = cell.exchange.open(COMMAND, deaf)
    cell.exchange.receive(line, b"".join(command(n, X=n % 2, F=100) for n in range(1, 101)))
    cell.run_while_busy()
    assert deaf.got == 480
    assert part(cell, "kuka", KukaGcodeServer).progress().completed == 100
    deaf.capacity = 960
    cell.exchange.drained(line)
    cell.advance(0.05)
    assert deaf.got == 480 + 48  # missed frames are lost, the next one arrives


def test_in_lock_step_time_runs_while_records_run() -> None:
    bench = Bench()
    session = bench.client._connection.session
    assert not session.owed()
    bench.say(command(1, X=10, F=100))
    assert session.owed()
    bench.cell.run_while_owed()
    assert bench.cell.now == pytest.approx(0.11)
    assert not session.owed()


# ── arbitrary input ──

garbage = st.lists(st.binary(max_size=300), max_size=8)


@settings(max_examples=50, deadline=None)
@given(garbage, st.floats(0.0, 1.0))
def test_arbitrary_bytes_raise_nothing(packets: Iterable[bytes], wait: float) -> None:
    bench = Bench()
    for packet in packets:
        bench.say(packet)
        bench.cell.advance(wait)
    assert_sane(bench)


field = st.floats(width=32) | st.floats(-300, 300, width=32)
feed = field.filter(lambda mm_s: not 0.0 < mm_s < 1.0)  # otherwise the move would take days
record = st.builds(
    lambda seq, kind, values, mask: (seq, kind, values, mask),
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([0, 0, 0, 1, 5, 9, 28, 54, 59]) | st.integers(-(2**31), 2**31 - 1),
    st.tuples(*[feed if word == "F" else field for word in WORDS]),
    st.integers(0, 255) | st.integers(-(2**31), 2**31 - 1),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(record, max_size=10))
def test_any_fields_raise_nothing(
    records: list[tuple[int, int, tuple[float, ...], int]],
) -> None:
    bench = Bench()
    for seq, kind, values, mask in records:
        bench.say(struct.pack("<ii8fi4x", seq, kind, *values, mask))
        bench.cell.advance(0.1)
    assert_sane(bench)


def assert_sane(bench: Bench) -> None:
    """Frames are complete, all numbers are finite, and all records are completed."""
    bench.cell.advance(0.3)
    bench.cell.run_while_busy()
    bench.feedback()
    for frame in bench.frames():
        assert all(abs(value) < 1e6 for value in (*frame.pose, *frame.axes, frame.speed))
        assert frame.rest == (76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124)
    assert not bench.cell.timed_cell.busy()


# ── snapshots, slices ──


def busy_bench() -> Bench:
    bench = Bench()
    bench.say(command(1, X=50, E=3, F=100), command(2, 2), command(3, Y=30), command(4, Y=0)[:20])
    return bench


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.51, 0.515, 0.7])
def test_a_snapshot_is_invisible(moment: float) -> None:
    bench = busy_bench()
    bench.cell.advance(moment)
    snapshot = read_snapshot(write_snapshot(bench.cell.snapshot()))
    endings = []
    for _ in range(2):
        bench.cell.restore(snapshot)
        bench.client.received()
        bench.watcher.received()
        bench.say(command(4, Y=0)[20:])
        bench.cell.advance(2.0)
        endings.append((bench.client.received(), bench.watcher.received()))
    assert endings[0] == endings[1]
    assert dict(feedback(endings[0][0]))[4] in (0, 1)


def test_a_detached_session_writes_to_the_transcript() -> None:
    first = busy_bench()
    first.cell.advance(0.3)
    second = load_cell("kuka_eki")
    second.restore(read_snapshot(write_snapshot(first.cell.snapshot())))
    first.client.received()
    first.watcher.received()
    first.cell.advance(1.0)
    second.advance(1.0)
    said = {
        endpoint: b"".join(e.data for e in second.transcript if e.endpoint == endpoint)
        for endpoint in (COMMAND, TELEMETRY)
    }
    assert said == {COMMAND: first.client.received(), TELEMETRY: first.watcher.received()}


def test_damaged_snapshots_are_refused_and_change_nothing() -> None:
    bench = busy_bench()
    bench.cell.advance(0.2)
    snapshot = bench.cell.snapshot()
    for place, key, value in [
        ("kuka", "ahead", 3),
        ("kuka", "in_flight", {"seq": 1, "kind": 77}),
        ("kuka", "waiting", [{"seq": "one"}]),
        (COMMAND, "current", "stranger"),
    ]:
        parts = snapshot.parts | {place: snapshot.parts[place] | {key: value}}
        with pytest.raises(ConfigError, match="the snapshot is damaged"):
            bench.cell.restore(structs.replace(snapshot, parts=parts))
    bench.cell.run_while_busy()
    assert bench.here().seq == 3


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(1e-6, 0.4), min_size=1, max_size=10))
def test_cutting_time_into_other_slices_changes_no_byte(slices: list[float]) -> None:
    whole, cut = busy_bench(), busy_bench()
    for piece in slices:
        cut.cell.advance(piece)
    end = max(cut.cell.timed_cell.now, 1_500_000_000)
    cut.cell.advance_to(end)
    whole.cell.advance_to(end)
    assert cut.client.received() == whole.client.received()
    assert cut.watcher.received() == whole.watcher.received()
